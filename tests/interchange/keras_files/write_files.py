"""Writes the ONNX files of this folder with Keras' own exporter, and what Keras computes to expected.json.

    KERAS_BACKEND=jax DIR/bin/python tests/interchange/keras_files/write_files.py      # or tensorflow, or torch

../keras_environment.sh makes DIR. Files that one backend writes do not depend on the others. Weights are random, but the
same at every call; the examples are a formula, so that a test needs no file of them.
"""

import json
import os
import pathlib

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras  # noqa: E402

FOLDER = pathlib.Path(__file__).resolve().parent
BACKEND = keras.backend.backend()
SHAPES = {"plain": (12, 10, 3), "pools": (16, 16, 3), "gates": (6, 6, 3), "train": (14, 10, 3)}
layers = keras.layers


def examples(shape, batch=2):
    """Images of any order of dimensions, pixels in [-1, 1]."""
    count = batch * int(np.prod(shape))
    return np.sin(np.arange(count) * 0.37 + 0.1 * np.floor(np.arange(count) / 7)).astype(np.float32).reshape(batch, *shape)


def batch_norm(**options):
    return layers.BatchNormalization(axis=1 if keras.config.image_data_format() == "channels_first" else -1, **options)


def plain_network(image):
    """Strided "same" convolutions of an even size, batch norm with all its options, a flatten, and a softmax."""
    x = layers.Conv2D(8, 3, strides=2, padding="same", use_bias=False)(image)
    x = batch_norm()(x)
    x = layers.ReLU(max_value=6)(x)
    x = layers.DepthwiseConv2D(3, padding="same")(x)
    x = batch_norm(epsilon=1e-5, scale=False)(x)
    x = layers.ReLU()(x)
    x = layers.MaxPooling2D(2)(x)
    x = layers.Dropout(0.25)(x)
    x = layers.Conv2D(6, 3, padding="same", activation="relu")(x)
    x = layers.Flatten()(x)
    x = layers.Dense(10)(x)
    x = layers.BatchNormalization(center=False)(x)
    x = layers.ReLU()(x)
    return layers.Dense(5, activation="softmax")(x)


def pooled_network(image):
    """Pixels that are rescaled and padded, and pooling of every kind."""
    x = layers.Rescaling(2.0, offset=-1)(image)
    x = layers.ZeroPadding2D(((0, 1), (0, 1)))(x)
    x = layers.Conv2D(6, 3, strides=2, activation="relu")(x)
    y = layers.SeparableConv2D(6, 3, padding="same")(x)
    x = layers.Add()([x, y])
    x = layers.MaxPooling2D(3, strides=2, padding="same")(x)
    axis = 1 if keras.config.image_data_format() == "channels_first" else -1
    x = layers.Concatenate(axis=axis)([layers.AveragePooling2D(2)(x), layers.MaxPooling2D(2)(x)])
    x = layers.Concatenate(axis=axis)([x, layers.AveragePooling2D(3, strides=1, padding="same")(x)])
    x = layers.Conv2D(6, 3, padding="same")(x)
    x = layers.LeakyReLU(negative_slope=0.1)(x)
    x = layers.Concatenate(axis=-1)([layers.GlobalAveragePooling2D()(x), layers.GlobalMaxPooling2D()(x)])
    return layers.Dense(4)(x)


def gated_network(image):
    """Functions that files of other programs spell out."""
    x = layers.Conv2D(4, 3)(image)
    for function in ("silu", "hard_swish", "sigmoid", "tanh"):
        x = layers.Conv2D(4, 1, activation=function)(x)
    return layers.Dense(4)(layers.Flatten()(x))


def trained_network(image):
    """Layers that do the same at every step of training."""
    x = layers.Conv2D(8, 3, strides=2, padding="same", use_bias=False)(image)
    x = layers.ReLU()(batch_norm()(x))
    x = layers.DepthwiseConv2D(3, padding="same", use_bias=False)(x)
    x = layers.ReLU()(batch_norm()(x))
    return layers.Dense(5)(layers.Flatten()(layers.MaxPooling2D(2)(x)))


def losses_of(model, batch=16, steps=6):
    """The losses of the first steps of training, all with the same mini-batch."""
    model.compile(keras.optimizers.SGD(0.05, momentum=0.9), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    images, labels = examples(model.input_shape[1:], batch), np.arange(batch) % 5
    return [float(model.train_on_batch(images, labels)) for _ in range(steps)]


def made_of(network, shape):
    image = keras.Input(shape, name="image")
    model = keras.Model(image, network(image))
    random = np.random.default_rng(5)
    for weight in model.weights:
        fan = int(np.prod(weight.shape[:-1]))
        value = random.normal(size=weight.shape) * (0.7 / np.sqrt(max(1, fan)) if len(weight.shape) > 1 else 0.3)
        if "variance" in weight.path:
            value = random.uniform(0.5, 2, weight.shape)
        weight.assign((1 + value if "gamma" in weight.path else value).astype("float32"))
    return model


def norms_of(model):
    """The numbers of each batch norm, in the order of the layers."""
    norms = []
    for layer in model.layers:
        if isinstance(layer, layers.BatchNormalization):
            norms.append({name: np.asarray(keras.ops.convert_to_numpy(value)).tolist() for name, value in
                          (("weight", layer.gamma), ("bias", layer.beta), ("running_mean", layer.moving_mean),
                           ("running_var", layer.moving_variance)) if value is not None})
    return norms


def export(model, file):
    model.export(str(file), format="onnx", verbose=False)


def export_unfolded(model, file):
    """What Keras' exporter does for this backend, but without the folding of constants."""
    import torch

    example = torch.from_numpy(examples(model.input_shape[1:]))
    torch.onnx.export(model.eval(), (example,), str(file), dynamo=False, do_constant_folding=False)


def export_half(model, file):
    import onnx
    from onnxconverter_common import float16

    export(model, file)
    onnx.save(float16.convert_float_to_float16(onnx.load(file), keep_io_types=True), file)


def cases():
    """Name, network, order of dimensions, exporter."""
    last, first = "channels_last", "channels_first"
    yield "plain", plain_network, last, export
    yield "pools", pooled_network, last, export
    if BACKEND == "jax":
        yield "train", trained_network, last, export
        yield "plain", plain_network, first, export
        yield "pools", pooled_network, first, export
    if BACKEND == "torch":
        yield "plain", plain_network, last, export_unfolded
    if BACKEND == "tensorflow":
        yield "gates", gated_network, last, export_half


def main():
    record = FOLDER / "expected.json"
    expected = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}
    for name, network, order, exporter in cases():
        keras.config.set_image_data_format(order)
        height, width, channels = SHAPES[name]
        shape = (channels, height, width) if order == "channels_first" else (height, width, channels)
        keras.utils.clear_session()
        model = made_of(network, shape)
        output = np.asarray(keras.ops.convert_to_numpy(model(examples(shape), training=False)))
        ending = {"export": "", "export_unfolded": "-unfolded", "export_half": "-half"}[exporter.__name__]
        file = f"{BACKEND}-{name}-{order.removeprefix('channels_')}{ending}.onnx"
        exporter(model, FOLDER / file)
        expected[file] = {"keras": keras.__version__, "shape": shape, "output": output.tolist(), "norms": norms_of(model)}
        if name == "train":
            expected[file]["losses"] = losses_of(model)
    lines = [f"{json.dumps(file)}: {json.dumps(expected[file])}" for file in sorted(expected)]
    record.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
