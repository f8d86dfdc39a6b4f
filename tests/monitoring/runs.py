"""Trains small jobs, for the tests of this folder."""

import json
import os
import pathlib
import signal
import subprocess
import time

PROGRAM = os.environ["ARBALEST_PROGRAM"]
CHECKPOINT_EPOCHS = 40  # between two checkpoints
JOB = pathlib.Path(os.environ["ARBALEST_SOURCE"], "configs", "logistic-digits.txtpb")


def command(output, epochs, *more):
    """Two learners. The checkpoints are so far apart that a kill after one comes before the next."""
    return [
        PROGRAM,
        "train",
        str(JOB),
        "--quiet",
        f"--output={output}",
        "--set=learners.per_device.fixed=2",
        f"--set=training.max_epochs={epochs}",
        f"--set=checkpoint.every_epochs={CHECKPOINT_EPOCHS}",
        *more,
    ]


def train(output, epochs, *more):
    subprocess.run(command(output, epochs, *more), check=True, stdout=subprocess.DEVNULL)


def rows(output, *events):
    """Returns the lines of metrics.jsonl with these events."""
    path = pathlib.Path(output, "metrics.jsonl")
    lines = path.read_text().splitlines() if path.exists() else []
    return [row for row in map(json.loads, lines) if row["event"] in events]


def train_and_kill(output, epochs):
    """Kills a run that has trained an epoch past its checkpoint."""
    with subprocess.Popen(command(output, epochs), stdout=subprocess.DEVNULL) as run:
        try:
            while not (rows(output, "checkpoint") and rows(output, "epoch")[-1]["epoch"] > CHECKPOINT_EPOCHS):
                if run.poll() is not None:
                    raise AssertionError("the run ended before it could be killed")
                time.sleep(0.01)
        finally:
            run.send_signal(signal.SIGKILL)
