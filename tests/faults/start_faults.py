#!/usr/bin/env python3
"""R3s: a run whose every system call on its own directory fails once, from the first one of the start to the end.

strace lists the calls of the main thread that name the run's directory or a file in it. A trial lets one of them fail, with
EIO, ENOSPC or EACCES; strace counts by thread, so the call of that number fails in the thread of the checkpoints, too. A
trial passes if the run ends with exit code 0 or that of a disk, a file or a directory that cannot be used, with a message,
and the same command then goes on to the outcome of an undisturbed run.

    tests/faults/start_faults.py --trials 1000 --results start-faults.jsonl    # every call with every error
"""

import pathlib
import random
import re
import subprocess
import sys
import tempfile

import trials
from kill_runs import outcome, write_ratings
from polite_stops import BATCHES_PER_EPOCH, JOB, command

ERRORS = ["EIO", "ENOSPC", "EACCES"]
CODES = {0, 1, 2, 5, 6}  # completed; a file; the directory; a checkpoint that cannot be read; the disk is full
# What changes a directory or a file, and what opens them. Of the others a failure has no meaning.
CALLS = ["openat", "open", "mkdir", "mkdirat", "write", "pwrite64", "fsync", "fdatasync", "rename", "renameat", "renameat2",
         "link", "linkat", "unlink", "unlinkat", "ftruncate", "flock", "fcntl", "statfs", "fstatfs", "newfstatat", "getdents64"]
STRACE = ["strace", "-f", "-qq", "-y", "-s", "4096"]


def calls_of(train, run, trace):
    """The calls of the main thread of `train` on the run's directory: names, and their numbers among its calls of that
    name. strace writes the file `trace`."""
    traced = [*STRACE, "-e", "trace=" + ",".join(CALLS), "-o", str(trace), *train]
    subprocess.run(traced, check=True, stdout=subprocess.DEVNULL, timeout=trials.LIMIT)
    found, counts, main = [], {}, None
    for line in trace.read_text(encoding="utf-8", errors="replace").splitlines():
        match = re.match(r"(\d+) +(\w+)\(", line)
        if match is None:
            continue  # the end of a call that another thread's line has cut in two
        thread, name = match.groups()
        main = main or thread
        if thread != main:
            continue
        counts[name] = counts.get(name, 0) + 1
        if str(run) in line:
            found.append((name, counts[name]))
    return found


def names_the_fault(message, run):
    """Whether the last error names a path of the run and is not called a bug."""
    error = message.rpartition("error: ")[2] if "error: " in message else ""
    return f"'{run}" in error and "please report this" not in error


def trial(program, root, expected, faults, number):
    (name, when), error = faults[number]
    with tempfile.TemporaryDirectory(dir=root) as directory:
        run = pathlib.Path(directory) / "run"
        train = command(program, root, run)
        inject = f"inject={name}:error={error}:when={when}"
        faulty = [*STRACE, "-e", f"trace={name}", "-e", inject, "-o", "/dev/null", *train]
        ended = subprocess.run(faulty, capture_output=True, text=True, check=False, timeout=trials.LIMIT)
        row = {"call": name, "when": when, "error": error, "exit_code": ended.returncode, "problem": ""}
        if ended.returncode not in CODES:
            row["problem"] = f"exit code {ended.returncode}: {ended.stderr[-500:]}"
        elif ended.returncode != 0 and not names_the_fault(ended.stderr, run):
            row["problem"] = f"exit code {ended.returncode} without a message: {ended.stderr[-500:]}"
        if row["problem"]:
            return row
        again = subprocess.run(train, capture_output=True, text=True, check=False, timeout=trials.LIMIT)
        if again.returncode != 0:
            row["problem"] = f"then exit code {again.returncode}: {again.stderr[-500:]}"
        elif outcome(run) != expected:
            row["problem"] = f"then another outcome: {outcome(run)} instead of {expected}"
    return row


def main():
    arguments = trials.parser(__doc__, 40).parse_args()
    program = str((pathlib.Path(arguments.build) / "arbalest").resolve())
    with tempfile.TemporaryDirectory(dir=trials.scratch_directory()) as name:
        root = pathlib.Path(name).resolve()
        write_ratings(root / "ratings", random.Random(3), BATCHES_PER_EPOCH * 16)
        (root / "job.txtpb").write_text(JOB, encoding="utf-8")
        subprocess.run(command(program, root, root / "whole"), check=True, stdout=subprocess.DEVNULL, timeout=trials.LIMIT)
        expected = outcome(root / "whole")
        faults = [(call, error) for call in calls_of(command(program, root, root / "listed"), root / "listed", root / "trace") for error in ERRORS]
        random.Random(1).shuffle(faults)
        arguments.trials = min(arguments.trials, len(faults))
        return trials.run(
            arguments,
            lambda number: trial(program, root, expected, faults, number),
            f"runs with one of {len(faults)} failing calls",
        )


if __name__ == "__main__":
    sys.exit(main())
