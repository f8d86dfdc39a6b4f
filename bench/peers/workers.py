"""An arrangement at work: its processes, each with a trainer, and what they are told to do."""

import multiprocessing
import os
import tempfile
import time

import torch

from peers import datasets
from peers.target_run import train_to_target
from peers.trainer import GraphedTrainer, Trainer

SYNTHETIC_EXAMPLES = 20_000


class WorkerFailed(Exception):
    """A process of an arrangement could not do its part."""


class Learner:
    """A trainer as training to a target needs it."""

    def __init__(self, trainer):
        self.trainer = trainer
        self.steps_of_epoch, self.step, self.accuracy = trainer.steps_of_epoch, trainer.step, trainer.accuracy

    def finish(self, loss):
        """The mean of the ranks', so that all of them judge it alike."""
        loss = loss.detach().float().clone()
        self.trainer.add_up(loss)
        return loss.item() / self.trainer.ranks


def read_data(recipe, data_root):
    if data_root is None:
        split = datasets.synthetic(recipe.dataset, SYNTHETIC_EXAMPLES)
        return split, split
    return tuple(datasets.load(recipe.dataset, split, data_root) for split in ("train", "test"))


def prepare(arrangement, rank, meeting_place, allow_tf32):
    torch.set_num_threads(arrangement.threads)
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = allow_tf32
    if arrangement.is_parallel:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        torch.distributed.init_process_group(
            "gloo", init_method=f"file://{meeting_place}", rank=rank, world_size=arrangement.processes
        )


def seconds_of(trainer, steps):
    start = time.perf_counter()
    for _ in range(steps):
        loss = trainer.step()
    if not torch.isfinite(loss).item():  # waits for the device, too
        raise RuntimeError("the loss is not finite")
    return time.perf_counter() - start


def serve(pipe, rank, meeting_place, arrangement, recipe, options):
    """Does what comes through the pipe until that is None. A training's clock starts when the framework is there."""
    try:
        prepare(arrangement, rank, meeting_place, options["tf32"])
        start = time.perf_counter()
        train, test = read_data(recipe, options["data_root"])
        make = GraphedTrainer if arrangement.is_graphed else Trainer
        trainer = make(
            recipe, train, test, arrangement, options["seed"], rank if arrangement.is_parallel else 0
        )
        pipe.send(("ready", None))
        while (order := pipe.recv()) is not None:
            if order[0] == "steps":
                pipe.send(("done", seconds_of(trainer, order[1])))
            else:
                _, target, max_epochs = order
                tell = (lambda row: pipe.send(("row", row))) if rank == 0 else (lambda row: None)
                pipe.send(("done", train_to_target(Learner(trainer), target, max_epochs, start, tell)))
    except Exception as error:  # whatever it is, the parent says it; EOFError: the parent is gone
        lines = str(error).strip().splitlines()
        pipe.send(("failed", f"{type(error).__name__}: {lines[0] if lines else ''}"))
    finally:
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()


class Workers:
    """`with Workers(...) as workers:` the processes live as long as the block."""

    def __init__(self, arrangement, recipe, options):
        self.arrangement, self.recipe, self.options = arrangement, recipe, options

    def __enter__(self):
        context = multiprocessing.get_context("spawn")
        self.folder = tempfile.TemporaryDirectory()
        self.children = []
        for rank in range(self.arrangement.processes):
            ours, theirs = context.Pipe()
            child = context.Process(
                target=serve,
                daemon=True,
                args=(
                    theirs,
                    rank,
                    os.path.join(self.folder.name, "meeting"),
                    self.arrangement,
                    self.recipe,
                    self.options,
                ),
            )
            child.start()
            theirs.close()  # so that the end of the child is seen
            self.children.append((ours, child))
        try:
            self.replies()
        except BaseException as error:
            self.__exit__(type(error))
            raise
        return self

    def __exit__(self, error_type, *_):
        for pipe, child in self.children:
            if error_type is not None:  # it may be in the midst of a training, or wait for a rank that is gone
                child.kill()
            else:
                pipe.send(None)
            child.join()
        self.folder.cleanup()

    def replies(self, tell=None):
        """One of each process."""
        answers = []
        for pipe, child in self.children:
            kind = "row"
            while kind == "row":
                try:
                    kind, answer = pipe.recv()
                except EOFError:
                    child.join(20)
                    raise WorkerFailed(
                        f"a process of '{self.arrangement.name}' ended with exit code {child.exitcode}"
                    ) from None
                if kind == "row":
                    tell(answer)
            if kind == "failed":
                raise WorkerFailed(answer)
            answers.append(answer)
        return answers

    def order(self, *what):
        for pipe, _ in self.children:
            pipe.send(what)

    def images_per_second(self, steps):
        """Of all processes together, while each does so many steps."""
        self.order("steps", steps)
        return sum(steps * self.recipe.batch / seconds for seconds in self.replies())

    def train(self, target, max_epochs, tell):
        self.order("train", target, max_epochs)
        return self.replies(tell)[0]
