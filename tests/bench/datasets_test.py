"""Tests that peers read the same files as Arbalest: bench/peers/datasets.py."""

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

    def test_examples_are_chosen_in_the_order_asked_for(self):
        write_mnist(self.root, train=30, test=20)
        train = datasets.load("mnist", "train", self.root)
        chosen = train.chosen([11, 2])
        self.assertEqual((len(chosen), list(chosen.labels)), (2, [1, 2]))
        self.assertEqual(chosen.images, train.images[11 * 784 : 12 * 784] + train.images[2 * 784 : 3 * 784])

    def test_without_a_validation_set_all_examples_are_trained_on(self):
        write_mnist(self.root, train=30, test=20)
        parts = datasets.load_parts("mnist", None, self.root)
        self.assertEqual((len(parts.train), list(parts.evaluated)), (30, ["test"]))

    def test_a_validation_set_is_taken_out_of_the_training_set(self):
        write_mnist(self.root, train=200, test=20)
        train = datasets.load("mnist", "train", self.root)
        parts = datasets.load_parts("mnist", (0.2, 3), self.root)
        self.assertEqual({name: len(part) for name, part in parts.evaluated.items()}, {"test": 20, "validation": 40})
        self.assertEqual(sorted(parts.validation.labels), sorted(list(range(10)) * 4))  # equally many of every class

        def images(part):
            return sorted(bytes(part.images[at : at + 784]) for at in range(0, len(part.images), 784))

        self.assertEqual(sorted(images(parts.train) + images(parts.validation)), images(train))
        self.assertNotEqual(datasets.load_parts("mnist", (0.2, 4), self.root).validation, parts.validation)

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
