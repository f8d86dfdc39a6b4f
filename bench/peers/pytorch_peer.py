#!/usr/bin/env python3
"""PyTorch trains what a job file of Arbalest's says, arranged as fast as it goes.

    pytorch_peer.py pick --model lenet          images/s of every arrangement on 200 steps, and the fastest
    pytorch_peer.py train --model lenet --arrangement "4 ranks" --target 0.99 --seed 1
    pytorch_peer.py turns --model lenet         measures for as many seconds as each line of stdin says

Results are JSON objects on stdout, one a line; stderr is for reading. Exit codes: 0 done, 1 a process failed, 2 usage,
3 a job that the peer cannot train, 4 skipped (no PyTorch, GPU or data), 9 the target was not reached.
"""

import argparse
import math
import os
import pathlib
import re
import signal
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from peers import command_line  # noqa: E402
from peers.command_line import FAILED, SKIPPED, answer, say  # noqa: E402

try:
    import torch
except ImportError as missing:
    say(f"skipped: {missing}")
    sys.exit(SKIPPED)

from peers.arrangements import arrangements  # noqa: E402
from peers.workers import Workers, WorkerFailed, read_data  # noqa: E402

WARM_UP_STEPS = 3
PARTS = 5  # of a pick's steps, which give its spread


def versions():
    one_dnn = re.search(r"MKL-DNN v(\S+)", torch.__config__.show())
    return {
        "pytorch": torch.__version__,
        "one_dnn": one_dnn.group(1) if one_dnn else None,
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else "",
    } | command_line.machine()


def options_of(arguments):
    return {
        "data_root": None if arguments.synthetic else arguments.data_root,
        "seed": arguments.seed,
        "tf32": arguments.tf32,
    }


def measured(arrangement, recipe, arguments):
    """Median images/s of the parts, and their spread."""
    with Workers(arrangement, recipe, options_of(arguments)) as workers:
        workers.images_per_second(WARM_UP_STEPS)
        rates = [workers.images_per_second(max(1, arguments.steps // PARTS)) for _ in range(PARTS)]
    first, median, third = statistics.quantiles(rates, n=4)
    return {
        "name": arrangement.name,
        "images_per_second": median,
        "spread": (third - first) / median,
        "trains_one_model": arrangement.trains_one_model,
    }


def pick(arguments):
    recipe = command_line.recipe_of(arguments)
    if not arguments.synthetic:
        read_data(recipe, arguments.data_root)  # once, so that what is wrong with it is not said of each arrangement
    found, left_out = arrangements(arguments.device, arguments.compile)
    skipped = [{"name": name, "reason": reason} for name, reason in left_out]
    results = []
    start = time.monotonic()
    for arrangement in (one for one in found if arguments.only in one.name):
        if results and time.monotonic() - start > arguments.budget:
            skipped.append({"name": arrangement.name, "reason": "there was no time left"})
            continue
        try:
            result = measured(arrangement, recipe, arguments)
        except WorkerFailed as failure:
            skipped.append({"name": arrangement.name, "reason": str(failure)})
            continue
        results.append(result)
        rate, spread = result["images_per_second"], 100 * result["spread"]
        say(f"{result['name']:<44} {rate:>10,.0f} images/s  spread {spread:.1f} %")
    for one in skipped:
        say(f"skipped: {one['name']}: {one['reason']}")
    if not results:
        return FAILED if found else SKIPPED
    fastest = max(results, key=lambda result: result["images_per_second"])
    winner = max(
        (result for result in results if result["trains_one_model"]),
        key=lambda result: result["images_per_second"],
        default=None,
    )
    answer(
        {
            "question": "PyTorch peers",
            "model": recipe.model,
            "batch": recipe.batch,
            "steps": arguments.steps,
            "tf32": arguments.tf32,
            "winner": winner and winner["name"],
            "fastest": fastest["name"],
            "results": results,
            "skipped": skipped,
        }
        | versions()
    )
    return 0


def chosen(arguments):
    found, left_out = arrangements(arguments.device)
    names = [arrangement.name for arrangement in found]
    if not found:
        say(f"skipped: {left_out[0][1]}")
        sys.exit(SKIPPED)
    name = arguments.arrangement or names[0]
    if name not in names:
        say(f"error: there is no arrangement '{name}'; there are: {'; '.join(names)}")
        sys.exit(2)
    return found[names.index(name)]


def turns(arguments):
    recipe = command_line.recipe_of(arguments)
    arrangement = chosen(arguments)
    with Workers(arrangement, recipe, options_of(arguments)) as workers:
        workers.images_per_second(WARM_UP_STEPS)
        last = [workers.images_per_second(2 * WARM_UP_STEPS)]

        def measure(steps):
            last[0] = workers.images_per_second(steps)
            return last[0]

        command_line.serve_turns(measure, lambda: last[0] / (recipe.batch * arrangement.processes), versions())
    return 0


def train(arguments):
    recipe = command_line.recipe_of(arguments)
    arrangement = chosen(arguments)
    if not arrangement.trains_one_model:
        say(f"error: '{arrangement.name}' trains {arrangement.processes} models and not one")
        return 2
    with tempfile.TemporaryDirectory() as cache:
        # Compiling is on the clock: the workers must not find what an earlier process has compiled.
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = cache
        with Workers(arrangement, recipe, options_of(arguments)) as workers:
            result = workers.train(command_line.target_of(arguments, recipe), recipe.max_epochs, command_line.tell_epoch)
    described = {"peer": "PyTorch", "arrangement": arrangement.name} | versions()
    return command_line.finish_training(recipe, arguments, described, result)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    picking = commands.add_parser("pick", help="measure every arrangement and name the fastest")
    command_line.add_common(picking)
    picking.add_argument("--steps", type=int, default=200, help="of each arrangement (200)")
    picking.add_argument(
        "--no-compile", dest="compile", action="store_false", help="leave out torch.compile, which takes long to start"
    )
    picking.add_argument("--budget", type=float, default=math.inf, help="begin with no other after so many seconds")
    picking.add_argument("--only", default="", metavar="TEXT", help="arrangements whose names contain it")
    for command in (command_line.add_turns(commands), command_line.add_train(commands)):
        command.add_argument("--arrangement", help="as 'pick' names it; the first if not given")
    for command in commands.choices.values():
        command.add_argument("--device", default="cpu", choices=("cpu", "cuda"), help="(cpu)")
        command.add_argument("--tf32", action="store_true", help="GPU: TF32 instead of FP32 multiplications")
        command.add_argument("--synthetic", action="store_true", help="noise in place of the dataset: for speed only")
    return parser.parse_args()


def main():
    arguments = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the workers are ended, too
    run = {"pick": pick, "turns": turns, "train": train}[arguments.command]
    try:
        sys.exit(command_line.guarded(lambda: run(arguments)))
    except WorkerFailed as failure:
        say(f"error: {failure}")
        sys.exit(FAILED)


if __name__ == "__main__":
    main()
