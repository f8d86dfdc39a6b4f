#!/usr/bin/env python3
"""R22: a long run with many resizes, saves and evaluations, whose memory, threads and open files must not grow.

One process of `arbalest train` trains a small model. Its schedule changes the number of learners `--resizes` times, every
epoch is evaluated, and checkpoints are saved `--saves` times. This script samples the process. The run fails if it ends
with an error, or if something has grown from the second quarter of the samples (the first is the warm-up) to the last:
the resident memory by more than the bound (medians), or the threads or open files at all. Those change with the number of
learners and during a save, so their fewest in a quarter are compared: a leak raises them.

    tests/faults/soak.py                                                               # CI
    tests/faults/soak.py --batches 1000000 --resizes 1000 --saves 10000 --results soak.jsonl   # the scorecard's size

With --results each part of a long run is recorded as it ends, and the same command goes on with the next part.
"""

import argparse
import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

import trials
from kill_runs import rows_of, write_ratings

BATCH = 4
LEARNERS = [1, 2, 3]
MEMORY_GROWTH = 0.01
MEMORY_SLACK = 1 << 20  # bytes; the log's rows and the list of resizes grow by design


def job(batches, resizes, saves, evaluations):
    per_epoch = max(12, batches // evaluations)
    every = max(1, batches // saves)
    # Each step must be a multiple of the learners before it, counted from the step before.
    interval = batches // (resizes + 1) // 6 * 6
    if interval == 0:
        raise ValueError("so many resizes need more mini-batches: at least 6 between two of them")
    steps = "".join(
        f" step {{ at_batch: {interval * i} learners: {LEARNERS[i % len(LEARNERS)]} }}" for i in range(resizes + 1)
    )
    text = f"""
model {{ zoo {{ matrix_factorization {{ width: 4 mean: 3.0 }} }} }}
data {{ ratings {{ directory: "./ratings" sizes: [40, 30] }} }}
training {{ batch_size: {BATCH} max_epochs: {batches // per_epoch} }}
optimizer {{ sgd {{ momentum: 0.9 }} }}
learning_rate {{ base: 0.01 }}
synchronization {{ sma {{}} }}
learners {{ per_device {{ schedule {{{steps} }} }} }}
devices: "cpu"
checkpoint {{ every_batches: {every} keep_last: 2 }}
"""
    return text, per_epoch * BATCH


def sample(process):
    """Returns (resident bytes, threads, open files) of a process; None if it has ended."""
    try:
        status = pathlib.Path(f"/proc/{process}/status").read_text(encoding="ascii")
        fields = dict(line.split(":", 1) for line in status.splitlines())
        files = len(list(pathlib.Path(f"/proc/{process}/fd").iterdir()))
        return int(fields["VmRSS"].split()[0]) * 1024, int(fields["Threads"]), files
    except (OSError, KeyError):
        return None


def watch(process, interval):
    """Samples a process until it ends. Returns the samples, each with its second."""
    samples, begin = [], time.monotonic()
    while process.poll() is None:
        found = sample(process.pid)
        if found is not None and process.poll() is None:
            samples.append([round(time.monotonic() - begin, 2), *found])
        time.sleep(interval)
    return samples


def growth(samples):
    """Returns what has grown, "" if nothing."""
    if len(samples) < 16:
        return f"only {len(samples)} samples"
    quarter = len(samples) // 4
    early, late = samples[quarter : 2 * quarter], samples[-quarter:]
    memory = [statistics.median(row[1] for row in part) for part in (early, late)]
    if memory[1] > memory[0] * (1 + MEMORY_GROWTH) + MEMORY_SLACK:
        return f"the resident memory grew from {memory[0]:,.0f} to {memory[1]:,.0f} bytes"
    for column, what in ((2, "threads"), (3, "open files")):
        fewest = [min(row[column] for row in part) for part in (early, late)]
        if fewest[1] > fewest[0]:
            return f"the {what} grew from {fewest[0]} to {fewest[1]}"
    return ""


def counts_of(run):
    rows = rows_of(run)
    count = {name: sum(row["event"] == name for row in rows) for name in ("epoch", "resize", "checkpoint")}
    count["batches"] = max((row["batch"] for row in rows if row["event"] == "checkpoint"), default=0)
    return count


def soak(program, batches, resizes, saves, evaluations):
    """Returns a row of the results."""
    with tempfile.TemporaryDirectory(dir=trials.scratch_directory()) as name:
        root = pathlib.Path(name)
        text, examples = job(batches, resizes, saves, evaluations)
        write_ratings(root / "ratings", random.Random(4), examples)
        (root / "job.txtpb").write_text(text, encoding="utf-8")
        command = [program, "train", str(root / "job.txtpb"), "--quiet", "--output", str(root / "run")]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
            samples = watch(process, 0.05)
            errors = process.communicate()[1]
        problem = "" if process.returncode == 0 else f"exit code {process.returncode}: {errors[-500:]}"
        count = counts_of(root / "run") if not problem else {}
    problem = problem or growth(samples)
    if not problem and count["resize"] < resizes:
        problem = f"only {count['resize']} of {resizes} resizes"
    if not problem and count["checkpoint"] < saves // 4:
        problem = f"only {count['checkpoint']} of {saves} checkpoints"
    kept = samples[:: max(1, len(samples) // 200)]
    return {**count, "seconds": samples[-1][0] if samples else 0, "samples": kept, "problem": problem}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release", help="directory of the build (default: build/release)")
    parser.add_argument("--batches", type=int, default=20000)
    parser.add_argument("--resizes", type=int, default=40)
    parser.add_argument("--saves", type=int, default=200)
    parser.add_argument("--evaluations", type=int, help="evaluations (default: as many as saves)")
    parser.add_argument("--parts", type=int, default=1, help="runs that share the work, one after another (default: 1)")
    parser.add_argument("--results", help="file of the results, a line for each part; goes on if it has some")
    arguments = parser.parse_args()
    program = str((pathlib.Path(arguments.build) / "arbalest").resolve())
    evaluations = arguments.evaluations or arguments.saves
    results = pathlib.Path(arguments.results) if arguments.results else None
    rows = trials.read_rows(results)
    for part in range(arguments.parts):
        if part in rows:
            continue
        numbers = (arguments.batches, arguments.resizes, arguments.saves, evaluations)
        rows[part] = {"trial": part, **soak(program, *(number // arguments.parts for number in numbers))}
        if results is not None:
            with results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(rows[part]) + "\n")
    failed = [row["problem"] for row in rows.values() if row["problem"]]
    for problem in failed:
        print(problem, file=sys.stderr)
    total = {name: sum(row.get(name, 0) for row in rows.values()) for name in ("batches", "resize", "checkpoint", "epoch")}
    print(
        f"{total['batches']} mini-batches, {total['resize']} resizes, {total['checkpoint']} checkpoints, "
        f"{total['epoch']} evaluations: memory, threads and open files "
        + ("have grown" if failed else "are constant")
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
