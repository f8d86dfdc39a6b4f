#!/usr/bin/env python3
"""R14: a rank of a run of four processes has a fault, of each kind and at any point; the others end, and the run can go on.

Each trial starts a small job in four processes. One of them loads a library (fault_point.cc), which has the fault at the
n-th call of a point: at the start of MPI, when a training image is opened, in a round, inside an all-reduce, when a test
image is opened, while a checkpoint is saved, or at the end of MPI. The kinds are SIGKILL, SIGSEGV, _exit(0), SIGSTOP, a
C++ exception, and the freezer where the system has one of version 1. A trial passes if

- all processes end by themselves, with an exit code that is not 0; only an exception while a checkpoint is written may
  be a warning,
- after SIGSTOP or in the freezer the code is 8,
- a survivor, the rank itself or mpirun names the rank; before MPI has started and after it has ended no survivor can,
- no process is left,
- with --resume=auto two processes go on to the bytes of a run that had no fault.

    tests/faults/dead_ranks.py                                        # CI: some trials
    tests/faults/dead_ranks.py --trials 168 --results ranks.jsonl     # every kind, rank and point
"""

import contextlib
import hashlib
import os
import pathlib
import random
import re
import shutil
import struct
import sys
import tempfile
import time
import zlib

import processes
import trials

RANKS = 4
KINDS = ("SIGKILL", "SIGSEGV", "EXIT", "SIGSTOP", "EXCEPTION", "FREEZER")
SILENT = ("SIGSTOP", "FREEZER")  # nobody but the other ranks notices these
FREEZER = pathlib.Path("/sys/fs/cgroup/freezer")  # where version 1 of cgroups is mounted
# The points, with the largest number of the call that has the fault.
POINTS = {"START": 1, "LOAD": 2, "ROUND": 400, "SUM": 400, "EVALUATION": 20, "SAVE": 5, "END": 1}
MESSAGE = "a fault of the test"  # of the exception
TIMEOUT = 5  # seconds: processes.peer_timeout_seconds
CLASSES = 4

JOB = f"""
model {{ zoo {{ lenet {{}} }} }}
data {{ images {{ directory: "./images" classes: {CLASSES} decoding {{ height: 28 width: 28 resize: 28 }} }} }}
training {{ batch_size: 8 max_epochs: 3 }}
optimizer {{ sgd {{ momentum: 0.9 }} }}
learning_rate {{ base: 0.003 }}
synchronization {{ sma {{}} }}
learners {{ per_device {{ fixed: 1 }} }}
devices: "cpu"
processes {{ peer_timeout_seconds: {TIMEOUT} }}
checkpoint {{ every_batches: 40 keep_last: 2 }}
"""


def chunk(kind, content):
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def write_images(root, numbers):
    for split, count in (("train", 160), ("test", 64)):
        for label in range(CLASSES):
            folder = root / split / f"class{label}"
            folder.mkdir(parents=True)
            for image in range(count):
                rows = b"".join(b"\0" + bytes(numbers.randrange(60 * label, 60 * label + 70) for _ in range(84)) for _ in range(28))
                head = struct.pack(">IIBBBBB", 28, 28, 8, 2, 0, 0, 0)
                png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
                (folder / f"{image}.png").write_bytes(png)


def model_of(run):
    return hashlib.sha256((run / "model.safetensors").read_bytes()).hexdigest()


@contextlib.contextmanager
def freezer():
    """A group of the freezer, which is thawed at the end; None if the system has none that we may use."""
    try:
        group = pathlib.Path(tempfile.mkdtemp(prefix="arbalest-test-", dir=FREEZER))
    except OSError:
        yield None
        return
    try:
        yield group
    finally:
        thaw(group)
        group.rmdir()


def thaw(group):
    """A process that was killed in the freezer ends when it is thawed."""
    (group / "freezer.state").write_text("THAWED", encoding="ascii")
    until = time.monotonic() + 60
    while (group / "cgroup.procs").read_text(encoding="ascii") and time.monotonic() < until:
        time.sleep(0.05)


