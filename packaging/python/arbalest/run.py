"""Runs: training one, and reading what one has left."""

import ctypes
import functools
import json
import logging
import os
import pathlib
import signal
import subprocess

import numpy
import safetensors.numpy

from arbalest.program import ProgramError, environment, program_path

_LOG = logging.getLogger("arbalest")
_SIGNALS_THAT_SAVE = (128 + signal.SIGHUP, 128 + signal.SIGINT, 128 + signal.SIGTERM)
_PR_SET_PDEATHSIG = 1  # <sys/prctl.h>
_prctl = ctypes.CDLL(None).prctl  # found here, because a child between fork and exec must not load anything


class Run:
    """The directory of a run, or of an imported model. Files are read when they are asked for, so a run that trains can be
    looked at."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        if not any((self.path / name).is_file() for name in ("metrics.jsonl", "job.txtpb")):
            raise FileNotFoundError(f"{self.path} is not the directory of a run: it has no metrics.jsonl and no job.txtpb")

    def __repr__(self):
        return f"Run({str(self.path)!r})"

    @property
    def events(self):
        """All lines of metrics.jsonl, as a list of dicts. An imported model has none."""
        path = self.path / "metrics.jsonl"
        if not path.exists():
            return []
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]  # the last line may be under way

    @property
    def metrics(self):
        """The numbers of the epochs: a dict of arrays of equal length, NaN where an epoch has no such number. Epochs that a
        rollback undid are left out. A name with a value that is neither a number nor null is in `events` only, such as
        learners_per_device where devices have different numbers of learners."""
        rows = []
        for event in self.events:
            if event["event"] == "epoch":
                rows.append(event)
            elif event["event"] == "rollback":
                rows = [row for row in rows if row["batch"] <= event["to_batch"]]
        names = dict.fromkeys(name for row in rows for name in row)
        columns = {name: [row.get(name) for row in rows] for name in names}
        return {
            name: numpy.array([_number(value) for value in values])
            for name, values in columns.items()
            if all(map(_is_number_or_none, values))
        }

    @property
    def summary(self):
        """How the run ended, as a dict, or None while it trains."""
        path = self.path / "summary.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None

    @property
    def job(self):
        """The job with all defaults, in protobuf's text format."""
        return (self.path / "job.txtpb").read_text(encoding="utf-8")

    def weights(self, which="last"):
        """Returns a dict from the names of tensors to arrays. which: "last" or "best"."""
        files = {"last": "model.safetensors", "best": "best.safetensors"}
        if which not in files:
            raise ValueError(f"which is {which!r}; it must be one of {', '.join(map(repr, files))}")
        return safetensors.numpy.load_file(self.path / files[which])


def load_run(path):
    """Returns the run in a directory. Raises FileNotFoundError if there is none."""
    return Run(path)


def train(job, output, settings=None, *, data_root=None, resume="none", progress=False):
    """Trains a job and returns its run.

    job: the path of a job file. output: the directory of the run. settings: fields of the job to replace, such as
    {"training.batch_size": 16}. data_root: where the datasets are. resume: "none", "auto", or a checkpoint or run to go
    on from. progress: whether the program writes its progress to standard error.

    Raises ProgramError if the job is refused or the run fails. On KeyboardInterrupt, or another exception of a signal
    handler, it waits until the program has saved the model and a checkpoint, and raises the exception again. If this
    process is killed, the program saves as well and ends.
    """
    command = [os.fspath(program_path()), "train", os.fspath(job), "--output", os.fspath(output), f"--resume={resume}"]
    for path, value in (settings or {}).items():
        command += ["--set", f"{path}={_text(value)}"]
    if data_root is not None:
        command += ["--data-root", os.fspath(data_root)]
    if not progress:
        command.append("--quiet")
    errors = None if progress else subprocess.PIPE
    # A session of its own: a terminal's Ctrl-C comes to this process only, and _wait() passes it on, once.
    with subprocess.Popen(
        command,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=errors,
        text=True,
        start_new_session=True,
        preexec_fn=functools.partial(_end_with_parent, os.getpid()),
    ) as started:
        try:
            said = _wait(started)
        finally:
            started.terminate()  # Does nothing if the program has ended. Otherwise `with` waits until it has saved.
    if started.returncode in _SIGNALS_THAT_SAVE:
        raise KeyboardInterrupt
    if started.returncode != 0:
        message = said.strip() or f"arbalest ended with exit code {started.returncode}"
        raise ProgramError(message, started.returncode)
    for line in said.splitlines():
        _LOG.warning("%s", line)
    return Run(output)


def _end_with_parent(parent):
    """Runs in the child before the program does: SIGTERM comes to the program when this process ends."""
    # Linux sends the signal when the thread that called train() ends. That thread waits for the program.
    _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # it ended before the call
        os._exit(128 + signal.SIGTERM)


def _wait(started):
    """Returns what the program wrote to standard error. Each KeyboardInterrupt becomes a SIGINT for the program: the first
    lets it save, the second ends it at once."""
    interrupted = False
    while True:
        try:
            said = started.communicate()[1]
        except KeyboardInterrupt:
            interrupted = True
            started.send_signal(signal.SIGINT)
            continue
        if interrupted:
            raise KeyboardInterrupt
        return said or ""


def _text(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _is_number_or_none(value):
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))


def _number(value):
    return numpy.nan if value is None else value
