"""The peer in TensorFlow: bench/peers/tensorflow_models.py, tensorflow_peer.py. Skipped without TensorFlow."""

import importlib.util
import json
import math
import os
import subprocess
import sys
import tempfile
import unittest

if importlib.util.find_spec("tensorflow") is None:
    print("skipped: TensorFlow is not installed")
    sys.exit(4)
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf

from peers import datasets
from peers.tensorflow_models import make_model
from peers.tensorflow_peer import Images
from tiny_data import ROOT, write_mnist


class Models(unittest.TestCase):
    def test_have_parameters_and_initial_weights_of_arbalest(self):
        for name, count in (("lenet", 431080), ("resnet32", 464154)):
            model = make_model(name, 1)
            self.assertEqual(sum(math.prod(w.shape) for w in model.trainable_variables), count, name)
        conv = [w.numpy() for w in model.trainable_variables if w.shape == (3, 3, 64, 64)][-1]
        self.assertAlmostEqual(conv.std(), math.sqrt(2.0 / (64 * 9)), delta=0.02 * conv.std())
        self.assertGreater(abs(conv).max(), 3.5 * conv.std())  # not truncated


class Augmentation(unittest.TestCase):
    def test_images_are_crops_of_the_padded_image_some_of_them_mirrored(self):
        split = datasets.synthetic("cifar-10", 2)
        images = Images(split, padding=4, flip=True)
        padded = images.normalized(images.images[1:2])[0].numpy()
        seen = set()
        for image in images.batch(tf.ones(64, tf.int32))[0].numpy():
            places = [
                (flipped, row, column)
                for flipped, crop in ((False, image), (True, image[:, ::-1]))
                for row in range(9)
                for column in range(9)
                if abs(padded[row : row + 32, column : column + 32] - crop).max() < 1e-6
            ]
            self.assertEqual(len(places), 1)
            seen.update(places)
        self.assertGreater(len(seen), 30)
        self.assertEqual({flipped for flipped, _, _ in seen}, {False, True})


class Program(unittest.TestCase):
    def test_trains_to_the_target_and_takes_turns(self):
        with tempfile.TemporaryDirectory() as root:
            write_mnist(root, train=640, test=200)
            command = [sys.executable, "-B", str(ROOT / "bench" / "peers" / "tensorflow_peer.py")]
            options = ["--data-root", root]
            done = subprocess.run(
                [*command, "train", *options, "--target", "0.9"], capture_output=True, text=True, check=False
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            result = json.loads(done.stdout)
            self.assertEqual((result["status"], result["counts"]), ("target_reached", "weights"))
            done = subprocess.run(
                [*command, "turns", *options], input="0.1\n", capture_output=True, text=True, check=False
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertGreater(json.loads(done.stdout.splitlines()[1])["images_per_second"], 0)


if __name__ == "__main__":
    unittest.main()
