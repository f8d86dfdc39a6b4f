"""Compares Arbalest with PyTorch, TensorFlow and JAX (bench/compare.sh); options and exit codes are in
comparison/options.py."""

import datetime
import itertools
import json
import os
import pathlib
import signal
import statistics
import sys
import time

from comparison import machine
from comparison.choosing import Choosing
from comparison.contenders import Arbalest, OutOfTime, RunDied, readable
from comparison.options import JOBS, ROOT, TARGETS, parse, turn_seconds
from comparison.page import headline, other_work, page
from comparison.pairing import all_reach
from peers import command_line, datasets
from peers.command_line import say
from peers.job_file import JobError, parse as parse_job

QUICK_SECONDS = 570
SHARE_OF_TRAINING = 0.35  # fraction of a model's part of this time, if it trains to a target


def is_taken(path):
    return path.exists() or path.is_symlink()


def free_places(root, name):
    """Returns (folder, page) below `root` that do not exist yet. They have this name, with the first free number added
    if needed."""
    for number in itertools.count(1):
        numbered = name if number == 1 else f"{name}-{number}"
        folder, page_path = root / "runs" / f"compare-{numbered}", root / "bench" / "results" / f"{numbered}.md"
        if not is_taken(folder) and not is_taken(page_path):
            return folder, page_path


def fastest_first(pairs):
    """Returns (contender, side) for our fastest, then the peers, then our others, which only took turns."""
    ours = sorted(
        (pair for pair in pairs if pair[1]["is_ours"]),
        key=lambda pair: statistics.median(pair[1]["rates"] or [0.0]),
        reverse=True,
    )
    return [ours[0], *(pair for pair in pairs if not pair[1]["is_ours"]), *ours[1:]]


def says_precision(job):
    try:
        return "precision" in parse_job(job.read_text()).message("training").values
    except JobError:  # Arbalest reports the error itself, and the peers are skipped with the reason
        return False


