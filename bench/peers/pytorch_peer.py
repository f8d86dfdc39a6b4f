#!/usr/bin/env python3
"""PyTorch trains what a job file of Arbalest's says, arranged as fast as it goes.

    pytorch_peer.py pick --model lenet          images/s of every arrangement on 200 steps, the three fastest three times
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
FINALISTS, FINALS = 3, 2  # the fastest that train one model are measured so often again: processes differ


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


class Picking:
    """Arrangements that are measured one after the other, some of them several times."""

    def __init__(self, recipe, arguments):
        self.recipe, self.arguments = recipe, arguments
        self.end = time.monotonic() + arguments.budget
        self.rates = {}  # of each arrangement that ran: images/s of the parts of all its measurements
        self.skipped = []  # (name, reason)

    def measure(self, arrangement):
        if self.rates and time.monotonic() > self.end:
            again = " to measure it again" if arrangement in self.rates else ""
            self.skipped.append((arrangement.name, f"there was no time left{again}"))
            return
        try:
            with Workers(arrangement, self.recipe, options_of(self.arguments)) as workers:
                workers.images_per_second(WARM_UP_STEPS)
                parts = [workers.images_per_second(max(1, self.arguments.steps // PARTS)) for _ in range(PARTS)]
        except WorkerFailed as failure:
            self.skipped.append((arrangement.name, str(failure)))
            return
        self.rates.setdefault(arrangement, []).extend(parts)
        first, median, third = statistics.quantiles(parts, n=4)
        say(f"{arrangement.name:<44} {median:>10,.0f} images/s  spread {100 * (third - first) / median:.1f} %")

    def ranked(self, arrangements):
        """The fastest first."""
        ran = [arrangement for arrangement in arrangements if arrangement in self.rates]
        return sorted(ran, key=lambda arrangement: -statistics.median(self.rates[arrangement]))

    def result(self, arrangement):
        first, median, third = statistics.quantiles(self.rates[arrangement], n=4)
        return {
            "name": arrangement.name,
            "images_per_second": median,
            "spread": (third - first) / median,
            "measurements": len(self.rates[arrangement]) // PARTS,
            "trains_one_model": arrangement.trains_one_model,
        }


def pick(arguments):
    recipe = command_line.recipe_of(arguments)
    if not arguments.synthetic:
        read_data(recipe, arguments.data_root)  # once, so that what is wrong with it is not said of each arrangement
    found, left_out = arrangements(arguments.device, arguments.compile)
    picking = Picking(recipe, arguments)
    for arrangement in (one for one in found if arguments.only in one.name):
        picking.measure(arrangement)
    finalists = picking.ranked(one for one in found if one.trains_one_model)[:FINALISTS]
    for _ in range(FINALS if len(finalists) > 1 else 0):
        for arrangement in finalists:
            picking.measure(arrangement)
    skipped = left_out + picking.skipped
    for name, reason in skipped:
        say(f"skipped: {name}: {reason}")
    if not picking.rates:
        return FAILED if found else SKIPPED
    winner = next(iter(picking.ranked(finalists)), None)
    answer(
        {
            "question": "PyTorch peers",
            "model": recipe.model,
            "batch": recipe.batch,
            "steps": arguments.steps,
            "tf32": arguments.tf32,
            "winner": winner and winner.name,
            "fastest": picking.ranked(found)[0].name,
            "results": [picking.result(arrangement) for arrangement in found if arrangement in picking.rates],
            "skipped": [{"name": name, "reason": reason} for name, reason in skipped],
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