def problem_of(kind, point, rank, code, errors):
    """What is wrong with the end of a run whose rank had a fault; "" if nothing is."""
    if "fault_point: " + kind not in errors:
        return f"the fault was not reached: {errors[:600]}"
    if code == 0 and kind == "EXCEPTION" and point == "SAVE" and MESSAGE in errors:
        return ""  # a checkpoint that cannot be written causes a warning
    if code == 0:
        return f"exit code 0: {errors[:600]}"
    if kind in SILENT and code != 8:
        return f"exit code {code}, not 8: {errors[:600]}"
    if re.search(rf"\brank {rank} (on host|with PID|on node)|Process name: \[\[\d+,\d+\],{rank}\]", errors):
        return ""
    if point == "START" and "MPI has not started" in errors:
        return ""
    if point == "END" and "MPI does not end" in errors:
        return ""
    return f"exit code {code}, and nobody names rank {rank}: {errors[:600]}"


def cases(has_freezer):
    """All cases, in an order in which the first differ in all respects, and those that take two minutes come last."""
    found = [(kind, rank, point) for point in POINTS for rank in range(RANKS) for kind in KINDS]
    found = [case for case in found if has_freezer or case[0] != "FREEZER"]
    random.Random(1535).shuffle(found)  # the first eight cases have every kind, rank and point
    return sorted(found, key=lambda case: case[2] == "START" and case[0] in SILENT)


class Trials:
    def __init__(self, program, library, root, group):
        self.program = program
        self.library = library
        self.root = root
        self.group = group
        self.cases = cases(group is not None)
        self.expected = ""

    def train_without_fault(self):
        words = [self.root / "job.txtpb", "-q", "--output", self.root / "whole"]
        code, errors = processes.end(processes.launch(self.program, RANKS, words, self.root))
        self.expected = model_of(self.root / "whole") if code == 0 else ""
        return "" if code == 0 else f"the run without a fault ends with exit code {code}: {errors}"

    def trial(self, number):
        kind, rank, point = self.cases[number % len(self.cases)]
        count = random.Random(number).randint(1, POINTS[point])
        run = self.root / f"run-{number}"
        fault = {"LD_PRELOAD": self.library, "FAULT_KIND": kind, "FAULT_POINT": point, "FAULT_COUNT": count}
        if self.group is not None:
            fault["FAULT_FREEZER"] = self.group
        words = [self.root / "job.txtpb", "--quiet", "--output", run]
        begin = time.monotonic()
        code, errors = processes.end(processes.launch(self.program, RANKS, words, self.root, {rank: fault}))
        seconds = time.monotonic() - begin
        if kind == "FREEZER":
            thaw(self.group)
        problem = problem_of(kind, point, rank, code, errors)
        left = processes.left_over(str(run))
        if left:
            problem = f"the processes {left} are left"
        row = {"kind": kind, "rank": rank, "point": point, "count": count, "code": code, "seconds": round(seconds, 1)}
        row["problem"] = problem or self.problem_of_resumption(run)
        shutil.rmtree(run, ignore_errors=True)  # a fault at the start comes before the run has a directory
        return row

    def problem_of_resumption(self, run):
        words = [self.root / "job.txtpb", "--quiet", "--output", run, "--resume=auto", "--set", "learners.per_device.fixed=2"]
        code, errors = processes.end(processes.launch(self.program, 2, words, self.root))
        if code != 0:
            return f"resumed with exit code {code}: {errors[:400]}"
        return "" if model_of(run) == self.expected else "the resumed run has other bytes"


def main():
    arguments = trials.parser(__doc__, 8).parse_args()
    build = pathlib.Path(arguments.build).resolve()
    program, library = build / "arbalest", build / "tests/faults/libfault_point.so"
    reason = processes.missing(program)
    if reason:
        print(f"skipped: {reason}")
        return processes.SKIPPED
    arguments.at_once = 1  # four processes already share the cores
    with processes.scratch() as name, freezer() as group:
        root = pathlib.Path(name)
        write_images(root / "images", random.Random(1))
        (root / "job.txtpb").write_text(JOB, encoding="utf-8")
        faults = Trials(program, library, root, group)
        problem = faults.train_without_fault()
        if problem:
            print(problem, file=sys.stderr)
            return 1

        def text(rows):
            slowest = max(row.get("seconds", 0) for row in rows)
            freezers = "" if group is not None else "; no freezer of version 1, so without its cases"
            return f"runs ended as they must after the fault of a rank; the slowest took {slowest:.1f} s{freezers}"

        return trials.run(arguments, faults.trial, text)


if __name__ == "__main__":
    sys.exit(main())
