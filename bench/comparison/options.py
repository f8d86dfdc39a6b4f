"""The options of bench/compare.sh and their defaults."""

import argparse
import os
import pathlib

from peers import command_line, datasets
from peers.schedule import RULES

ROOT = pathlib.Path(__file__).resolve().parents[2]
JOBS = {
    "lenet": "configs/lenet-mnist.txtpb",
    "resnet20": "configs/resnet20-cifar10.txtpb",
    "resnet32": "configs/resnet32-cifar10.txtpb",
}
TARGETS = {"lenet": (0.99,), "resnet20": (0.8, 0.88), "resnet32": (0.88,)}
MODELS_OF = {"TensorFlow": ("lenet", "resnet32"), "JAX": tuple(JOBS)}  # of the peers that run on CPUs only

DESCRIPTION = """Arbalest beside what users would pick instead: speed in turns, and time to an accuracy.

For each model the arrangements of PyTorch, TensorFlow and JAX are measured one after another, and each one's fastest
that trains one model goes on; so does the mini-batch with which each is soonest at the target, chosen with one seed.
They, PyTorch's and JAX's fastest of all (upper bounds) and Arbalest, in each precision of the CPU, train in turns
(A B A B ...); then each, Arbalest in its fastest precision, trains to the target once per seed, in turn. Results: a
page, and compare.json and logs beside it. Nothing that is there already is overwritten."""
EXIT_CODES = """Exit codes: 0 done; 1 a run died; 2 usage, or the results are there already; 4 no model's data are
  there; 9 Arbalest did not reach a target; 130 or 143 stopped, with a page of what has been measured."""


def seeds_of(text):
    first, dots, last = text.partition("..")
    try:
        seeds = list(range(int(first), int(last) + 1)) if dots else [int(seed) for seed in text.split(",")]
    except ValueError:
        seeds = []
    if not seeds:
        raise argparse.ArgumentTypeError(f"'{text}' names no seeds; write 1..3 or 1,2,7")
    if len(set(seeds)) < len(seeds):
        raise argparse.ArgumentTypeError(f"'{text}' names a seed twice; a run of it would be the same again")
    return seeds


def positive(text):
    value = float(text)
    if not value > 0.0 or value == float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return value


def mini_batches_of(text):
    if text == "job":
        return []
    try:
        sizes = [int(size) for size in text.split(",")]
    except ValueError:
        sizes = []
    if not sizes or min(sizes) < 1 or len(set(sizes)) < len(sizes):
        raise argparse.ArgumentTypeError(
            f"'{text}' names no mini-batches; write 64,128,256, or job for none but the job's"
        )
    return sizes


def make_parser():
    parser = argparse.ArgumentParser(
        prog="bench/compare.sh",
        description=DESCRIPTION,
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add(
        "--quick",
        action="store_true",
        help="end within 10 minutes on two cores: LeNet and the speed of ResNet-20, one seed, beside the two fastest of "
        "few arrangements of PyTorch; no TensorFlow, no JAX",
    )
    add("--model", action="append", choices=tuple(JOBS), help="may be given several times (all; quick: lenet and resnet20)")
    add("--seeds", type=seeds_of, help="as 1..3 or 1,2,7 (1..3; quick: 1)")
    add(
        "--target",
        type=command_line.share,
        help="test accuracy to be reached (0.99; ResNet-20: 0.8 and 0.88; ResNet-32: 0.88)",
    )
    add("--turns", type=command_line.count, default=7, help="of each contender (7)")
    add("--seconds", type=positive, help="of a turn (LeNet: 5, ResNets: 20; quick: 3 and 6)")
    add("--arrangement", help="PyTorch's, as pytorch_peer.py pick names it, in place of the fastest; PyTorch only")
    add(
        "--mini-batches",
        type=mini_batches_of,
        default=[64, 128, 256],
        help="examples of a peer's step among which the best is chosen with the first seed, or job for none but the "
        "job's (64,128,256)",
    )
    add(
        "--rate-rule",
        choices=tuple(RULES),
        default="LINEAR",
        help="how a peer's learning rate follows a mini-batch larger than the job's (LINEAR)",
    )
    add("--by-epoch", action="store_true", help="train to the last epoch and compare the accuracies of every epoch")
    add("--device", choices=("cpu", "cuda"), default="cpu", help="of both sides: all cores, or the first GPU (cpu)")
    add("--speed-only", action="store_true", help="turns, and no training to the target")
    add("--max-epochs", type=command_line.count, help="in place of the jobs'")
    add(
        "--set",
        action="append",
        default=[],
        metavar="PATH=VALUE",
        help="for Arbalest's job, such as training.precision=FP32; may be given several times",
    )
    add("--peers", default=ROOT / "build/peers", help="what peers/environment.sh made (build/peers)")
    add("--program", default=ROOT / "build/release/arbalest", help="(build/release/arbalest)")
    add("--data-root", default=datasets.default_root(), help="where datasets lie; else $ARBALEST_DATA, else data/")
    add("--output", help="new directory for page, JSON and logs (page: bench/results/, the rest: runs/)")
    return parser


def turn_seconds(arguments, model):
    if arguments.seconds:
        return arguments.seconds
    usual, quick = (5.0, 3.0) if model == "lenet" else (20.0, 6.0)
    return quick if arguments.quick else usual


def pick_options(arguments, model, framework):
    if arguments.quick:
        return ["--steps", "50" if model == "lenet" else "10", "--few", "--budget", "80" if model == "lenet" else "100"]
    return ["--steps", "50" if framework != "PyTorch" and model != "lenet" else "200"]


def parse():
    parser = make_parser()
    arguments = parser.parse_args()
    if arguments.by_epoch and (arguments.target or arguments.speed_only):
        parser.error("--by-epoch trains to no target: leave out --target and --speed-only")
    arguments.model = arguments.model or (["lenet", "resnet20"] if arguments.quick else list(JOBS))
    arguments.seeds = arguments.seeds or ([1] if arguments.quick else [1, 2, 3])
    for name in ("peers", "program", "data_root", "output"):
        if getattr(arguments, name):
            setattr(arguments, name, os.path.abspath(getattr(arguments, name)))
    return arguments
