"""Runs Arbalest and its peers as processes that take turns and train to a target."""

import contextlib
import json
import pathlib
import shlex
import signal
import subprocess
import threading
import time

from comparison import got
from comparison.processor_time import Meter
from peers import huge_pages
from peers.command_line import NOT_REACHED

GRACE = 10  # seconds between asking a process to end and killing it
WARM_UP = 0.2  # fraction of a turn, which precedes the turn in a peer's new process


class RunDied(Exception):
    """A process ended in an unexpected way."""


class OutOfTime(Exception):
    """A process was stopped because there was no time left for it."""


def readable(words):
    """Returns a command for a page, without this machine's folders."""
    root = pathlib.Path(__file__).resolve().parents[2]
    shown = []
    for word in map(str, words):
        path = pathlib.Path(word)
        if path.is_absolute():
            word = str(path.relative_to(root)) if path.is_relative_to(root) else f".../{path.name}"
        shown.append(shlex.quote(word))
    return " ".join(shown)


def last_line(path):
    lines = [line for line in path.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else "it has said nothing"


def versions_of(answer):
    """Returns the versions that a peer has reported, for a page."""
    names = {"pytorch": "PyTorch", "tensorflow": "TensorFlow", "jax": "JAX", "python": "Python"}
    versions = {name: answer[key] for key, name in names.items() if key in answer}
    if answer.get("one_dnn"):
        versions["PyTorch"] += f" (oneDNN {answer['one_dnn']})"
    return versions


class Log:
    """Collects the readable output of one contender's processes."""

    def __init__(self, path):
        self.path = path

    def open(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        return self.path.open("ab")

    def died(self, code):
        return RunDied(f"exit code {code}: {last_line(self.path)} ({self.path})")


def run_to_end(command, log, seconds_left, allowed=(0,)):
    """Returns the process's stdout. Ends a process that takes longer than the remaining time."""
    with log.open() as stderr:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr)
        try:
            out, _ = process.communicate(timeout=seconds_left())
        except BaseException as interruption:
            process.terminate()
            try:
                process.communicate(timeout=GRACE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
            if isinstance(interruption, subprocess.TimeoutExpired):
                raise OutOfTime from None
            raise
    if process.returncode not in allowed:
        raise log.died(process.returncode)
    return out.decode()


@contextlib.contextmanager
def ended_after(process, seconds):
    """In this context, a process that exceeds the limit is ended, and its RunDied becomes OutOfTime. None: no limit."""
    is_over, is_done = threading.Event(), threading.Event()

    def watch():
        if is_done.wait(seconds):
            return
        is_over.set()
        process.terminate()
        if not is_done.wait(GRACE):  # Python handles no signal while a library computes
            process.kill()

    if seconds is not None:
        threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    except RunDied:
        if is_over.is_set():
            raise OutOfTime from None
        raise
    finally:
        is_done.set()


def resident_in_huge_pages(process):
    """Returns the number of bytes; None if the process has ended."""
    try:
        return huge_pages.resident_bytes(process.pid) if process.poll() is None else None
    except (FileNotFoundError, ProcessLookupError):  # the process ended in between
        return None


def wait_measured(process, seconds):
    """Waits. Returns what Meter.stop returns for this time; None if the process ends earlier."""
    if process.poll() is not None:
        return None
    meter = Meter(process.pid)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return meter.stop()
    return None


class Arbalest:
    is_upper_bound = False

    def __init__(self, program, job, settings, device, data_root, folder, precision=None):
        """`device`: replaces the job's devices if the settings name none. `precision`: replaces the job's.
        """
        self.name = f"Arbalest, {precision}" if precision else "Arbalest"
        self.job, self.folder, self.log = job, folder, Log(folder / "arbalest.log")
        self.program = str(program)
        if precision:
            self.folder = folder / precision.lower()
            settings = [*settings, f"training.precision={precision}"]
        if not any(setting.startswith("devices") for setting in settings):
            settings = [*settings, f"devices={device}"]
        self.options = [word for setting in settings for word in ("--set", setting)]
        self.options += ["--data-root", data_root]
        self.turns = 0
        self.versions = {}
        self.got = None  # its resources in the latest turn
        self.cores = None  # in use during the latest turn (Meter.stop)

    def training(self, target, seed, max_epochs):
        goal = str(target or 1)  # None means never, and 1 is the closest value that `bench` accepts
        command = [self.program, "bench", self.job, *self.options, "--target", goal, "--seeds", str(seed)]
        return command + (["--set", f"training.max_epochs={max_epochs}"] if max_epochs else [])

    def of_turns(self):
        return [self.program, "train", self.job, *self.options, "--quiet"]

    def turn(self, seconds, seconds_left):
        """Returns images/s of training, from a run that is stopped `seconds` after its preparation."""
        self.turns += 1
        output = self.folder / "turns" / f"arbalest-{self.turns}"
        command = [*self.of_turns(), "--output", str(output)]
        with self.log.open() as stderr:
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stderr)
            try:
                with ended_after(process, seconds_left()):
                    metrics = output / "metrics.jsonl"
                    while process.poll() is None and not (metrics.exists() and '"event":"start"' in metrics.read_text()):
                        time.sleep(0.01)
                    huge = resident_in_huge_pages(process)  # all of its memory is allocated when it starts to train
                    self.cores = wait_measured(process, seconds)
                    process.send_signal(signal.SIGINT)
                    process.wait()
                    if process.returncode not in (0, 130):
                        raise self.log.died(process.returncode)
            finally:
                process.kill()
                process.wait()
        summary = json.loads((output / "summary.json").read_text())
        self.got = got.ours((output / "job.txtpb").read_text(), summary["learners"], huge)
        return summary["images_per_second"]

    def train(self, target, seed, max_epochs, seconds_left):
        output = self.folder / "runs" / f"arbalest-{seed}"
        output.parent.mkdir(parents=True, exist_ok=True)
        command = [*self.training(target, seed, max_epochs), "--output", str(output)]
        run_to_end(command, self.log, seconds_left, (0, NOT_REACHED))
        run = json.loads((output / "bench.json").read_text())["cases"][0]["runs"][0]
        return {
            "seed": seed,
            "preparation_seconds": run["phase_seconds"]["preparation"],
            "outcome": run["outcome"],
            "learners": run["learners"],
            "curves": {"model": run["epoch_rows"]},
        }


class Peer:
    """A program of bench/peers in its Python environment."""

    def __init__(self, name, basic_command, folder, arrangement=None, is_upper_bound=False, mini_batch=None):
        self.name, self.basic_command, self.folder = name, basic_command, folder
        self.arrangement, self.is_upper_bound, self.mini_batch = arrangement, is_upper_bound, mini_batch
        self.log = Log(folder / f"{pathlib.Path(basic_command[1]).stem}.log")
        self.process = None
        self.versions = {}  # from its answers
        self.got = None  # its resources in the latest turn or training, also from its answers
        self.cores = None  # in use during the latest turn (Meter.stop)

    def arranged(self, arrangement, is_upper_bound=False, mini_batch=None):
        """`mini_batch`: examples per step. It replaces the job's mini-batch for each rank."""
        name = f"{self.name}, {arrangement}" + (" (upper bound)" if is_upper_bound else "")
        name += f", mini-batch {mini_batch}" if mini_batch else ""
        return Peer(name, self.basic_command, self.folder, arrangement, is_upper_bound, mini_batch)

    def words(self, verb, *more):
        program, script, *options = self.basic_command
        chosen = ["--arrangement", self.arrangement] if self.arrangement else []
        chosen += ["--mini-batch", str(self.mini_batch)] if self.mini_batch else []
        return [program, script, verb, *options, *chosen, *more]

    def training(self, target, seed, max_epochs):
        goal = ["--target", str(target)] if target else ["--all-epochs"]
        options = ["--max-epochs", str(max_epochs)] if max_epochs else []
        return self.words("train", *goal, "--seed", str(seed), *options)

    def of_turns(self):
        return self.words("turns")

    def start(self, seconds_left):
        """Starts a process that waits for turns, with data loaded and, if it compiles, the model compiled."""
        with self.log.open() as stderr:
            self.process = subprocess.Popen(
                self.of_turns(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True
            )
        self.versions = versions_of(self.answer(seconds_left))

    def answer(self, seconds_left):
        with ended_after(self.process, seconds_left()):
            line = self.process.stdout.readline()
            while line and not line.startswith("{"):
                line = self.process.stdout.readline()
            if not line:
                raise self.log.died(self.process.wait())
        return json.loads(line)

    def turn(self, seconds, seconds_left):
        """Returns images/s of training from a separate process, like Arbalest's, because processes differ in speed."""
        try:
            self.start(seconds_left)
            self.measure(WARM_UP * seconds, seconds_left)
            return self.measure(seconds, seconds_left)
        finally:
            self.stop()

    def measure(self, seconds, seconds_left):
        with contextlib.suppress(BrokenPipeError):  # answer() reports why
            self.process.stdin.write(f"{seconds}\n")
            self.process.stdin.flush()
        meter = Meter(self.process.pid)
        answer = self.answer(seconds_left)
        self.cores = meter.stop()
        self.got = answer.get("got")
        return answer["images_per_second"]

    def stop(self):
        if self.process is not None:
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.close()
            try:
                self.process.wait(GRACE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process.stdout.close()
            self.process = None

    def pick(self, options, seconds_left):
        out = run_to_end(self.words("pick", *options), self.log, seconds_left)
        picked = json.loads(out.splitlines()[-1])
        self.versions = versions_of(picked)
        return picked

    def train(self, target, seed, max_epochs, seconds_left):
        out = run_to_end(self.training(target, seed, max_epochs), self.log, seconds_left, (0, NOT_REACHED))
        result = json.loads(out.splitlines()[-1])
        curves = {
            name: [row[name] | {"training_seconds": row["training_seconds"]} for row in result["epoch_rows"]]
            for name in ("weights", "average")
            if result["epoch_rows"] and name in result["epoch_rows"][0]
        }
        self.versions, self.got = versions_of(result), result["got"]
        return {
            "seed": seed,
            "preparation_seconds": result["preparation_seconds"],
            "outcome": result["status"],
            "curves": curves,
        }
