"""Arbalest's LeNet and CIFAR ResNets in JAX, initialized like dataflow/models/zoo.

Images are [n, h, w, c], and the weights of a convolution [h, w, inputs, filters]. A model is a function (weights,
statistics, images, whether it is trained) -> (logits, statistics). It computes in the type of its images; `statistics`
are (mean, variance) of each batch norm for evaluation, in float32.
"""

import jax
import jax.numpy as jnp

BATCH_NORM_MOMENTUM, EPSILON = 0.9, 1e-5

xavier = jax.nn.initializers.glorot_uniform()
he = jax.nn.initializers.variance_scaling(2.0, "fan_in", "normal")


def conv(x, weight, stride=1, padding=0):
    sides = ((padding, padding), (padding, padding))
    names = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(x, weight.astype(x.dtype), (stride, stride), sides, dimension_numbers=names)


def add_bias(x, bias):
    """Adds in float32. JAX would add up the gradient of a bias in bfloat16, which ends at 256 for ones."""
    return (x + bias).astype(x.dtype)


def dense(x, weight, bias):
    return add_bias(x @ weight.astype(x.dtype), bias)


def max_pool(x):
    """The largest of 2 x 2 pixels. Training LeNet takes 0.7 of the processor time that it takes with reduce_window."""
    n, height, width, channels = x.shape
    return x.reshape(n, height // 2, 2, width // 2, 2, channels).max((2, 4))


def batch_norm(x, scale, shift, statistics, training):
    """Returns the normalized x, and the new statistics."""
    mean, variance = statistics
    if training:
        wide = x.astype(jnp.float32)
        mean, variance = wide.mean((0, 1, 2)), wide.var((0, 1, 2))
        count = x.size // x.shape[-1]
        latest = (mean, variance * count / (count - 1))
        before = BATCH_NORM_MOMENTUM
        statistics = tuple(before * old + (1.0 - before) * new for old, new in zip(statistics, latest))
    factor = scale * jax.lax.rsqrt(variance + EPSILON)
    return (x * factor + (shift - mean * factor)).astype(x.dtype), statistics


def lenet_weights(keys):
    shapes = ((5, 5, 1, 20), (5, 5, 20, 50), (800, 500), (500, 10))
    return [(xavier(key, shape), jnp.zeros(shape[-1])) for key, shape in zip(keys, shapes)]


def lenet(weights, statistics, x, _training):
    for weight, bias in weights[:2]:
        x = max_pool(add_bias(conv(x, weight), bias))
    x = jax.nn.relu(dense(x.reshape(len(x), -1), *weights[2]))
    return dense(x, *weights[3]), statistics


def resnet_weights(depth, keys):
    """Returns (weight, scale, shift) of each convolution with its batch norm, and the weight and bias of the last
    layer."""
    channels = [3, 16] + [16 << stage for stage in range(3) for _ in range((depth - 2) // 3)]
    layers = [
        (he(key, (3, 3, inputs, filters)), jnp.ones(filters), jnp.zeros(filters))
        for key, inputs, filters in zip(keys, channels, channels[1:])
    ]
    return [*layers, (xavier(keys[-1], (64, 10)), jnp.zeros(10))]


def resnet(weights, statistics, x, training):
    after = []

    def conv_bn(x, stride=1):
        weight, scale, shift = weights[len(after)]
        x, latest = batch_norm(conv(x, weight, stride, 1), scale, shift, statistics[len(after)], training)
        after.append(latest)
        return x

    x = jax.nn.relu(conv_bn(x))
    for stage in range(3):
        for block in range((len(weights) - 2) // 6):
            stride = 2 if stage > 0 and block == 0 else 1
            y = conv_bn(jax.nn.relu(conv_bn(x, stride)))
            missing = y.shape[-1] - x.shape[-1]
            sides = ((0, 0), (0, 0), (0, 0), (missing // 2, missing - missing // 2))
            x = jax.nn.relu(y + jnp.pad(x[:, ::stride, ::stride], sides))
    return dense(x.mean((1, 2)), *weights[-1]), after


def make_model(name, seed):
    """Returns (model, weights, statistics) of "lenet", "resnet32", ..."""
    depth = 4 if name == "lenet" else int(name.removeprefix("resnet"))
    keys = jax.random.split(jax.random.key(seed), depth)
    if name == "lenet":
        return lenet, lenet_weights(keys), []
    weights = resnet_weights(depth, keys)
    return resnet, weights, [(jnp.zeros_like(shift), jnp.ones_like(scale)) for _, scale, shift in weights[:-1]]
