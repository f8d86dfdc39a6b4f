#!/usr/bin/env python3
"""TensorFlow, one process with all threads, trains what a job file of Arbalest's says: its step is one tf.function.

    tensorflow_peer.py train --model lenet --target 0.99 --seed 1
    tensorflow_peer.py turns --model lenet      measures for as many seconds as each line of stdin says

As pytorch_peer.py, whose exit codes it has. It is evaluated as it is, and not through an average of its weights.
"""

import argparse
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from peers import command_line, datasets  # noqa: E402
from peers.command_line import SKIPPED, say  # noqa: E402

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
try:
    import tensorflow as tf
except ImportError as missing:
    say(f"skipped: {missing}")
    sys.exit(SKIPPED)

from peers.target_run import train_to_target  # noqa: E402
from peers.tensorflow_models import make_model  # noqa: E402

TEST_BATCH = 500


class Images:
    """A split in resident tensors; images as rows, columns, channels, padded bytes if they are to be cropped."""

    def __init__(self, split, padding=0, flip=False):
        self.size, self.padding, self.flip = split.source.image, padding, flip
        channels, height, width = self.size
        pixels = tf.reshape(tf.io.decode_raw(bytes(split.images), tf.uint8), (-1, channels, height, width))
        self.labels = tf.cast(tf.io.decode_raw(bytes(split.labels), tf.uint8), tf.int32)
        self.mean, self.stddev = tf.constant(split.source.mean), tf.constant(split.source.stddev)
        self.changes = padding > 0 or flip
        pixels = tf.transpose(pixels, (0, 2, 3, 1))
        sides = [[0, 0], [padding, padding], [padding, padding], [0, 0]]
        self.images = tf.pad(pixels, sides) if self.changes else self.normalized(pixels)

    def __len__(self):
        return len(self.labels)

    def normalized(self, pixels):
        return (tf.cast(pixels, tf.float32) / 255.0 - self.mean) / self.stddev

    def batch(self, indices):
        images = tf.gather(self.images, indices)
        if self.changes:
            images = self.normalized(self.augmented(images, tf.shape(indices)[0]))
        return images, tf.gather(self.labels, indices)

    def augmented(self, images, count):
        """Each cropped at random, and mirrored by an even chance."""
        _, height, width = self.size
        columns = tf.tile(tf.range(width)[None], (count, 1))
        if self.flip:
            columns = tf.where(tf.random.uniform((count, 1)) < 0.5, width - 1 - columns, columns)
        images = tf.gather(images, self.offsets(count) + tf.range(height), axis=1, batch_dims=1)
        return tf.gather(images, self.offsets(count) + columns, axis=2, batch_dims=1)

    def offsets(self, count):
        return tf.random.uniform((count, 1), 0, 2 * self.padding + 1, tf.int32)


class Trainer:
    def __init__(self, recipe, train, test, seed):
        tf.random.set_seed(seed)
        self.recipe = recipe
        self.model = make_model(recipe.model, seed)
        self.examples, self.tests = Images(train, recipe.padding, recipe.flip), Images(test)
        self.rate = tf.Variable(0.0)
        self.velocity = [tf.Variable(tf.zeros_like(w)) for w in self.model.trainable_variables]
        self.order, self.step_of_epoch, self.seen = None, 0, 0
        self.steps_of_epoch = len(self.examples) // recipe.batch

    @tf.function
    def train(self, indices):
        images, labels = self.examples.batch(indices)
        with tf.GradientTape() as tape:
            logits = self.model(images, training=True)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        weights = self.model.trainable_variables
        for w, v, gradient in zip(weights, self.velocity, tape.gradient(loss, weights)):  # SGD as Arbalest has it
            change = self.rate * (gradient + self.recipe.weight_decay * w)
            v.assign(self.recipe.momentum * v - change)
            w.assign_add(self.recipe.momentum * v - change if self.recipe.nesterov else v)
        return loss

    @tf.function
    def right(self, first):
        images, labels = self.tests.images[first : first + TEST_BATCH], self.tests.labels[first : first + TEST_BATCH]
        predicted = tf.argmax(self.model(images, training=False), axis=1, output_type=tf.int32)
        return tf.reduce_sum(tf.cast(predicted == labels, tf.int32))

    def step(self):
        if self.order is None or self.step_of_epoch == self.steps_of_epoch:
            self.order, self.step_of_epoch = tf.random.shuffle(tf.range(len(self.examples))), 0
        first = self.step_of_epoch * self.recipe.batch
        self.step_of_epoch += 1
        self.rate.assign(self.recipe.schedule.at(self.seen / len(self.examples)))
        self.seen += self.recipe.batch
        return self.train(self.order[first : first + self.recipe.batch])

    def accuracy(self, _averaged):
        count = len(self.tests)
        return sum(int(self.right(tf.constant(first))) for first in range(0, count, TEST_BATCH)) / count

    def finish(self, loss):
        return float(loss)

    def images_per_second(self, steps):
        start = time.perf_counter()
        for _ in range(steps):
            loss = self.step()
        self.finish(loss)
        return steps * self.recipe.batch / (time.perf_counter() - start)


def prepared(arguments):
    recipe = command_line.recipe_of(arguments)
    tf.config.threading.set_intra_op_parallelism_threads(len(os.sched_getaffinity(0)))
    start = time.perf_counter()
    train, test = (datasets.load(recipe.dataset, split, arguments.data_root) for split in ("train", "test"))
    return recipe, Trainer(recipe, train, test, arguments.seed), start


def versions():
    return {"tensorflow": tf.__version__} | command_line.machine()


def turns(arguments):
    recipe, trainer, _ = prepared(arguments)
    trainer.images_per_second(3)
    last = [trainer.images_per_second(6)]

    def measure(steps):
        last[0] = trainer.images_per_second(steps)
        return last[0]

    command_line.serve_turns(measure, lambda: last[0] / recipe.batch, versions())
    return 0


def train(arguments):
    recipe, trainer, start = prepared(arguments)
    target = command_line.target_of(arguments, recipe)
    result = train_to_target(trainer, target, recipe.max_epochs, start, command_line.tell_epoch, averages=False)
    described = {"peer": "TensorFlow", "arrangement": "all threads"} | versions()
    return command_line.finish_training(recipe, arguments, described, result)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    command_line.add_turns(commands)
    command_line.add_train(commands)
    arguments = parser.parse_args()
    run = {"turns": turns, "train": train}[arguments.command]
    sys.exit(command_line.guarded(lambda: run(arguments)))


if __name__ == "__main__":
    main()
