#!/usr/bin/env python3
"""How fast does PyTorch train Arbalest's ResNets for CIFAR on this machine's cores, and how fast do we, in the same run?

As lenet_cpu.py, with ResNet-20 or -32 at b = 64. PyTorch's images lie in memory as float32, normalized, and are not
augmented; `scaling_bench` reads CIFAR-10 below --data-root and augments it.
"""

import argparse
import functools
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cpu_peers import add_arguments, compete, torch  # noqa: E402
from lenet_gpu import Trainer  # noqa: E402

nn = torch.nn


class Block(nn.Module):
    """Two convolutions and a shortcut without parameters, as dataflow/models/zoo/resnet_cifar.cc has it."""

    def __init__(self, given, channels, stride):
        super().__init__()
        self.stride, self.missing = stride, channels - given
        self.conv1 = nn.Conv2d(given, channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        if self.stride > 1:
            before = self.missing // 2
            x = nn.functional.pad(x[:, :, ::self.stride, ::self.stride], (0, 0, 0, 0, before, self.missing - before))
        return self.relu(y + x)


def resnet(depth):
    layers = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(inplace=True)]
    given = 16
    for stage in range(3):
        for i in range((depth - 2) // 6):
            layers.append(Block(given, 16 << stage, 2 if stage > 0 and i == 0 else 1))
            given = 16 << stage
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


class ResNetTrainer(Trainer):
    image = (3, 32, 32)
    examples = 2048

    def __init__(self, depth, **options):
        self.depth = depth
        super().__init__(**options)

    def network(self):
        return resnet(self.depth)


def main():
    parser = argparse.ArgumentParser(description="PyTorch's images/s on a ResNet for CIFAR, b = 64, on all cores, and ours.")
    add_arguments(parser, batch=64, seconds=3.0)
    parser.add_argument("--depth", type=int, default=32, choices=(20, 32), help="of the ResNet (32)")
    parser.add_argument("--data-root", default="data", help="where cifar-10 lies, for ours")
    arguments = parser.parse_args()
    job = ("--job", f"configs/resnet{arguments.depth}-cifar10.txtpb", "--data-root", arguments.data_root)
    compete(f"resnet{arguments.depth}", functools.partial(ResNetTrainer, arguments.depth), arguments, job)


if __name__ == "__main__":
    main()
