"""The common command line of all peers' programs, and their answers."""

import argparse
import json
import os
import pathlib
import platform
import sys

from peers import datasets
from peers.accuracy_target import judged
from peers.job_file import JobError
from peers.recipe import read_recipe
from peers.schedule import RULES

JOB_INVALID, DATA_MISSING, SKIPPED, NOT_REACHED, FAILED = 3, 4, 4, 9, 1
ROOT = pathlib.Path(__file__).resolve().parents[2]


def say(text):
    print(text, file=sys.stderr, flush=True)


def answer(result):
    """Writes one JSON object on a line of stdout."""
    print(json.dumps(result), flush=True)


def add_common(parser):
    parser.add_argument("--model", default="lenet", choices=("lenet", "resnet20", "resnet32"), help="(lenet)")
    parser.add_argument("--job", help="the job file to train as (that of the model in configs/)")
    parser.add_argument(
        "--data-root", default=datasets.default_root(), help="where datasets lie; else $ARBALEST_DATA, else data/"
    )
    parser.add_argument("--seed", type=int, default=1, help="of weights, shuffles and augmentation (1)")


def add_turns(commands):
    turns = commands.add_parser("turns", help="measure images/s for as many seconds as each line of stdin says")
    add_common(turns)
    return turns


def add_train(commands):
    train = commands.add_parser("train", help="train to the target and say when it was reached")
    add_common(train)
    until = train.add_mutually_exclusive_group()
    until.add_argument("--target", type=share, help="accuracy to be reached (the job's)")
    until.add_argument("--all-epochs", action="store_true", help="train to the last epoch, whatever is reached")
    train.add_argument("--max-epochs", type=int, help="in place of the job's; its schedule follows")
    return train


def add_mini_batch(parser):
    parser.add_argument(
        "--mini-batch", type=count, help="examples of a step of all ranks together (the job's for each rank)"
    )
    parser.add_argument(
        "--rate-rule",
        choices=tuple(RULES),
        default="LINEAR",
        help="how the learning rate follows a mini-batch that is larger than the job's (LINEAR)",
    )


def count(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is below 1")
    return value


def share(text):
    value = float(text)
    if not 0.0 < value <= 1.0:
        raise argparse.ArgumentTypeError(f"{text} is not in (0, 1]")
    return value


def recipe_of(arguments):
    job = {"lenet": "lenet-mnist"}.get(arguments.model, f"{arguments.model}-cifar10")
    recipe = read_recipe(arguments.job or ROOT / "configs" / f"{job}.txtpb", getattr(arguments, "max_epochs", None))
    if recipe.model != arguments.model and not arguments.job:
        raise JobError(f"the job of {arguments.model} trains {recipe.model}")
    return recipe


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def machine():
    return {
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "load_average": os.getloadavg()[0],
    }


def tell_epoch(row):
    accuracies = ", ".join(f"{name} {100 * judged(row[name]):.2f} %" for name in ("weights", "average") if name in row)
    say(f"epoch {row['epoch']}: {accuracies}; {row['training_seconds']:.1f} s of training")


def finish_training(target, described, result):
    """Answers with the result of `train_to_target` and returns the exit code. `described`: the peer, its arrangement
    and its versions."""
    answer(described | {"target_accuracy": target} | result)
    if result["status"] == "target_reached":
        say(
            f"{100 * target:.2f} % reached by the {result['counts']} after {result['epochs_to_target']} epochs, "
            f"{result['time_to_accuracy_seconds']:.1f} s"
        )
        return 0
    if target is None and result["status"] == "completed":
        return 0
    say(f"{result['status']}: {target or 'the last epoch'} not reached in {result['epochs']} epochs")
    return NOT_REACHED


def guarded(work):
    """Returns the exit code of `work`, including the codes for an invalid job or invalid data."""
    try:
        return work()
    except JobError as error:
        say(str(error) if "error: " in str(error) else f"error: {error}")
        return JOB_INVALID
    except datasets.DataMissing as error:
        say(f"skipped: {error}")
        return DATA_MISSING
