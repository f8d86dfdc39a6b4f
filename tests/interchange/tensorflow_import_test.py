"""Keras models that tf2onnx converts compute here what they compute in TensorFlow, and train on as they do there."""

import os
import pathlib
import sys
import tempfile
import unittest

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
try:
    import numpy as np
    import tensorflow as tf
    import tf2onnx
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(4)

import probe

LIMIT = 1e-4  # relative norm of predictions, relative difference of losses
HEIGHT, WIDTH, CHANNELS, CLASSES = 14, 10, 3, 5
BATCH, STEPS, RATE, MOMENTUM = 16, 6, 0.05, 0.9

# The model comes from the ONNX file. An epoch is one mini-batch, which holds all examples.
JOB = f"""
model {{ zoo {{ mlp {{}} }} }}
data {{ npy {{ directory: "data" classes: {CLASSES} height: {HEIGHT} width: {WIDTH} pixels: FLOAT32 }} }}
training {{ batch_size: {BATCH} max_epochs: {STEPS} }}
optimizer {{ sgd {{ momentum: {MOMENTUM} }} }}
learning_rate {{ base: {RATE} }}
learners {{ per_device {{ fixed: 1 }} }}
devices: "cpu"
"""

layers = tf.keras.layers


def plain_network():
    """Convolutions, pooling and dense layers. Its flattened features have the channels last."""
    return [layers.Conv2D(8, 5, padding="same", activation="relu"), layers.MaxPooling2D(2),
            layers.Conv2D(12, 3, strides=2, activation="tanh"), layers.Flatten(), layers.Dense(16, activation="relu"),
            layers.Dense(CLASSES)]


def normalized_network():
    """Pixels that are rescaled, batch norm, depthwise convolutions, ReLU6, dropout, and a softmax."""
    return [layers.Rescaling(1 / 127.5, -1.0), layers.Conv2D(8, 3, strides=2, padding="same", use_bias=False),
            layers.BatchNormalization(), layers.ReLU(6.0), layers.DepthwiseConv2D(3, padding="same", use_bias=False),
            layers.BatchNormalization(), layers.ReLU(), layers.Conv2D(12, 1), layers.BatchNormalization(),
            layers.GlobalAveragePooling2D(), layers.Dropout(0.3), layers.Dense(CLASSES, activation="softmax")]


def made_of(network):
    """A Keras model with random weights and statistics. tf2onnx leaves out biases that are all 0, as new ones."""
    tf.keras.utils.set_random_seed(3)
    image = output = tf.keras.Input((HEIGHT, WIDTH, CHANNELS))
    for layer in network:
        output = layer(output)
    model = tf.keras.Model(image, output)
    random = np.random.default_rng(5)
    for weight in model.weights:
        if "batch_normalization" in weight.path:
            weight.assign(random.uniform(0.5, 1.5, weight.shape))
        elif weight.path.endswith("bias"):
            weight.assign(random.uniform(-0.1, 0.1, weight.shape))
    return model


def convert(model, file, **options):
    signature = [tf.TensorSpec([None, HEIGHT, WIDTH, CHANNELS], tf.float32, name="image")]
    tf2onnx.convert.from_keras(model, signature, opset=13, output_path=str(file), **options)


def channels_first(images):
    return np.ascontiguousarray(images.transpose(0, 3, 1, 2))


def losses_of_tensorflow(model, images, labels):
    optimizer = tf.keras.optimizers.SGD(RATE, MOMENTUM)
    losses = []
    for _ in range(STEPS):
        with tf.GradientTape() as tape:
            each = tf.keras.losses.sparse_categorical_crossentropy(labels, model(images), from_logits=True)
            loss = tf.reduce_mean(each)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        losses.append(float(loss))
    return np.array(losses)


class TensorflowImport(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.images = np.random.default_rng(7).uniform(0, 255, (BATCH, HEIGHT, WIDTH, CHANNELS)).astype(np.float32)

    def import_(self, model, **options):
        file, imported = self.folder / "model.onnx", self.folder / "imported"
        convert(model, file, **options)
        probe.call(probe.PROGRAM, "import", file, "--output", imported)
        return imported

    def test_predictions_with_channels_last(self):
        model = made_of(normalized_network())
        imported = self.import_(model)
        logits = probe.output_of(imported, channels_first(self.images))
        powers = np.exp(logits - logits.max(1, keepdims=True))  # the softmax at the end is left out
        error = probe.relative_norm(powers / powers.sum(1, keepdims=True), model(self.images).numpy())
        print(f"relative norm of the difference, with batch norm: {error:.1e}")
        self.assertLess(error, LIMIT)

    def test_predictions_with_channels_first(self):
        model = made_of(plain_network())
        imported = self.import_(model, inputs_as_nchw=["image"])
        error = probe.relative_norm(probe.output_of(imported, channels_first(self.images / 255)),
                                    model(self.images / 255).numpy())
        print(f"relative norm of the difference: {error:.1e}")
        self.assertLess(error, LIMIT)

    def test_the_first_losses_of_training(self):
        images = self.images / 255 - 0.5
        labels = np.arange(BATCH) % CLASSES
        model = made_of(plain_network())
        file = self.folder / "model.onnx"
        convert(model, file)
        got = probe.losses_of_training(file, JOB, channels_first(images), labels, self.folder)
        expected = losses_of_tensorflow(model, images, labels)
        print("relative differences of losses:", " ".join(f"{value:.1e}" for value in np.abs(got / expected - 1)))
        self.assertEqual(len(got), STEPS)
        self.assertLess(np.abs(got / expected - 1).max(), LIMIT, f"{got} and {expected}")
        # Another rate or another order of the channels would change the losses far more than the limit.
        self.assertGreater(np.abs(np.diff(expected)).min() / expected.max(), 20 * LIMIT)


if __name__ == "__main__":
    unittest.main()
