"""A model in JAX, trained by a recipe."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from peers.jax_models import make_model
from peers.job_file import JobError

TEST_BATCH = 500


class Images:
    """A split in resident arrays. Images are [rows, columns, channels], and padded bytes if they will be cropped."""

    def __init__(self, split, padding=0, flip=False):
        self.size, self.padding, self.flip = split.source.image, padding, flip
        self.mean, self.stddev = np.float32(split.source.mean), np.float32(split.source.stddev)
        self.changes = padding > 0 or flip
        pixels = np.frombuffer(split.images, np.uint8).reshape(-1, *self.size).transpose(0, 2, 3, 1)
        sides = ((0, 0), (padding, padding), (padding, padding), (0, 0))
        images = np.pad(pixels, sides) if self.changes else self.normalized(pixels)
        self.arrays = jnp.asarray(images), jnp.asarray(np.frombuffer(split.labels, np.uint8).astype(np.int32))

    def __len__(self):
        return len(self.arrays[1])

    def normalized(self, pixels):
        return (pixels.astype(np.float32) / np.float32(255.0) - self.mean) / self.stddev

    def batch(self, arrays, indices, key):
        """Returns randomly augmented images, and labels. `arrays`: those of this object, which a compiled function must
        get as arguments, as it would store them as constants."""
        images, labels = arrays
        if self.changes:
            return self.normalized(self.augmented(images, indices, key)), labels[indices]
        return images[indices], labels[indices]

    def augmented(self, images, indices, key):
        """Crops each image at random, and mirrors it with a probability of one half."""
        _, height, width = self.size
        rows_key, columns_key, flip_key = jax.random.split(key, 3)
        columns = jnp.arange(width)
        if self.flip:
            mirrored = jax.random.bernoulli(flip_key, shape=(len(indices), 1))
            columns = jnp.where(mirrored, width - 1 - columns, columns)
        rows = self.offsets(rows_key, len(indices)) + jnp.arange(height)
        columns = self.offsets(columns_key, len(indices)) + columns
        return images[indices[:, None, None], rows[:, :, None], columns[:, None, :]]

    def offsets(self, key, count):
        return jax.random.randint(key, (count, 1), 0, 2 * self.padding + 1)


class Trainer:
    """The learner of train_to_target. step() trains on the next mini-batch, in one compiled function."""

    has_average = False

    def __init__(self, recipe, parts, arrangement, seed):
        if len(parts.train) < recipe.batch:
            raise JobError(f"a mini-batch of {recipe.batch} is larger than the {len(parts.train)} examples")
        self.recipe, self.type = recipe, jnp.bfloat16 if arrangement.bfloat16 else jnp.float32
        self.model, weights, statistics = make_model(recipe.model, seed)
        self.state = weights, jax.tree.map(jnp.zeros_like, weights), statistics
        self.examples = Images(parts.train, recipe.padding, recipe.flip)
        self.evaluated = {name: Images(part) for name, part in parts.evaluated.items()}
        self.judged, self.has_validation = parts.judged, parts.validation is not None
        self.orders, self.key = np.random.default_rng(seed), jax.random.key(1000 * seed)
        self.order, self.step_of_epoch, self.seen = None, 0, 0
        self.steps_of_epoch = len(self.examples) // recipe.batch

    def loss(self, weights, statistics, images, labels):
        logits, statistics = self.model(weights, statistics, images.astype(self.type), True)
        logs = jax.nn.log_softmax(logits.astype(jnp.float32))
        return -jnp.take_along_axis(logs, labels[:, None], axis=1).mean(), statistics

    @functools.partial(jax.jit, static_argnums=0, donate_argnums=1)
    def train(self, state, arrays, indices, key, seen, rate):
        """Returns the state after a step, and the loss. `seen`: images before this step, so that each has own crops."""
        weights, velocity, statistics = state
        images, labels = self.examples.batch(arrays, indices, jax.random.fold_in(key, seen))
        derived = jax.value_and_grad(self.loss, has_aux=True)
        (loss, statistics), gradients = derived(weights, statistics, images, labels)
        changes = jax.tree.map(lambda w, g: rate * (g + self.recipe.weight_decay * w), weights, gradients)

        def less_change(velocity):  # SGD in Arbalest's form
            return jax.tree.map(lambda v, change: self.recipe.momentum * v - change, velocity, changes)

        velocity = less_change(velocity)
        moves = less_change(velocity) if self.recipe.nesterov else velocity
        return (jax.tree.map(jnp.add, weights, moves), velocity, statistics), loss

    def step(self):
        if self.order is None or self.step_of_epoch == self.steps_of_epoch:
            self.order, self.step_of_epoch = self.orders.permutation(len(self.examples)), 0
        first = self.step_of_epoch * self.recipe.batch
        indices = self.order[first : first + self.recipe.batch]
        self.step_of_epoch += 1
        rate = self.recipe.schedule.at(self.seen / len(self.examples))
        self.state, loss = self.train(self.state, self.examples.arrays, indices, self.key, self.seen, rate)
        self.seen += self.recipe.batch
        return loss

    @functools.partial(jax.jit, static_argnums=0)
    def right(self, weights, statistics, images, labels):
        logits, _ = self.model(weights, statistics, images.astype(self.type), False)
        return (logits.argmax(1) == labels).sum()

    def evaluate(self, _averaged, at_end=False):
        """Returns {"test_accuracy": ...}, or {"validation_accuracy": ...} after an epoch if there is a validation set.
        """
        name = self.judged(at_end)
        return {f"{name}_accuracy": self.accuracy(*self.evaluated[name].arrays)}

    def accuracy(self, images, labels):
        weights, _, statistics = self.state
        parts = [slice(first, first + TEST_BATCH) for first in range(0, len(labels), TEST_BATCH)]
        return sum(int(self.right(weights, statistics, images[part], labels[part])) for part in parts) / len(labels)

    def finish(self, loss):
        return float(loss)
