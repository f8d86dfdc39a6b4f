"""Runs the programs under test, and other programs' models, on the same numbers."""

import json
import os
import pathlib
import struct
import subprocess

import numpy as np

PROGRAM = os.environ["ARBALEST_PROGRAM"]
PROBE = os.environ["ARBALEST_MODEL_PROBE"]


def completed(arguments, code):
    """Runs a program that must end with this exit code."""
    done = subprocess.run([str(argument) for argument in arguments], capture_output=True, text=True, check=False)
    if done.returncode != code:
        raise AssertionError(f"{arguments} ended with {done.returncode}, not {code}:\n{done.stdout}{done.stderr}")
    return done


def call(*arguments, code=0):
    """Runs a program that must end with this exit code; returns its standard error."""
    return completed(arguments, code).stderr


def output_from(*arguments):
    """Runs a program that must succeed; returns its standard output."""
    return completed(arguments, 0).stdout


def job_text(model, data):
    return f'name: "probe" model {{ {model} }} data {{ {data} }} learning_rate {{ base: 0.01 }} devices: "cpu"\n'


def images(channels, height, width, classes):
    """The data of a job with images of this size."""
    return f'npy {{ directory: "." classes: {classes} height: {height} width: {width} channels: {channels} pixels: FLOAT32 }}'


def make_run(directory, model, data, seed=1):
    """A run with random weights, as `arbalest train` leaves one."""
    directory = pathlib.Path(directory)
    job = directory.with_suffix(".txtpb")
    job.write_text(job_text(model, data), encoding="utf-8")
    call(PROBE, "make", job, directory, seed)
    return directory


def output_of(run, examples):
    """What the model of a run computes from examples [batch, ...]."""
    files = pathlib.Path(run) / "input", pathlib.Path(run) / "output"
    kind = np.float32 if examples.dtype.kind == "f" else np.int32
    examples.astype(kind).tofile(files[0])
    call(PROBE, "run", run, len(examples), *files)
    return np.fromfile(files[1], np.float32).reshape(len(examples), -1)


def export(run, file, *arguments):
    call(PROGRAM, "export", run, "--output", file, *arguments)
    return pathlib.Path(file)


def check_round_trip(file, directory, *arguments):
    """Imports a file that we have exported, and exports that: the bytes must be the same."""
    call(PROGRAM, "import", file, "--output", directory)
    again = export(directory, f"{directory}.onnx", *arguments)
    if pathlib.Path(file).read_bytes() != again.read_bytes():
        raise AssertionError(f"{file} and {again} differ")
    return pathlib.Path(directory)


def losses_of_training(model, job, images, labels, directory):
    """Imports an ONNX file with this job, whose data are the folder `data`; returns the training loss of each epoch."""
    (directory / "data").mkdir()
    for split in ("train", "test"):
        np.save(directory / f"data/{split}_images.npy", images)
        np.save(directory / f"data/{split}_labels.npy", labels)
    own = directory / "own.txtpb"
    own.write_text(job, encoding="utf-8")
    call(PROGRAM, "import", model, "--output", directory / "trained", "--job", own)
    run = directory / "run"
    call(PROGRAM, "train", directory / "trained/job.txtpb", "--quiet", "--output", run, "--data-root", directory)
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    return np.array([row["train_loss"] for row in rows if row["event"] == "epoch"])


def tensors_in(file):
    """The tensors of a safetensors file, by name."""
    content = pathlib.Path(file).read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    tensors = {}
    for name, entry in json.loads(content[8:8 + length]).items():
        if name != "__metadata__":
            begin, end = (8 + length + at for at in entry["data_offsets"])
            tensors[name] = np.frombuffer(content[begin:end], np.float32).reshape(entry["shape"])
    return tensors


def relative_norm(got, expected):
    """The norm of the difference, relative to the norm of what is expected."""
    expected = expected.astype(np.float64)
    return np.linalg.norm(got.astype(np.float64).reshape(expected.shape) - expected) / np.linalg.norm(expected)
