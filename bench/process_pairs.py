#!/usr/bin/env python3
"""What does a second process cost? Compares one process of two learners with two processes of one learner.

    bench/process_pairs.py configs/lenet-mnist.txtpb configs/resnet20-cifar10.txtpb --data-root DIR --turns 5 \\
        --results pairs.jsonl

Both train the same job to the same bytes, in turns (one, two, two, one ...). Prints, for each job, images/s of training
in two processes over those in one: the median of the turns' ratios, with the least and the largest. Run it on a quiet
machine with two cores. Prints as well the processor time of whole runs, from start to end, and how often their threads
waited; other work disturbs these two less. Each turn is a line of the results; the same command goes on with the turns
that are missing.
"""

import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile

from launching import environment, launched

ROOT = pathlib.Path(__file__).resolve().parents[1]


def train(program, job, processes, data_root, settings):
    """Returns the summary of a run with two learners in all, and what its processes used."""
    with tempfile.TemporaryDirectory() as name:
        output = pathlib.Path(name) / "run"
        command = [str(program), "train", job, "--quiet", "--output", str(output), "--data-root", data_root]
        for setting in (*settings, f"learners.per_device.fixed={2 // processes}", "checkpoint.keep_last=0"):
            command += ["--set", setting]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(launched(command, processes), check=True, stdout=subprocess.DEVNULL, env=environment())
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = {
            "processor_seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
            "waits": after.ru_nvcsw - before.ru_nvcsw,
        }
        return {**json.loads((output / "summary.json").read_text(encoding="utf-8")), **used}


def turn(number, program, job, data_root, settings):
    order = (1, 2) if number % 2 == 0 else (2, 1)
    found = {processes: train(program, job, processes, data_root, settings) for processes in order}
    if found[1]["model_sha256"] != found[2]["model_sha256"]:
        raise ValueError(f"{job}: two processes train to other bytes than one")
    values = {
        name: {str(processes): found[processes][name] for processes in found}
        for name in ("images_per_second", "processor_seconds", "waits")
    }
    return {"job": job, "turn": number, **values, "load": os.getloadavg()[0]}


def ratios_of(name, rows):
    """Describes the value of two processes over that of one."""
    ratios = sorted(row[name]["2"] / row[name]["1"] for row in rows)
    return f"{statistics.median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", nargs="+")
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/release/arbalest")
    parser.add_argument("--data-root", default=os.environ.get("ARBALEST_DATA", "data"))
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--set", action="append", default=["training.max_epochs=1"], help="a setting of all runs")
    parser.add_argument("--results", type=pathlib.Path, required=True, help="file of the results; goes on if it has some")
    arguments = parser.parse_args()
    lines = arguments.results.read_text(encoding="utf-8").splitlines() if arguments.results.exists() else []
    rows = [json.loads(line) for line in lines]
    for number in range(arguments.turns):
        for job in arguments.jobs:
            if any(row["job"] == job and row["turn"] == number for row in rows):
                continue
            rows.append(turn(number, arguments.program, job, arguments.data_root, arguments.set))
            with arguments.results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(rows[-1]) + "\n")
    for job in arguments.jobs:
        of_job = [row for row in rows if row["job"] == job]
        print(
            f"{job}: two processes have {ratios_of('images_per_second', of_job)} of the images/s of one, "
            f"{statistics.median(row['images_per_second']['1'] for row in of_job):,.0f}; "
            f"{ratios_of('processor_seconds', of_job)} of its processor time; "
            f"and {ratios_of('waits', of_job)} of its waits, in {len(of_job)} turns"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
