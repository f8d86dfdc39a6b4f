"""A model in TensorFlow, trained by a recipe."""

import tensorflow as tf

from peers.job_file import JobError
from peers.tensorflow_models import make_model

TEST_BATCH = 500


class Images:
    """A split in resident tensors. Images are [rows, columns, channels], and padded bytes if they will be cropped."""

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
        """Crops each image at random, and mirrors it with a probability of one half."""
        _, height, width = self.size
        columns = tf.tile(tf.range(width)[None], (count, 1))
        if self.flip:
            columns = tf.where(tf.random.uniform((count, 1)) < 0.5, width - 1 - columns, columns)
        images = tf.gather(images, self.offsets(count) + tf.range(height), axis=1, batch_dims=1)
        return tf.gather(images, self.offsets(count) + columns, axis=2, batch_dims=1)

    def offsets(self, count):
        return tf.random.uniform((count, 1), 0, 2 * self.padding + 1, tf.int32)


class Trainer:
    """The learner of train_to_target. step() trains on the next mini-batch."""

    has_average = False

    def __init__(self, recipe, parts, arrangement, seed):
        if len(parts.train) < recipe.batch:
            raise JobError(f"a mini-batch of {recipe.batch} is larger than the {len(parts.train)} examples")
        tf.keras.mixed_precision.set_global_policy("mixed_bfloat16" if arrangement.bfloat16 else "float32")
        tf.random.set_seed(seed)
        self.recipe = recipe
        self.model = make_model(recipe.model, seed)
        self.examples = Images(parts.train, recipe.padding, recipe.flip)
        self.evaluated = {name: Images(part) for name, part in parts.evaluated.items()}
        self.judged, self.has_validation = parts.judged, parts.validation is not None
        self.rate = tf.Variable(0.0)
        self.velocity = [tf.Variable(tf.zeros_like(w)) for w in self.model.trainable_variables]
        # If requested, XLA compiles everything after the choice and augmentation of the examples.
        self.update = tf.function(self.forward_backward_update, jit_compile=arrangement.compile_mode is not None)
        self.order, self.step_of_epoch, self.seen = None, 0, 0
        self.steps_of_epoch = len(self.examples) // recipe.batch

    def logits(self, images, training):
        return tf.cast(self.model(images, training=training), tf.float32)

    def forward_backward_update(self, images, labels):
        with tf.GradientTape() as tape:
            logits = self.logits(images, training=True)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        weights = self.model.trainable_variables
        for w, v, gradient in zip(weights, self.velocity, tape.gradient(loss, weights)):  # SGD in Arbalest's form
            change = self.rate * (gradient + self.recipe.weight_decay * w)
            v.assign(self.recipe.momentum * v - change)
            w.assign_add(self.recipe.momentum * v - change if self.recipe.nesterov else v)
        return loss

    @tf.function
    def train(self, indices):
        return self.update(*self.examples.batch(indices))

    @tf.function
    def right(self, images, labels):
        predicted = tf.argmax(self.logits(images, training=False), axis=1, output_type=tf.int32)
        return tf.reduce_sum(tf.cast(predicted == labels, tf.int32))

    def step(self):
        if self.order is None or self.step_of_epoch == self.steps_of_epoch:
            self.order, self.step_of_epoch = tf.random.shuffle(tf.range(len(self.examples))), 0
        first = self.step_of_epoch * self.recipe.batch
        self.step_of_epoch += 1
        self.rate.assign(self.recipe.schedule.at(self.seen / len(self.examples)))
        self.seen += self.recipe.batch
        return self.train(self.order[first : first + self.recipe.batch])

    def evaluate(self, _averaged, at_end=False):
        """Returns {"test_accuracy": ...}, or {"validation_accuracy": ...} after an epoch if there is a validation set.
        """
        name = self.judged(at_end)
        return {f"{name}_accuracy": self.accuracy(self.evaluated[name])}

    def accuracy(self, examples):
        count = len(examples)
        parts = [slice(first, first + TEST_BATCH) for first in range(0, count, TEST_BATCH)]
        return sum(int(self.right(examples.images[part], examples.labels[part])) for part in parts) / count

    def finish(self, loss):
        return float(loss)
