"""Tests the TensorFlow peer: bench/peers/tensorflow_models.py, tensorflow_peer.py. Skipped without TensorFlow."""

import dataclasses
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

from peers import datasets, huge_pages
from peers.arrangements import Arrangement
from peers.recipe import read_recipe
from peers.tensorflow_arrangements import arrangements
from peers.tensorflow_models import make_model
from peers.tensorflow_trainer import Images, Trainer
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


class Arrangements(unittest.TestCase):
    def step(self, **how):
        recipe = read_recipe(ROOT / "configs" / "resnet32-cifar10.txtpb")
        split = datasets.synthetic("cifar-10", 64)
        plain = dataclasses.replace(recipe, padding=0, flip=False)  # so that all runs get the same images
        trainer = Trainer(plain, datasets.Parts(split, split), Arrangement("it", **how), seed=1)
        loss = trainer.finish(trainer.step())
        return loss, trainer

    def test_xla_and_bfloat16_take_the_same_step_but_for_rounding(self):
        loss, trainer = self.step()
        weights = [w.numpy() for w in trainer.model.trainable_variables]
        for how, tolerance in (({"compile_mode": "XLA"}, 1e-4), ({"bfloat16": True}, 0.05)):
            other_loss, other = self.step(**how)
            self.assertAlmostEqual(other_loss / loss, 1.0, delta=tolerance)
            distance = (
                sum(((w.numpy() - v) ** 2).sum() for w, v in zip(other.model.trainable_variables, weights)) ** 0.5
            )
            norm = sum((w**2).sum() for w in weights) ** 0.5
            self.assertLess(distance / norm, tolerance)
            self.assertEqual({w.dtype for w in other.model.trainable_variables}, {"float32"})
            computes_in = {layer.compute_dtype for layer in other.model.layers if "conv" in layer.name}
            self.assertEqual(computes_in, {"bfloat16"} if how.get("bfloat16") else {"float32"})


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
            for arrangement in (one for one in arrangements()[0] if not one.operators):
                done = subprocess.run(
                    [*command, "turns", *options, "--mini-batch", "64", "--arrangement", arrangement.name],
                    input="0.1\n",
                    capture_output=True,
                    text=True,
                    check=False,
                )
                self.assertEqual(done.returncode, 0, done.stderr)
                answer = json.loads(done.stdout.splitlines()[1])
                self.assertGreater(answer["images_per_second"], 0)
                got = answer["got"]
                self.assertEqual((got["mini_batch"], got["compiler"]), (64, arrangement.compile_mode))
                self.assertEqual(got["precision"], "BF16" if arrangement.bfloat16 else "FP32")
                if huge_pages.reason_against_choosing() is None:
                    self.assertGreater(got["huge_page_bytes"], 0)


if __name__ == "__main__":
    unittest.main()
