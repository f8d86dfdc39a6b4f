#!/usr/bin/env python3
"""R14: a rank of a run of four processes dies, in each way and at any time; the others end, and the run can go on.

Each trial starts a small job in four processes, waits until the run has come to a stage, and then disturbs one rank:
SIGKILL, SIGSEGV or SIGSTOP, or the freezer where the system has one. Under SIGKILL and SIGSEGV mpirun usually ends the
others first, and names the rank. A trial passes if

- all processes end by themselves, with an exit code that is not 0,
- after SIGSTOP, or in the freezer, the code is 8, and a survivor names the rank,
- no process is left,
- with --resume=auto two processes go on to the bytes of a run that was never disturbed.

    tests/faults/dead_ranks.py                                        # CI: some trials
    tests/faults/dead_ranks.py --trials 240 --results ranks.jsonl     # every kind, rank and stage, five times
"""

import hashlib
import os
import pathlib
import random
import signal
import sys
import time

import kill_runs
import processes
import trials

RANKS = 4
KINDS = ("SIGKILL", "SIGSEGV", "SIGSTOP")
# Each stage begins when the run has written so much: its directory, its first checkpoint, its first epoch, its last one.
STAGES = ("start", "training", "evaluation", "end")
TIMEOUT = 3  # seconds: processes.peer_timeout_seconds

JOB = f"""
model {{ zoo {{ lenet {{}} }} }}
data {{ npy {{ directory: "./images28" classes: 10 channels: 1 height: 28 width: 28 }} }}
training {{ batch_size: 8 max_epochs: 6 }}
optimizer {{ sgd {{ momentum: 0.9 }} }}
learning_rate {{ base: 0.003 }}
synchronization {{ sma {{}} }}
learners {{ per_device {{ fixed: 1 }} }}
processes {{ peer_timeout_seconds: {TIMEOUT} }}
checkpoint {{ every_batches: 40 keep_last: 2 }}
"""


def has_begun(run, stage, process):
    log = run / "metrics.jsonl"
    text = log.read_text(encoding="utf-8") if log.exists() else ""
    if stage == "start":
        return len(processes.ranks_of(process)) == RANKS
    if stage == "training":
        return '"checkpoint"' in text
    return text.count('"event":"epoch"') >= (1 if stage == "evaluation" else 5)


def wait_for(run, stage, process, numbers):
    """Waits until the stage has begun, and a random time more. Returns whether the run is still under way."""
    while process.poll() is None and not has_begun(run, stage, process):
        time.sleep(0.002)
    time.sleep(numbers.uniform(0, 0.2))
    return process.poll() is None


def model_of(run):
    return hashlib.sha256((run / "model.safetensors").read_bytes()).hexdigest()


def left_over(run):
    """The processes that still train into this directory."""
    found = []
    for path in pathlib.Path("/proc").iterdir():
        try:
            if path.name.isdigit() and str(run).encode() in (path / "cmdline").read_bytes():
                found.append(int(path.name))
        except OSError:
            continue
    return found


def disturbed(program, root, run, kind, rank, stage, numbers):
    """Returns what is wrong with the end of a run whose rank was disturbed; "" if nothing is; None if it had ended."""
    words = [root / "job.txtpb", "--quiet", "--output", run]
    process = processes.launch(program, RANKS, words, root)
    hit = wait_for(run, stage, process, numbers)
    ranks = processes.ranks_of(process)
    hit = hit and rank in ranks
    if hit:
        try:
            os.kill(ranks[rank], getattr(signal, kind))
        except ProcessLookupError:
            hit = False
    begin = time.monotonic()
    code, errors = processes.end(process)
    seconds = time.monotonic() - begin
    left = left_over(run)
    if left:
        return f"the processes {left} are left {seconds:.0f} s after the disturbance", seconds
    if not hit or (code == 0 and stage == "end"):
        return None, seconds
    if code == 0:
        return "exit code 0", seconds
    if kind == "SIGSTOP" and (code != 8 or f"rank {rank} on host" not in errors):
        return f"exit code {code}, and no survivor names rank {rank}: {errors[-400:]}", seconds
    return "", seconds


def main():
    arguments = trials.parser(__doc__, 8)
    arguments = arguments.parse_args()
    program = pathlib.Path(arguments.build).resolve() / "arbalest"
    reason = processes.missing(program)
    if reason:
        print(f"skipped: {reason}")
        return processes.SKIPPED
    arguments.at_once = 1  # four processes already share the cores
    cases = [(kind, rank, stage) for stage in STAGES for rank in range(RANKS) for kind in KINDS]
    with processes.scratch() as name:
        root = pathlib.Path(name)
        kill_runs.write_images(root / "images28", 28, 1, 640, random.Random(1))
        (root / "job.txtpb").write_text(JOB, encoding="utf-8")
        code, errors = processes.end(processes.launch(program, RANKS, [root / "job.txtpb", "-q", "--output", root / "whole"], root))
        if code != 0:
            print(f"the undisturbed run ends with exit code {code}: {errors}", file=sys.stderr)
            return 1
        expected = model_of(root / "whole")

        def trial(number):
            # Steps through the cases so that the first ones differ in all respects.
            kind, rank, stage = cases[number * 7 % len(cases)]
            run = root / f"run-{number}"
            problem, seconds = disturbed(program, root, run, kind, rank, stage, random.Random(number))
            row = {"kind": kind, "rank": rank, "stage": stage, "hit": problem is not None, "seconds": round(seconds, 1)}
            if not problem:
                again = [root / "job.txtpb", "--quiet", "--output", run, "--resume=auto", "--set",
                         "learners.per_device.fixed=2"]
                code, errors = processes.end(processes.launch(program, 2, again, root))
                if code != 0:
                    problem = f"resumed with exit code {code}: {errors[-400:]}"
                elif model_of(run) != expected:
                    problem = "the resumed run has other bytes"
            return {**row, "problem": problem or ""}

        def text(rows):
            slowest = max(row.get("seconds", 0) for row in rows)
            return f"runs with a dead rank, {sum(row.get('hit', False) for row in rows)} of them hit before their end; the slowest ended after {slowest:.1f} s"

        return trials.run(arguments, trial, text)


if __name__ == "__main__":
    sys.exit(main())
