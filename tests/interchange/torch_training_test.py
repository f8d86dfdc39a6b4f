"""A ResNet-18 that torchvision has made and PyTorch has exported with batch norm trains here as it trains in PyTorch:
the losses of the first ten steps are the same, on the same data in the same order."""

import pathlib
import sys
import tempfile
import unittest
import warnings

try:
    import numpy as np
    import torch
    from torch import nn
    from torchvision.models import resnet18
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(4)

import probe

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
from peers.validation import MASK, mix  # pylint: disable=wrong-import-position

STEPS, BATCH, CLASSES, SIZE, SEED = 10, 16, 10, 64, 5
EXAMPLES = 2 * BATCH - 1  # an epoch is one mini-batch, another one each time
RATE, MOMENTUM, DECAY = 1e-4, 0.9, 5e-4  # at 0.01 PyTorch itself differs in float64 by 0.04 after six steps
LIMIT = 1e-3  # relative difference of a loss

# The model comes from the ONNX file.
JOB = f"""
model {{ zoo {{ lenet {{}} }} }}
data {{ npy {{ directory: "data" classes: {CLASSES} height: {SIZE} width: {SIZE} pixels: FLOAT32 }} }}
training {{ batch_size: {BATCH} max_epochs: {STEPS} seed: {SEED} }}
optimizer {{ sgd {{ momentum: {MOMENTUM} weight_decay: {DECAY} }} }}
learning_rate {{ base: {RATE} }}
learners {{ per_device {{ fixed: 1 }} }}
devices: "cpu"
"""


def order_of_training(epoch):
    """The order of the examples in an epoch, by the rule of `Training.seed` in proto/arbalest/v1/training.proto."""
    state = mix((mix((mix(SEED) + 0x73687566666C65) & MASK) + epoch) & MASK)
    examples = list(range(EXAMPLES))
    for left in range(EXAMPLES, 1, -1):
        while True:
            state = (state + 0x9E3779B97F4A7C15) & MASK
            product = (mix(state) >> 32) * left
            if product % 2**32 >= (2**32 - left) % left:
                break
        chosen = product >> 32
        examples[left - 1], examples[chosen] = examples[chosen], examples[left - 1]
    return examples


def losses_of_torch(network, images, labels):
    network = network.train()
    optimizer = torch.optim.SGD(network.parameters(), RATE, MOMENTUM, weight_decay=DECAY)
    losses = []
    for step in range(STEPS):
        batch = order_of_training(step)[:BATCH]
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(network(images[batch]), labels[batch])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return np.array(losses)


def export(network, file):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(network.eval(), (torch.zeros(2, 3, SIZE, SIZE),), str(file), dynamo=False, optimize=False,
                          input_names=["x"], output_names=["y"], dynamic_axes={"x": {0: "n"}}, do_constant_folding=False,
                          training=torch.onnx.TrainingMode.PRESERVE)


class TorchTraining(unittest.TestCase):
    def test_the_first_ten_losses_of_an_imported_resnet18(self):
        torch.manual_seed(11)
        network = resnet18(num_classes=CLASSES)
        images = torch.randn(EXAMPLES, 3, SIZE, SIZE)
        labels = torch.randint(0, CLASSES, (EXAMPLES,))
        with tempfile.TemporaryDirectory() as directory:
            directory = pathlib.Path(directory)
            export(network, directory / "resnet18.onnx")
            got = probe.losses_of_training(directory / "resnet18.onnx", JOB, images.numpy(), labels.numpy(), directory)
        expected = losses_of_torch(network, images, labels)
        print("relative differences:", " ".join(f"{value:.1e}" for value in np.abs(got / expected - 1)))
        self.assertEqual(len(got), STEPS)
        self.assertLess(np.abs(got / expected - 1).max(), LIMIT, f"{got} and {expected}")
        # Another order, another rate or other statistics of batch norm would change the losses far more than the limit.
        self.assertGreater(np.abs(np.diff(expected)).min() / expected.max(), 2 * LIMIT)


if __name__ == "__main__":
    unittest.main()
