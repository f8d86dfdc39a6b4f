"""Peers read the files that Arbalest reads: bench/peers/datasets.py."""

import gzip
import pathlib
import tempfile
import unittest

from peers import datasets
from tiny_data import write_cifar10, write_mnist


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def test_mnist_raw_and_compressed(self):
        write_mnist(self.root, train=30, test=20)
        raw = datasets.load("mnist", "train", self.root)
        self.assertEqual((len(raw), len(raw.images), bytes(raw.labels[:11])), (30, 30 * 784, bytes([*range(10), 0])))
        self.assertEqual(raw.images[784 + 28 * 6], 255)  # the second example is a 1
        for path in list((self.root / "mnist").iterdir()):
            pathlib.Path(f"{path}.gz").write_bytes(gzip.compress(path.read_bytes()))
            path.unlink()
        self.assertEqual(datasets.load("mnist", "train", self.root), raw)
        self.assertEqual(len(datasets.load("mnist", "test", self.root)), 20)

    def test_cifar10(self):
        write_cifar10(self.root, examples=4)
        train = datasets.load("cifar-10", "train", self.root)
        record = (self.root / "cifar-10" / "data_batch_2.bin").read_bytes()[3073:6146]
        self.assertEqual((len(train), train.labels[5]), (20, record[0]))
        self.assertEqual(train.images[5 * 3072 : 6 * 3072], record[1:])
        self.assertEqual(len(datasets.load("cifar-10", "test", self.root)), 4)

    def test_files_that_are_missing_or_damaged(self):
        with self.assertRaisesRegex(datasets.DataMissing, "train-images"):
            datasets.load("mnist", "train", self.root)
        write_mnist(self.root, train=3, test=2)
        write_cifar10(self.root, examples=2)
        for dataset, name, what in (
            ("mnist", "train-images-idx3-ubyte", "bytes of data instead of"),
            ("cifar-10", "data_batch_4.bin", "whole record"),
        ):
            path = self.root / dataset / name
            path.write_bytes(path.read_bytes()[:-1])
            with self.subTest(name), self.assertRaisesRegex(datasets.DataMissing, what):
                datasets.load(dataset, "train", self.root)
        labels = self.root / "mnist" / "t10k-labels-idx1-ubyte"
        labels.write_bytes(labels.read_bytes()[:-1] + b"\x0a")
        with self.assertRaisesRegex(datasets.DataMissing, "damaged"):
            datasets.load("mnist", "test", self.root)


if __name__ == "__main__":
    unittest.main()
