#!/usr/bin/env python3
"""Times the candidates of kernels for a job's layers, and prints microseconds and GFLOP/s of each:
kernel_rates.py JOB [--set PATH=VALUE]...

Runs `arbalest inspect --timings` of the installed tree on the GPU. FLOPs follow from a layer's extents: two for each
multiplication of a direct product, for the output, the gradient of the parameters and, if it is needed, that of the
input, for all replicas. Additions of biases, activations and pooling are not counted. The last line of stdout is a JSON
object. Exit codes: that of `arbalest inspect`; 1 if it prints no times.
"""

import argparse
import json
import math
import pathlib
import re
import subprocess
import sys

PROGRAM = pathlib.Path(__file__).resolve().parents[2] / "bin/arbalest"
QUESTION = re.compile(r"(?P<layer>(?:convolution|dense layer) of .*), (?P<precision>FP32|TF32|BF16), "
                      r"(?P<mode>inference|training without input gradient|training)(?P<rest>.*)")
CONVOLUTION = re.compile(r"input (?P<input>[\dx]+), (?P<filters>\d+) filters of (?P<kernel>[\dx]+) in (?P<groups>\d+) groups, "
                         r"stride (?P<stride>[\dx]+), padding (?P<padding>[\dx]+)(?: and (?P<behind>[\dx]+) behind)?, "
                         r"dilation (?P<dilation>[\dx]+)")
DENSE = re.compile(r"input (?P<input>[\dx]+)[^,]*, (?P<units>\d+) units")
PASSES = {"inference": 1, "training without input gradient": 2, "training": 3}


def numbers(text):
    return [int(number) for number in text.split("x")]


def forward_flops(layer):
    """Returns the FLOPs of a layer's output for one replica. `layer`: the text of its extents."""
    if of := CONVOLUTION.search(layer):
        batch, channels, *image = numbers(of["input"])
        kernel, behind = numbers(of["kernel"]), numbers(of["behind"] or "0x0")
        sides = zip(image, kernel, numbers(of["stride"]), numbers(of["padding"]), behind, numbers(of["dilation"]))
        output = [(size + 2 * padding + more - dilation * (window - 1) - 1) // stride + 1
                  for size, window, stride, padding, more, dilation in sides]
        return 2 * batch * int(of["filters"]) * math.prod(output + kernel) * (channels // int(of["groups"]))
    of = DENSE.search(layer)
    return 2 * math.prod(numbers(of["input"])) * int(of["units"])


def rates(kernels):
    """Returns a row for each layer with times. `kernels`: those of `arbalest inspect --timings --json`."""
    rows = []
    for choice in kernels:
        timed = [one for one in choice["candidates"] if one["microseconds"] is not None]
        found = QUESTION.match(choice["question"])
        if not found or not timed:
            continue
        replicas = re.search(r"(\d+) replica", found["rest"])
        # An inference does not say how many replicas it was timed for, so it has no rate.
        flops = forward_flops(found["layer"]) * PASSES[found["mode"]] * int(replicas[1]) if replicas else None
        rows.append({"layer": found["layer"], "precision": found["precision"], "mode": found["mode"],
                     "replicas": int(replicas[1]) if replicas else None, "flops": flops, "chosen": choice["answer"],
                     "candidates": [one | {"gflop_per_second": rate(flops, one["microseconds"])} for one in timed]})
    return rows


def rate(flops, microseconds):
    return flops / microseconds / 1e3 if flops and microseconds > 0 else None


def table(rows):
    """Returns lines of Markdown."""
    lines = ["| layer | precision | mode | replicas | kernels: µs, GFLOP/s | chosen |", "|---|---|---|---|---|---|"]
    for row in rows:
        candidates = "; ".join(
            f"{one['name']}: {one['microseconds']:.1f}"
            + (f", {one['gflop_per_second']:,.0f}" if one["gflop_per_second"] is not None else "")
            for one in row["candidates"])
        lines.append(f"| {row['layer']} | {row['precision']} | {row['mode']} | {row['replicas'] or ''} | {candidates} | "
                     f"{row['chosen']} |")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("job")
    parser.add_argument("--set", action="append", default=[], metavar="PATH=VALUE", help="as for arbalest inspect")
    arguments = parser.parse_args()
    command = [PROGRAM, "inspect", arguments.job, "--timings", "--json", "--set", "devices=cuda:0"]
    for change in arguments.set:
        command += ["--set", change]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(done.returncode)
    rows = rates(json.loads(done.stdout)["kernels"])
    if not rows:
        sys.exit("error: no layer has candidates of kernels with times")
    print("\n".join(table(rows)))
    print(json.dumps({"question": "kernel rates", "job": arguments.job, "changes": arguments.set, "layers": rows}))


if __name__ == "__main__":
    main()
