"""Writes datasets of a few examples in the real files' formats, and trains Arbalest on them."""

import json
import os
import pathlib
import random
import struct
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def write_mnist(root, train, test):
    """Each class has a different bright row, with noise added."""
    numbers = random.Random(7)
    folder = pathlib.Path(root) / "mnist"
    folder.mkdir(parents=True)
    for part, count in (("train", train), ("t10k", test)):
        labels = bytes(i % 10 for i in range(count))
        images = bytearray(numbers.randrange(100) for _ in range(count * 784))
        for i, label in enumerate(labels):
            row = i * 784 + 28 * (2 * label + 4)
            images[row : row + 28] = b"\xff" * 28
        (folder / f"{part}-images-idx3-ubyte").write_bytes(struct.pack(">4I", 0x803, count, 28, 28) + images)
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">2I", 0x801, count) + labels)


def write_cifar10(root, examples):
    """Each file gets this many examples."""
    numbers = random.Random(7)
    folder = pathlib.Path(root) / "cifar-10"
    folder.mkdir(parents=True)
    for name in [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]:
        records = [bytes([i % 10]) + numbers.randbytes(3072) for i in range(examples)]
        (folder / name).write_bytes(b"".join(records))


def arbalest_rows(job, output, data_root, settings):
    """Returns the epochs of a run of Arbalest: rows of metrics.jsonl."""
    command = [os.environ["ARBALEST_PROGRAM"], "train", str(job), "--quiet", "--output", str(output)]
    command += ["--data-root", str(data_root)]
    for setting in settings:
        command += ["--set", setting]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    rows = [json.loads(line) for line in (pathlib.Path(output) / "metrics.jsonl").read_text().splitlines()]
    return [row for row in rows if row["event"] == "epoch"]
