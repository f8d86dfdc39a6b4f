#!/usr/bin/env python3
"""R1h: a run that is killed again and again for a long time, and started again by the same command, always gets on.

The program is started with --resume=auto, killed with SIGKILL after a random time (exponential, at least a second), and
started again. Each kill is a line of the results: seconds, and the mini-batches of the newest checkpoint before and after.
It passes if no start is refused, no checkpoint is lost, every start that lived long enough to save has saved, and the run,
let to the end of its next epoch, has the bytes of one that was never killed.

    tests/faults/kill_loop.py --minutes 60 --results kill-loop.jsonl
"""

import argparse
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

import trials
from kill_runs import outcome

BATCHES_PER_EPOCH = 625  # 20,000 digits in mini-batches of 32
EVERY = 50  # mini-batches between two checkpoints
LONG_ENOUGH = 10.0  # seconds in which a start always saves

JOB = f"""
name: "killed"
model {{ zoo {{ lenet {{}} }} }}
data {{ digits {{}} }}
training {{ batch_size: 32 max_epochs: 100000 }}
optimizer {{ sgd {{ momentum: 0.9 }} }}
learning_rate {{ base: 0.01 }}
learners {{ per_device {{ fixed: 2 }} }}
devices: "cpu"
checkpoint {{ every_batches: {EVERY} keep_last: 2 keep_best: 0 }}
"""


def saved(run):
    """The mini-batches of the newest checkpoint; 0 if there is none."""
    names = [path.name for path in (run / "checkpoints").glob("0*") if path.name.isdigit()]
    return max(map(int, names), default=0)


def kill_once(command, run, seconds):
    """Starts the program and kills it. Returns a row."""
    before = saved(run)
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    time.sleep(seconds)
    ended_itself = process.poll() is not None
    process.send_signal(signal.SIGKILL)
    errors = trials.ended(process)
    after = saved(run)
    row = {"seconds": round(seconds, 2), "before": before, "after": after, "problem": ""}
    if ended_itself:
        row["problem"] = f"it ended with exit code {process.returncode}: {errors[-500:]}"
    elif after < before:
        row["problem"] = "a checkpoint is lost"
    elif seconds >= LONG_ENOUGH and after == before:
        row["problem"] = "no checkpoint in all that time"
    return row


def compare(program, job, run, root):
    """Lets the run go on to the end of an epoch. Returns what differs from a run that was never killed."""
    epochs = saved(run) // BATCHES_PER_EPOCH + 1
    words = ["--quiet", "--set", f"training.max_epochs={epochs}"]
    found = []
    for output, more in ((run, ["--resume=auto"]), (root / "whole", [])):
        command = [program, "train", str(job), "--output", str(output), *words, *more]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        if ended.returncode != 0:
            return f"'{output.name}' ended with exit code {ended.returncode}: {ended.stderr[-500:]}"
        found.append(outcome(output))
    return "" if found[0] == found[1] else f"another outcome: {found[0]} instead of {found[1]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release", help="directory of the build (default: build/release)")
    parser.add_argument("--minutes", type=float, default=1.0, help="for how long (default: 1)")
    parser.add_argument("--mean", type=float, default=4.0, help="mean seconds between two kills (default: 4)")
    parser.add_argument("--results", help="file of the results")
    arguments = parser.parse_args()
    program = str((pathlib.Path(arguments.build) / "arbalest").resolve())
    numbers = random.Random(1)
    rows = []
    with tempfile.TemporaryDirectory(dir=trials.scratch_directory()) as name:
        root = pathlib.Path(name)
        job, run = root / "job.txtpb", root / "run"
        job.write_text(JOB, encoding="utf-8")
        command = [program, "train", str(job), "--quiet", "--output", str(run), "--resume=auto"]
        begin = time.monotonic()
        while time.monotonic() - begin < 60.0 * arguments.minutes:
            rows.append(kill_once(command, run, 1.0 + numbers.expovariate(1.0 / arguments.mean)))
            if arguments.results:
                with open(arguments.results, "a", encoding="utf-8") as file:
                    file.write(json.dumps(rows[-1]) + os.linesep)
            if rows[-1]["problem"]:
                break
        problem = rows[-1]["problem"] or compare(program, job, run, root)
        epochs = saved(run) / BATCHES_PER_EPOCH
    if problem:
        print(f"kill {len(rows)}: {problem}", file=sys.stderr)
    gained = sum(row["after"] > row["before"] for row in rows)
    print(f"{len(rows) - bool(problem)} of {len(rows)} kills of one run, {gained} starts saved, "
          f"{epochs / len(rows):.2f} epochs per kill")
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main())
