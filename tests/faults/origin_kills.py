#!/usr/bin/env python3
"""R3k: a run that goes on from another one's checkpoint is killed at each of its system calls, and never forgets that.

strace kills the run at one call of its main thread that names its directory or a file in it. Then --resume=auto must go on
from the other run's checkpoint, or from one of the run's own, or say that the other run must be named again. Only in an
empty directory, where nothing was recorded, may it begin anew. The command that was killed must always go on.

    tests/faults/origin_kills.py --trials 1000 --results origin-kills.jsonl    # every call
"""

import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

import trials
from kill_runs import rows_of, write_ratings
from polite_stops import BATCHES_PER_EPOCH, JOB
from start_faults import STRACE, calls_of


def train(program, root, run, resume):
    return [program, "train", str(root / "job.txtpb"), "--quiet", "--output", str(run), f"--resume={resume}"]


def finished(words):
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=trials.LIMIT)


def first_batches(run):
    """The mini-batches at which the processes of a run that has ended went on; 0 for one that began anew."""
    return [row["batch"] if row["event"] == "resume" else 0 for row in rows_of(run) if row["event"] in ("start", "resume")]


def problem_after(words, run, origin):
    ended = finished(words)
    if ended.returncode == 2 and "give that again with --resume" in ended.stderr:
        return ""
    if ended.returncode != 0:
        return f"exit code {ended.returncode}: {ended.stderr[-500:]}"
    batches = [batch for batch in first_batches(run) if batch > 0]
    return "" if batches and min(batches) >= origin else f"went on at {batches}, not at {origin}"


def trial(program, root, origin, calls, number):
    name, when = calls[number]
    with tempfile.TemporaryDirectory(dir=root) as directory:
        run = pathlib.Path(directory) / "run"
        words = train(program, root, run, root / "whole/checkpoints" / f"{origin:012}")
        killed = [*STRACE, "-e", f"trace={name}", "-e", f"inject={name}:signal=KILL:when={when}", "-o", "/dev/null", *words]
        code = finished(killed).returncode
        row = {"call": name, "when": when, "exit_code": code, "problem": ""}
        again = pathlib.Path(directory) / "again"
        if run.exists():
            shutil.copytree(run, again)
        if again.exists() and any(again.iterdir()):
            row["problem"] = problem_after(train(program, root, again, "auto"), again, origin)
        # A run that has checkpoints of its own goes on by --resume=auto only.
        if not row["problem"] and not (run / "checkpoints").exists():
            row["problem"] = problem_after(words, run, origin)
    return row


def main():
    arguments = trials.parser(__doc__, 60).parse_args()
    program = str((pathlib.Path(arguments.build) / "arbalest").resolve())
    with tempfile.TemporaryDirectory(dir=trials.scratch_directory()) as name:
        root = pathlib.Path(name).resolve()
        write_ratings(root / "ratings", random.Random(3), BATCHES_PER_EPOCH * 16)
        (root / "job.txtpb").write_text(JOB.replace("keep_last: 2", "keep_last: 10"), encoding="utf-8")
        subprocess.run(train(program, root, root / "whole", "none"), check=True, stdout=subprocess.DEVNULL)
        origin = 2 * BATCHES_PER_EPOCH
        listed = root / "listed"
        calls = calls_of(train(program, root, listed, root / "whole/checkpoints" / f"{origin:012}"), listed, root / "trace")
        arguments.trials = min(arguments.trials, len(calls))
        return trials.run(
            arguments,
            lambda number: trial(program, root, origin, calls, number),
            f"kills at the first of {len(calls)} calls",
        )


if __name__ == "__main__":
    sys.exit(main())
