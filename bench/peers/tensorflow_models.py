"""Arbalest's LeNet and CIFAR ResNets in TensorFlow, initialized like dataflow/models/zoo."""

import tensorflow as tf

LAYERS = tf.keras.layers


def he(seed):
    return tf.keras.initializers.VarianceScaling(2.0, "fan_in", "untruncated_normal", seed=seed)


def xavier(seed):
    return tf.keras.initializers.GlorotUniform(seed=seed)


def lenet(seed):
    return tf.keras.Sequential(
        [
            tf.keras.Input((28, 28, 1)),
            LAYERS.Conv2D(20, 5, kernel_initializer=xavier(seed)),
            LAYERS.MaxPool2D(2),
            LAYERS.Conv2D(50, 5, kernel_initializer=xavier(seed + 1)),
            LAYERS.MaxPool2D(2),
            LAYERS.Flatten(),
            LAYERS.Dense(500, activation="relu", kernel_initializer=xavier(seed + 2)),
            LAYERS.Dense(10, kernel_initializer=xavier(seed + 3)),
        ]
    )


class ResNet:
    """Builds the layers with successive seeds."""

    def __init__(self, seed):
        self.seed = seed

    def conv_bn(self, x, filters, stride=1):
        self.seed += 1
        padded = LAYERS.ZeroPadding2D(1)(x)  # for a strided convolution "same" would pad on one side only
        x = LAYERS.Conv2D(filters, 3, stride, use_bias=False, kernel_initializer=he(self.seed))(padded)
        return LAYERS.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)

    def block(self, x, filters, stride):
        y = self.conv_bn(LAYERS.ReLU()(self.conv_bn(x, filters, stride)), filters)
        if stride > 1:
            before = (filters - x.shape[-1]) // 2
            after = filters - x.shape[-1] - before
            x = LAYERS.Lambda(lambda t: tf.pad(t[:, ::stride, ::stride], [[0, 0], [0, 0], [0, 0], [before, after]]))(x)
        return LAYERS.ReLU()(LAYERS.Add()([y, x]))

    def build(self, depth):
        image = tf.keras.Input((32, 32, 3))
        x = LAYERS.ReLU()(self.conv_bn(image, 16))
        for stage in range(3):
            for block in range((depth - 2) // 6):
                x = self.block(x, 16 << stage, 2 if stage > 0 and block == 0 else 1)
        logits = LAYERS.Dense(10, kernel_initializer=xavier(self.seed + 1))(LAYERS.GlobalAveragePooling2D()(x))
        return tf.keras.Model(image, logits)


def make_model(name, seed):
    """Returns the model "lenet", "resnet32", ..."""
    first = 1000 * seed  # so that no two runs share a layer's seed
    return lenet(first) if name == "lenet" else ResNet(first).build(int(name.removeprefix("resnet")))
