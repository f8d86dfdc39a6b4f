"""Reads MNIST and CIFAR-10 from the same files as Arbalest, as bytes, and normalizes them for a model."""

import dataclasses
import gzip
import math
import os
import pathlib
import random
import struct

from peers.validation import left_out


class DataMissing(Exception):
    """A dataset is missing or damaged."""


@dataclasses.dataclass(frozen=True)
class Source:
    image: tuple  # (channels, height, width)
    mean: tuple  # per channel; pixels reach the model as (byte / 255 - mean) / stddev
    stddev: tuple


SOURCES = {
    "mnist": Source((1, 28, 28), (0.1307,), (0.3081,)),
    "cifar-10": Source((3, 32, 32), (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
}
CLASSES = 10


@dataclasses.dataclass(frozen=True)
class Bytes:
    """A split in memory."""

    source: Source
    images: bytearray  # examples x channels x height x width
    labels: bytearray

    def __len__(self):
        return len(self.labels)

    def chosen(self, indices):
        """Returns the examples with these numbers, in this order."""
        size = len(self.images) // len(self.labels)
        images, labels = bytearray(len(indices) * size), bytearray(len(indices))
        for to, index in enumerate(indices):
            images[to * size : (to + 1) * size] = self.images[index * size : (index + 1) * size]
            labels[to] = self.labels[index]
        return Bytes(self.source, images, labels)


@dataclasses.dataclass(frozen=True)
class Parts:
    """The sets that a run reads. Only `train` is trained on."""

    train: Bytes
    test: Bytes
    validation: Bytes = None  # split off from the training set if the job says so

    @property
    def evaluated(self):
        """{name: examples}"""
        return {"test": self.test} | ({"validation": self.validation} if self.validation else {})

    def judged(self, at_end):
        """Returns the name of the set that is evaluated after an epoch, or at the end of the run."""
        return "test" if at_end or self.validation is None else "validation"


def load_parts(dataset, validation, data_root):
    """`validation`: None, or (fraction, seed) of the split."""
    train, test = (load(dataset, split, data_root) for split in ("train", "test"))
    if validation is None:
        return Parts(train, test)
    chosen = left_out(train.labels, *validation)
    kept = sorted(set(range(len(train))).difference(chosen))
    return Parts(train.chosen(kept), test, train.chosen(chosen))


def load(dataset, split, data_root):
    """`split`: "train" or "test"."""
    folder = pathlib.Path(data_root) / dataset
    images, labels = (read_mnist if dataset == "mnist" else read_cifar10)(folder, split)
    if len(images) != len(labels) * math.prod(SOURCES[dataset].image) or not labels or max(labels) >= CLASSES:
        raise DataMissing(f"{folder}: the {split} files are damaged; get them again")
    return Bytes(SOURCES[dataset], images, labels)


def synthetic(dataset, examples):
    """Returns random data in the shape of a dataset, which is enough to measure speed."""
    numbers = random.Random(1)
    return Bytes(
        SOURCES[dataset],
        bytearray(numbers.randbytes(examples * math.prod(SOURCES[dataset].image))),
        bytearray(numbers.randrange(CLASSES) for _ in range(examples)),
    )


def read_mnist(folder, split):
    part = "train" if split == "train" else "t10k"
    return read_idx(folder / f"{part}-images-idx3-ubyte", 3), read_idx(folder / f"{part}-labels-idx1-ubyte", 1)


def read_idx(path, dimensions):
    """Reads a raw or gzip-compressed file."""
    compressed = path.with_name(path.name + ".gz")
    try:
        data = gzip.decompress(compressed.read_bytes()) if compressed.exists() else path.read_bytes()
    except (OSError, EOFError) as error:
        raise DataMissing(f"{path}: {error}") from error
    header = 4 + 4 * dimensions
    if len(data) < header or data[:4] != bytes([0, 0, 8, dimensions]):
        raise DataMissing(f"{path}: is no IDX file of bytes with {dimensions} dimensions")
    size = math.prod(struct.unpack(f">{dimensions}I", data[4:header]))
    if len(data) != header + size:
        raise DataMissing(f"{path}: has {len(data) - header} bytes of data instead of {size}")
    return bytearray(data[header:])


def read_cifar10(folder, split):
    names = [f"data_batch_{i}.bin" for i in range(1, 6)] if split == "train" else ["test_batch.bin"]
    pixels = 3 * 32 * 32
    images, labels = bytearray(), bytearray()
    for name in names:
        try:
            data = (folder / name).read_bytes()
        except OSError as error:
            raise DataMissing(f"{folder / name}: {error}") from error
        if not data or len(data) % (1 + pixels) != 0:
            raise DataMissing(f"{folder / name}: does not end with a whole record")
        labels += data[:: 1 + pixels]
        for at in range(1, len(data), 1 + pixels):
            images += data[at : at + pixels]
    return images, labels


def default_root():
    return os.environ.get("ARBALEST_DATA", "data")
