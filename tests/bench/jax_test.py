"""Tests the JAX peer: bench/peers/jax_models.py, jax_trainer.py, jax_peer.py. Skipped without JAX."""

import dataclasses
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest

if importlib.util.find_spec("jax") is None:
    print("skipped: JAX is not installed")
    sys.exit(4)
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np

from peers import datasets, huge_pages
from peers.arrangements import Arrangement
from peers.jax_arrangements import arrangements
from peers.jax_models import add_bias, make_model
from peers.jax_trainer import Images, Trainer
from peers.recipe import read_recipe
from peers.schedule import Schedule
from tiny_data import ROOT, write_mnist

HAS_PYTORCH = importlib.util.find_spec("torch") is not None
RATE = 0.02


def recipe_of(model):
    """Returns a recipe whose mini-batches depend on no random numbers, and whose learning rate does not rise."""
    job = "lenet-mnist" if model == "lenet" else f"{model}-cifar10"
    recipe = read_recipe(ROOT / "configs" / f"{job}.txtpb")
    return dataclasses.replace(recipe, padding=0, flip=False, schedule=Schedule(RATE))


def trainer_of(recipe, **how):
    split = datasets.synthetic(recipe.dataset, 5 * recipe.batch)
    return Trainer(recipe, datasets.Parts(split, split), Arrangement("it", **how), seed=1)


def from_pytorch(model):
    """Returns (weights, statistics) of a model of bench/peers/models.py in the form of jax_models.py."""
    import torch

    weights, statistics = [], []
    for layer in model.modules():
        if isinstance(layer, torch.nn.Conv2d):
            weight = layer.weight.detach().numpy().transpose(2, 3, 1, 0)
            weights.append((weight,) if layer.bias is None else (weight, layer.bias.detach().numpy()))
        elif isinstance(layer, torch.nn.BatchNorm2d):
            weights[-1] += (layer.weight.detach().numpy(), layer.bias.detach().numpy())
            statistics.append((layer.running_mean.numpy(), layer.running_var.numpy()))
        elif isinstance(layer, torch.nn.Linear):
            weight = layer.weight.detach().numpy()
            if layer.in_features == 800:  # PyTorch flattens [50, 4, 4], JAX [4, 4, 50]
                weight = weight.reshape(500, 50, 4, 4).transpose(0, 2, 3, 1).reshape(500, 800)
            weights.append((weight.T, layer.bias.detach().numpy()))
    return jax.tree.map(np.array, (weights, statistics))  # copies, as PyTorch goes on with its own


def distance(one, other):
    """Returns the norm of the difference of all arrays over the norm of those of `other`."""
    pairs = list(zip(map(np.asarray, jax.tree.leaves(one)), map(np.asarray, jax.tree.leaves(other)), strict=True))
    return (sum(((a - b) ** 2).sum() for a, b in pairs) / sum((b**2).sum() for _, b in pairs)) ** 0.5


class Models(unittest.TestCase):
    def test_have_parameters_and_initial_weights_of_arbalest(self):
        for name, count in (("lenet", 431080), ("resnet20", 269722), ("resnet32", 464154)):
            _, weights, _ = make_model(name, 1)
            self.assertEqual(sum(array.size for array in jax.tree.leaves(weights)), count, name)
        conv = weights[-2][0]
        self.assertAlmostEqual(conv.std(), (2.0 / (64 * 9)) ** 0.5, delta=0.02 * conv.std())
        self.assertGreater(abs(conv).max(), 3.5 * conv.std())  # not truncated
        dense = make_model("lenet", 1)[1][2][0]
        bound = (6.0 / (800 + 500)) ** 0.5
        self.assertAlmostEqual(abs(dense).max(), bound, delta=0.001 * bound)


