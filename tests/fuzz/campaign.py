#!/usr/bin/env python3
"""Fuzzes every target up to a number of executions, over as many starts as it takes.

    make build PRESET=fuzz
    nice -n 19 tests/fuzz/campaign.py --build build/fuzz --results fuzzing.jsonl --executions 1000000

The targets take turns. A turn is one process with a seed of its own, and a line of the results when it has ended. What the
targets learn stays in the build directory. The same command goes on after the last line. A finding ends the campaign:
run.sh keeps the input.
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
# Executions in a turn, for turns of some minutes.
TURNS = {
    "safetensors": 300000,
    "manifest": 60000,
    "job": 20000,
    "idx": 100000,
    "image": 60000,
    "libsvm": 60000,
    "npy": 100000,
    "onnx": 100000,
    "tar": 60000,
    "tfrecord": 60000,
    "cifar": 60000,
}


def commit():
    named = subprocess.run(["git", "-C", str(HERE), "describe", "--always", "--dirty"], capture_output=True, text=True)
    return named.stdout.strip()


def turn(build, target, executions, seed):
    """Returns a row of the results, and what run.sh said if there was a finding."""
    environment = {**os.environ, "FUZZ_SEED": str(seed)}
    done = subprocess.run(
        [str(HERE / "run.sh"), build, str(executions), target], env=environment, capture_output=True, text=True
    )
    found = re.search(r": (\d+) executions, no finding", done.stdout)
    row = {
        "target": target,
        "seed": seed,
        "executions": int(found[1]) if found else 0,
        "finding": done.returncode != 0 or not found,
        "commit": commit(),
        "ended": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M"),
    }
    return row, done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/fuzz", help="directory of the build (default: build/fuzz)")
    parser.add_argument("--executions", type=int, default=1000000, help="of each target (default: 1,000,000)")
    parser.add_argument("--results", required=True, help="file of the results; goes on if it has some")
    parser.add_argument("--targets", nargs="+", default=list(TURNS), choices=list(TURNS))
    arguments = parser.parse_args()
    results = pathlib.Path(arguments.results)
    lines = results.read_text(encoding="utf-8").splitlines() if results.exists() else []
    rows = [json.loads(line) for line in lines]
    done = {target: sum(row["executions"] for row in rows if row["target"] == target) for target in arguments.targets}
    seed = max((row["seed"] for row in rows), default=1)
    while unfinished := [target for target in arguments.targets if done[target] < arguments.executions]:
        for target in unfinished:
            seed += 1
            row, errors = turn(arguments.build, target, min(TURNS[target], arguments.executions - done[target]), seed)
            with results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            if row["finding"]:
                print(errors, file=sys.stderr)
                return 1
            done[target] += row["executions"]
    for target in arguments.targets:
        print(f"{target}: {done[target]} executions, no finding")
    return 0


if __name__ == "__main__":
    sys.exit(main())