class Comparison:
    def __init__(self, arguments):
        self.arguments = arguments
        self.start = time.monotonic()
        self.end = None  # of the present model, in quick mode
        self.date = datetime.date.today().isoformat()
        try:
            arbalest = machine.environment(arguments.program)
        except machine.NotArbalest as error:
            say(f"error: {error}; build it, or name it with --program")
            sys.exit(2)
        self.make_place()
        self.python = machine.find_python(arguments.peers)
        busy = machine.busy_share()
        if busy > machine.QUIET:
            say(f"warning: {other_work(busy)}")
        self.result = {
            "date": self.date,
            "command": readable(["bench/compare.sh", *sys.argv[1:]]),
            "quick": arguments.quick,
            "commit": arbalest.get("source_commit", "unknown"),
            "machine": command_line.machine(),
            "load_average": [os.getloadavg()[0]],
            "busy_share": busy,
            "versions": {"Arbalest": f"{arbalest['arbalest']} (oneDNN {arbalest.get('oneDNN')})"},
            "stopped": False,
            "models": [],
            "skipped": [],
            "died": [],
        }

    def make_place(self):
        """Creates the folder for results; existing files are kept."""
        name = f"{self.date}-{machine.name()}"
        if self.arguments.output:
            self.folder = pathlib.Path(self.arguments.output)
            self.page = self.folder / f"{name}.md"
            if is_taken(self.folder):
                say(f"error: '{self.folder}' is there already and is not overwritten; name a new directory with --output")
                sys.exit(2)
        else:
            self.folder, self.page = free_places(ROOT, name)
        try:
            self.folder.mkdir(parents=True)
        except OSError as error:
            say(f"error: '{self.folder}' cannot be made: {error.strerror}; name another directory with --output")
            sys.exit(2)

    def seconds_left(self):
        """Returns the seconds that are left for the present model, or None if there is no time limit."""
        return max(1.0, self.end - time.monotonic()) if self.arguments.quick else None

    def seconds_of_model(self):
        return QUICK_SECONDS / len(self.arguments.model)

    def ours(self, model):
        """Returns Arbalest in every precision of the CPU, unless the job or --set names one. PyTorch gets every
        arrangement in the same way."""
        arguments = self.arguments
        device = "cuda:0" if arguments.device == "cuda" else "cpu"
        is_said = any(one.partition("=")[0] in ("training", "training.precision") for one in arguments.set)
        is_said = is_said or says_precision(ROOT / JOBS[model])
        names = [None] if is_said or device != "cpu" else machine.precisions(arguments.program)
        places = JOBS[model], arguments.set, device, arguments.data_root, self.folder / model
        return [Arbalest(arguments.program, *places, name if len(names) > 1 else None) for name in names]

    def skip(self, what):
        say(f"skipped: {what}")
        self.result["skipped"].append(what)

    def guarded(self, what, work, *arguments):
        """Returns the result of `work(*arguments)`, or None if its run died or the time was over. Counts dead runs."""
        try:
            return work(*arguments)
        except OutOfTime:
            self.skip(f"{what}: stopped, the time was over")
        except (RunDied, OSError, ValueError, LookupError) as error:  # other than RunDied: its output is invalid
            say(f"died: {what}: {error}")
            self.result["died"].append(f"{what}: {error}")
        return None

    def save(self):
        self.result["load_average"].append(os.getloadavg()[0])
        (self.folder / "compare.json").write_text(json.dumps(self.result, indent=1) + "\n")

    def compare(self, model):
        """Compares all contenders on one model."""
        arguments = self.arguments
        try:
            dataset = "mnist" if model == "lenet" else "cifar-10"
            examples = len(datasets.load(dataset, "train", arguments.data_root))
        except datasets.DataMissing as missing:
            return self.skip(f"{model}: {missing}")
        targets = [arguments.target] if arguments.target else list(TARGETS[model])
        targets = [] if arguments.by_epoch else targets
        entry = {
            "model": model,
            "targets": targets,
            "trains": not (arguments.speed_only or (arguments.quick and model != "lenet")),
            "by_epoch": arguments.by_epoch,
            "picked": [],
            "mini_batches": [],
            "commands": [],
            "sides": [],
            "examples": examples,
        }
        self.result["models"].append(entry)
        contenders = [*self.ours(model), *Choosing(self, model, entry).contenders()]
        entry["sides"] = [
            {"name": one.name, "is_ours": isinstance(one, Arbalest), "got": None, "rates": [], "cores": [], "runs": []}
            for one in contenders
        ]
        entry["commands"] += [readable(contender.of_turns()) for contender in contenders]
        pairs = list(zip(contenders, entry["sides"]))
        self.save()
        reserved = SHARE_OF_TRAINING * self.seconds_of_model() if entry["trains"] else 0.0
        self.take_turns(model, pairs, reserved)
        pairs = fastest_first(pairs)
        entry["sides"] = [side for _, side in pairs]
        if not entry["trains"]:
            reason = "only speed was asked for" if arguments.speed_only else "not in quick mode"
            self.skip(f"{model}: training to a target: {reason}")
        else:
            others = [(c, side) for c, side in pairs[1:] if not c.is_upper_bound and not side["is_ours"]]
            if arguments.quick:
                others = sorted(others, key=lambda pair: statistics.median(pair[1]["rates"] or [0.0]))[-1:]
            self.train(model, [pairs[0], *others], entry)
        for line in headline(entry):
            say(line)
        return None

    def take_turns(self, model, pairs, reserved):
        """Runs the contenders in turns. The order alternates, so that a drift of the machine favors none. If one of
        them dies, the turns end; in quick mode also if there is no time for another beside the `reserved` seconds."""
        for turn in range(-1, self.arguments.turns):  # turn -1 is the warm-up; a peer that fails in it is left out
            begin = time.monotonic()
            rates, cores = self.one_turn(model, pairs if turn % 2 == 0 else list(reversed(pairs)))
            if turn < 0:
                pairs = [pair for pair in pairs if rates[pair[1]["name"]] is not None]
                if not pairs or not pairs[0][1]["is_ours"]:
                    break
            elif None in rates.values():
                break
            else:
                for _, side in pairs:
                    side["rates"].append(rates[side["name"]])
                    side["cores"].append(cores[side["name"]])
                told = "; ".join(f"{name} {rate:,.0f}" for name, rate in rates.items())
                say(f"{model}, turn {turn + 1}, images/s: {told}")
            if self.arguments.quick and self.seconds_left() - reserved < time.monotonic() - begin:
                break
        self.save()

    def one_turn(self, model, pairs):
        """Returns {name of a side: images/s or None}, and {name: cores in use or None}."""
        seconds = turn_seconds(self.arguments, model)
        rates, cores = {}, {}
        for contender, side in pairs:
            what = f"{model}: a turn of {contender.name}"
            rates[side["name"]] = self.guarded(what, contender.turn, seconds, self.seconds_left)
            self.result["versions"].update(contender.versions)
            side["got"] = contender.got
            cores[side["name"]] = contender.cores
        return rates, cores

    def train(self, model, pairs, entry):
        """Trains to the highest target, or to the last epoch, once per seed, taking turns."""
        target = max(entry["targets"], default=None)
        goal = f"{100 * target:g} %" if target else "the last epoch"
        for number, seed in enumerate(self.arguments.seeds):
            for contender, side in pairs if number % 2 == 0 else reversed(pairs):
                say(f"{model}: {contender.name} trains to {goal}, seed {seed}")
                what = f"{model}: {contender.name}, seed {seed}"
                entry["commands"].append(readable(contender.training(target, seed, self.arguments.max_epochs)))
                run = self.guarded(what, contender.train, target, seed, self.arguments.max_epochs, self.seconds_left)
                if run is not None:
                    side["runs"].append(run)
                    self.result["versions"].update(contender.versions)
                self.save()

    def finish(self, stopped_with=None):
        """Returns the exit code."""
        self.result["stopped"] = stopped_with is not None
        self.save()
        if not self.result["models"]:
            return stopped_with or command_line.DATA_MISSING
        self.page.parent.mkdir(parents=True, exist_ok=True)
        with self.page.open("x") as file:
            file.write(page(self.result))
        say(f"page: {self.page}; data: {self.folder / 'compare.json'}")
        if stopped_with:
            return stopped_with
        if self.result["died"]:
            return command_line.FAILED
        seeds = len(self.arguments.seeds)
        trained = [entry for entry in self.result["models"] if entry["trains"] and entry["targets"]]
        has_reached = all(all_reach(max(entry["targets"]), entry["sides"][0]["runs"], seeds) for entry in trained)
        return 0 if has_reached else command_line.NOT_REACHED


def main():
    arguments = parse()
    os.chdir(ROOT)
    comparison = Comparison(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the trainings are also ended
    stopped_with = None
    try:
        for number, model in enumerate(arguments.model, start=1):
            comparison.end = comparison.start + number * comparison.seconds_of_model()
            comparison.compare(model)
    except KeyboardInterrupt:
        stopped_with = 130
    except SystemExit as stop:
        stopped_with = stop.code
    sys.exit(comparison.finish(stopped_with))


if __name__ == "__main__":
    main()
