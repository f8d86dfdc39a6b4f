#!/usr/bin/env python3
"""How many training examples are needed to estimate the batch norm statistics of a model that Arbalest has trained?

    batch_norm_examples.py RUN --model resnet20 --examples 2048,4096 --choices 3

PyTorch with the weights of RUN/model.safetensors: accuracy and loss on the test set with the statistics in it, then with
statistics estimated anew on training examples chosen at random, augmented, in the job's mini-batches. One JSON object
a line. Without PyTorch it exits with 4 (skipped).
"""

import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from peers import command_line, datasets  # noqa: E402
from peers.command_line import SKIPPED, answer, say  # noqa: E402

try:
    import torch
except ImportError as missing:
    say(f"skipped: {missing}")
    sys.exit(SKIPPED)

from peers.examples import Examples  # noqa: E402
from peers.models import load_weights, make_model  # noqa: E402

TEST_BATCH = 500


@torch.inference_mode()
def evaluate(model, tests):
    """Returns accuracy and mean loss."""
    model.eval()
    right, loss = 0, 0.0
    for first in range(0, len(tests), TEST_BATCH):
        logits, labels = model(tests.images[first : first + TEST_BATCH]), tests.labels[first : first + TEST_BATCH]
        right += (logits.argmax(1) == labels).sum().item()
        loss += torch.nn.functional.cross_entropy(logits, labels, reduction="sum").item()
    return {"test_accuracy": right / len(tests), "test_loss": loss / len(tests)}


@torch.no_grad()
def estimate(model, training, examples, batch, seed):
    """Estimates the statistics as the means over the mini-batches."""
    torch.manual_seed(seed)
    chosen = torch.randperm(len(training))[:examples]
    for layer in model.modules():
        if isinstance(layer, torch.nn.BatchNorm2d):
            layer.reset_running_stats()
            layer.momentum = None
    model.train()
    for first in range(0, len(chosen), batch):
        model(training.batch(chosen[first : first + batch])[0])


def numbers(text):
    return [int(number) for number in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=pathlib.Path, metavar="RUN", help="directory of the run")
    command_line.add_common(parser)
    parser.add_argument("--examples", type=numbers, default=[2048, 4096], help="how many, several numbers (2048,4096)")
    parser.add_argument("--choices", type=int, default=3, help="of the examples, for each number (3)")
    arguments = parser.parse_args()

    def work():
        recipe = command_line.recipe_of(arguments)
        parts = datasets.load_parts(recipe.dataset, recipe.validation, arguments.data_root)
        training = Examples(parts.train, "cpu", torch.channels_last, recipe.padding, recipe.flip)
        tests = Examples(parts.test, "cpu", torch.channels_last)
        model = make_model(recipe.model, arguments.seed).to(memory_format=torch.channels_last)
        load_weights(model, arguments.run / "model.safetensors")
        answer({"examples": None, **evaluate(model, tests)})
        for examples in arguments.examples:
            for seed in range(1, arguments.choices + 1):
                estimate(model, training, examples, recipe.batch, seed)
                answer({"examples": examples, "choice": seed, **evaluate(model, tests)})
        return 0

    sys.exit(command_line.guarded(work))


if __name__ == "__main__":
    main()
