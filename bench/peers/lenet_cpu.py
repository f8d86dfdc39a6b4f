#!/usr/bin/env python3
"""How fast does PyTorch train Arbalest's LeNet on this machine's cores, and how fast do we, in the same run?

PyTorch with one thread, with one thread for each core, and as one process for each core; each with the optimizer's update
fused, and in both orders of an image's elements. Its data costs nothing: images lie in memory as float32, normalized, and
a mini-batch is a view of them. Its processes do not talk to each other. Ours are what `scaling_bench` measures: k = cores
learners in one process, which average their models, and k processes of one learner. Several `--ours` compare builds.

Contenders take turns. One JSON object goes to stdout, readable lines to stderr. Without PyTorch it says so and exits with
4, which means skipped.
"""

import argparse
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cpu_peers import add_arguments, compete  # noqa: E402
from lenet_gpu import Trainer  # noqa: E402  the same model, whatever the device


def main():
    parser = argparse.ArgumentParser(description="PyTorch's images/s on LeNet, b = 32, on all cores, and ours.")
    add_arguments(parser, batch=32, seconds=0.5)
    compete("lenet", Trainer, parser.parse_args())


if __name__ == "__main__":
    main()
