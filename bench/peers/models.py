"""Arbalest's LeNet and CIFAR ResNets in PyTorch, initialized like dataflow/models/zoo."""

import torch
from torch import nn


def with_xavier(layer):
    """Sets Xavier weights and zero biases, like kXavier in dataflow/layers/initializer.cc."""
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


def lenet():
    """Caffe's LeNet with 431,080 parameters (dataflow/models/zoo/lenet.cc)."""
    return nn.Sequential(
        with_xavier(nn.Conv2d(1, 20, 5)),
        nn.MaxPool2d(2),
        with_xavier(nn.Conv2d(20, 50, 5)),
        nn.MaxPool2d(2),
        nn.Flatten(),
        with_xavier(nn.Linear(800, 500)),
        nn.ReLU(),
        with_xavier(nn.Linear(500, 10)),
    )


def conv(inputs, filters, stride=1):
    """Returns a 3 x 3 convolution with Gaussian He weights, like kHe in dataflow/layers/initializer.cc."""
    layer = nn.Conv2d(inputs, filters, 3, stride, 1, bias=False)
    nn.init.kaiming_normal_(layer.weight, mode="fan_in", nonlinearity="relu")
    return layer


class Block(nn.Module):
    """Two convolutions and a shortcut without parameters (dataflow/models/zoo/resnet_cifar.cc)."""

    def __init__(self, inputs, channels, stride):
        super().__init__()
        self.stride, self.missing = stride, channels - inputs
        self.conv1, self.bn1 = conv(inputs, channels, stride), nn.BatchNorm2d(channels)
        self.conv2, self.bn2 = conv(channels, channels), nn.BatchNorm2d(channels)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        if self.stride > 1:
            before = self.missing // 2
            x = nn.functional.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, before, self.missing - before))
        return self.relu(y + x)


def resnet(depth):
    layers = [conv(3, 16), nn.BatchNorm2d(16), nn.ReLU(inplace=True)]
    inputs = 16
    for stage in range(3):
        for block in range((depth - 2) // 6):
            layers.append(Block(inputs, 16 << stage, 2 if stage > 0 and block == 0 else 1))
            inputs = 16 << stage
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), with_xavier(nn.Linear(64, 10)))


def make_model(name, seed):
    """Returns the model "lenet", "resnet20", "resnet32", ..."""
    torch.manual_seed(seed)
    return lenet() if name == "lenet" else resnet(int(name.removeprefix("resnet")))
