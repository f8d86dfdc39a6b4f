"""The program of a peer in any framework: the commands pick, turns and train."""

import argparse
import dataclasses
import math
import os
import signal
import sys
import tempfile
from collections.abc import Callable

from peers import command_line
from peers.arrangements import named
from peers.command_line import FAILED, SKIPPED, answer, say
from peers.picking import WARM_UP_STEPS, Picking, chosen_among, pick
from peers.workers import Workers, WorkerFailed, read_parts


@dataclasses.dataclass(frozen=True)
class Framework:
    name: str  # "PyTorch"
    serve: Callable  # run by its worker processes (workers.py)
    arrangements: Callable  # (arguments, whether to compile, precision) -> (arrangements, [(name, reason)])
    versions: Callable  # () -> name and versions, for a page
    add_options: Callable = lambda parser: None
    worker_options: Callable = lambda arguments: {}


class Program:
    def __init__(self, framework, arguments):
        self.framework, self.arguments = framework, arguments
        self.recipe = command_line.recipe_of(arguments)

    def workers(self, arrangement):
        arguments = self.arguments
        options = {"data_root": None if arguments.synthetic else arguments.data_root, "seed": arguments.seed}
        options |= self.framework.worker_options(arguments)
        return Workers(self.framework.serve, arrangement, self.arranged(arrangement), options)

    def arranged(self, arrangement):
        return self.recipe.arranged(arrangement.ranks, self.arguments.mini_batch, self.arguments.rate_rule)

    def described(self):
        """Returns the common fields of all answers."""
        recipe = {
            "model": self.recipe.model,
            "job": self.recipe.job,
            "batch": self.recipe.batch,
            "coupling": self.recipe.coupling,
            "rate_rule": self.arguments.rate_rule,
        }
        return recipe | self.framework.versions() | command_line.machine()

    def found(self, compiles=True):
        return self.framework.arrangements(self.arguments, compiles, self.recipe.precision)

    def chosen(self):
        found, left_out = self.found()
        if not found:
            say(f"skipped: {'; '.join(f'{name}: {reason}' for name, reason in left_out)}")
            sys.exit(SKIPPED)
        arrangement = named(found, self.arguments.arrangement or found[0].name)
        if arrangement is None:
            names = "; ".join(one.name for one in found)
            say(f"error: there is no arrangement '{self.arguments.arrangement}'; there are: {names}")
            sys.exit(2)
        return arrangement

    def pick(self):
        arguments = self.arguments
        if not arguments.synthetic:
            read_parts(self.recipe, arguments.data_root)  # once here, so that errors are not reported by every worker
        found, left_out = self.found(arguments.compile)
        try:
            among = chosen_among(found, arguments.among, arguments.only)
        except LookupError as error:
            say(f"error: {error.args[0]}")
            return 2

        def steps(arrangement):  # the same number of images with every mini-batch
            return round(arguments.steps * self.recipe.batch / self.arranged(arrangement).batch)

        result = pick(Picking(self.workers, steps, arguments.budget), among, left_out, arguments.few)
        if result is None:
            return FAILED if found else SKIPPED
        question = {"question": f"{self.framework.name} peers", "steps": arguments.steps}
        answer(question | self.described() | {"mini_batch": arguments.mini_batch} | result)
        return 0

    def turns(self):
        arrangement = self.chosen()
        with self.workers(arrangement) as workers:
            workers.images_per_second(WARM_UP_STEPS)
            rate = workers.images_per_second(2 * WARM_UP_STEPS)
            answer({"ready": True} | self.described())
            for line in sys.stdin:
                steps = max(1, round(float(line) * rate / (workers.recipe.batch * arrangement.processes)))
                rate = workers.images_per_second(steps)
                answer({"images_per_second": rate, "got": workers.got(), "steps": steps})
        return 0

    def train(self):
        arrangement = self.chosen()
        if not arrangement.trains_one_model:
            say(f"error: '{arrangement.name}' trains {arrangement.processes} models and not one")
            return 2
        target = None if self.arguments.all_epochs else self.arguments.target or self.recipe.target
        with tempfile.TemporaryDirectory() as cache:
            # Compiling counts as training time, so the workers must not find results of an earlier process.
            os.environ["TORCHINDUCTOR_CACHE_DIR"] = cache
            with self.workers(arrangement) as workers:
                result = workers.train(target, self.recipe.max_epochs, command_line.tell_epoch)
                result["got"] = workers.got()
        header = {"peer": self.framework.name, "arrangement": arrangement.name, "seed": self.arguments.seed}
        return command_line.finish_training(target, header | self.described(), result)


def parse(framework, description):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    picking = commands.add_parser("pick", help="measure every arrangement and name the fastest")
    command_line.add_common(picking)
    picking.add_argument("--steps", type=int, default=200, help="of each arrangement with the job's mini-batch (200)")
    picking.add_argument(
        "--no-compile", dest="compile", action="store_false", help="leave out compiled ones, which take long to start"
    )
    picking.add_argument(
        "--few", action="store_true", help="measure few arrangements: channels last first, then variants of the fastest"
    )
    picking.add_argument("--budget", type=float, default=math.inf, help="begin with no other after so many seconds")
    picking.add_argument("--only", default="", metavar="TEXT", help="arrangements whose names contain it")
    picking.add_argument(
        "--among", action="append", default=[], metavar="NAME", help="this arrangement, and others so named"
    )
    for command in (command_line.add_turns(commands), command_line.add_train(commands)):
        command.add_argument("--arrangement", help="as 'pick' names it; the first if not given")
    for command in commands.choices.values():
        command_line.add_mini_batch(command)
        command.add_argument("--synthetic", action="store_true", help="noise in place of the dataset: for speed only")
        framework.add_options(command)
    return parser.parse_args()


def main(framework, description):
    arguments = parse(framework, description)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the workers are also ended
    try:
        sys.exit(command_line.guarded(lambda: getattr(Program(framework, arguments), arguments.command)()))
    except WorkerFailed as failure:
        say(f"error: {failure}")
        sys.exit(FAILED)