@unittest.skipUnless(HAS_PYTORCH, "PyTorch is not installed")
class BesidePyTorch(unittest.TestCase):
    def test_losses_and_changes_of_weights_in_the_first_steps_are_the_same(self):
        """In float64 the gradients of ResNet-20 agree to 1e-14; float32 changes them by 0.1 to 0.3 %."""
        import torch

        from peers import trainer as pytorch

        for name, tolerance in (("lenet", 1e-4), ("resnet20", 0.1)):
            recipe = recipe_of(name)
            split = datasets.synthetic(recipe.dataset, 5 * recipe.batch)
            theirs = pytorch.Trainer(recipe, datasets.Parts(split, split), Arrangement("it"), seed=1)
            ours = trainer_of(recipe)
            before, statistics = from_pytorch(theirs.plain_model)
            ours.state = jax.tree.map(np.array, before), ours.state[1], statistics
            theirs.order, ours.order = torch.arange(len(split)), np.arange(len(split))
            for step in range(5):
                expected = theirs.finish(theirs.step())
                self.assertAlmostEqual(ours.finish(ours.step()) / expected, 1.0, delta=1e-3, msg=f"{name}, {step}")
            weights, statistics = from_pytorch(theirs.plain_model)
            changes = [jax.tree.map(np.subtract, after, before) for after in (ours.state[0], weights)]
            self.assertLess(distance(*changes), tolerance, name)
            if statistics:
                self.assertLess(distance(ours.state[2], statistics), 1e-3, name)


class Augmentation(unittest.TestCase):
    def test_images_are_crops_of_the_padded_image_some_of_them_mirrored(self):
        images = Images(datasets.synthetic("cifar-10", 2), padding=4, flip=True)
        padded = images.normalized(np.asarray(images.arrays[0])[1])
        seen = set()
        for image in np.asarray(images.batch(images.arrays, np.ones(64, int), jax.random.key(1))[0]):
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
    def test_bfloat16_takes_the_same_step_but_for_rounding(self):
        for name, tolerance in (("lenet", 0.1), ("resnet20", 0.4)):  # of the change of each array; rounding adds up
            recipe = recipe_of(name)
            plain, other = trainer_of(recipe), trainer_of(recipe, bfloat16=True)
            before = jax.tree.map(np.array, plain.state[0])
            loss, other_loss = (trainer.finish(trainer.step()) for trainer in (plain, other))
            self.assertAlmostEqual(other_loss / loss, 1.0, delta=0.02)
            changes, others = (jax.tree.map(np.subtract, trainer.state[0], before) for trainer in (plain, other))
            for change, with_rounding in zip(jax.tree.leaves(changes), jax.tree.leaves(others), strict=True):
                self.assertLess(distance(with_rounding, change), tolerance, (name, change.shape))
            self.assertEqual({array.dtype for array in jax.tree.leaves(other.state)}, {np.dtype(np.float32)})

    def test_the_gradient_of_a_bias_is_added_up_in_float32(self):
        ones = jnp.ones((32, 24, 24, 20), jnp.bfloat16)
        gradient = jax.jit(lambda bias: jax.vjp(lambda b: add_bias(ones, b), bias)[1](ones)[0])(jnp.zeros(20))
        self.assertEqual(set(gradient.tolist()), {32 * 24 * 24})  # 256 in bfloat16

    def test_one_step_is_compiled_once(self):
        recipe = read_recipe(ROOT / "configs" / "lenet-mnist.txtpb")  # its learning rate changes at every step
        trainer = trainer_of(recipe)
        compiled = Trainer.train._cache_size()
        for _ in range(7):  # beyond an epoch
            trainer.finish(trainer.step())
        self.assertEqual(Trainer.train._cache_size(), compiled + 1)


class Program(unittest.TestCase):
    def test_trains_to_the_target_and_takes_turns(self):
        with tempfile.TemporaryDirectory() as root:
            write_mnist(root, train=640, test=200)
            command = [sys.executable, "-B", str(ROOT / "bench" / "peers" / "jax_peer.py")]
            options = ["--data-root", root]
            done = subprocess.run(
                [*command, "train", *options, "--target", "0.9"], capture_output=True, text=True, check=False
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            result = json.loads(done.stdout)
            self.assertEqual((result["status"], result["counts"]), ("target_reached", "weights"))
            self.assertEqual(result["jax"], jax.__version__)
            for arrangement in arrangements()[0]:
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
                self.assertEqual((got["mini_batch"], got["compiler"]), (64, "XLA"))
                self.assertEqual(got["precision"], "BF16" if arrangement.bfloat16 else "FP32")
                if huge_pages.reason_against_choosing() is None:
                    self.assertGreater(got["huge_page_bytes"], 0)


if __name__ == "__main__":
    unittest.main()
