"""Runs the training processes of an arrangement, and their commands."""

import math
import multiprocessing
import os
import tempfile
import time

from peers import datasets, huge_pages
from peers.job_file import JobError
from peers.target_run import train_to_target

SYNTHETIC_EXAMPLES = 20_000
OF_THE_USER = {error.__name__: error for error in (datasets.DataMissing, JobError)}  # raised unchanged in the parent


class WorkerFailed(Exception):
    """A process of an arrangement failed."""


def read_parts(recipe, data_root):
    """`data_root`: None for random data instead of the dataset."""
    if data_root is None:
        split = datasets.synthetic(recipe.dataset, SYNTHETIC_EXAMPLES)
        return datasets.Parts(split, split)
    return datasets.load_parts(recipe.dataset, recipe.validation, data_root)


def seconds_of(learner, steps):
    start = time.perf_counter()
    for _ in range(steps):
        loss = learner.step()
    if not math.isfinite(learner.finish(loss)):
        raise RuntimeError("the loss is not finite")
    return time.perf_counter() - start


def obey(pipe, rank, make_learner):
    """Executes commands from the pipe until one is None. `make_learner()`: returns (learner for train_to_target, start
    time of its clock)."""
    try:
        learner, start = make_learner()
        pipe.send(("ready", None))
        while (order := pipe.recv()) is not None:
            if order[0] == "steps":
                pipe.send(("done", seconds_of(learner, order[1])))
            elif order[0] == "kernels":
                ask = getattr(learner, "reference_kernels", None)  # TensorFlow and JAX cannot say it
                pipe.send(("done", ask and ask()))
            elif order[0] == "memory":
                pipe.send(("done", huge_pages.resident_bytes()))
            else:
                _, target, max_epochs = order
                tell = (lambda row: pipe.send(("row", row))) if rank == 0 else (lambda row: None)
                pipe.send(("done", train_to_target(learner, target, max_epochs, start, tell)))
    except tuple(OF_THE_USER.values()) as error:
        pipe.send((type(error).__name__, str(error)))
    except Exception as error:  # the parent reports any error; EOFError: the parent has ended
        lines = str(error).strip().splitlines()
        pipe.send(("failed", f"{type(error).__name__}: {lines[0] if lines else ''}"))


class Workers:
    """`with Workers(...) as workers:` the processes live as long as the block.

    `serve(pipe, rank, meeting_place, arrangement, recipe, options)`: run by each process; a function of a module.
    `recipe`: that of one rank (Recipe.arranged).
    """

    def __init__(self, serve, arrangement, recipe, options):
        self.serve, self.arrangement, self.recipe, self.options = serve, arrangement, recipe, options

    def __enter__(self):
        context = multiprocessing.get_context("spawn")
        self.folder = tempfile.TemporaryDirectory()
        self.children = []
        with huge_pages.asked_for_by_children(self.arrangement.huge_pages):
            for rank in range(self.arrangement.processes):
                ours, theirs = context.Pipe()
                child = context.Process(
                    target=self.serve,
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
                theirs.close()  # so that the parent notices the end of the child
                self.children.append((ours, child))
        try:
            self.replies()
        except BaseException as error:
            self.__exit__(type(error))
            raise
        return self

    def __exit__(self, error_type, *_):
        for pipe, child in self.children:
            if error_type is not None:  # a process may still train, or wait for a rank that has ended
                child.kill()
            else:
                pipe.send(None)
            child.join()
        self.folder.cleanup()

    def replies(self, tell=None):
        """Returns one reply per process."""
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
            if kind in OF_THE_USER:
                raise OF_THE_USER[kind](answer)
            if kind == "failed":
                raise WorkerFailed(answer)
            answers.append(answer)
        return answers

    def order(self, *what):
        for pipe, _ in self.children:
            pipe.send(what)

    def images_per_second(self, steps):
        """Returns the total images/s of all processes while each does this many steps."""
        self.order("steps", steps)
        return sum(steps * self.recipe.batch / seconds for seconds in self.replies())

    def reference_kernels(self):
        """Trains on a mini-batch. Returns {reference kernel of oneDNN: its share of the time}; None: not known."""
        self.order("kernels")
        return self.replies()[0]

    def got(self):
        """Returns the peer's resources for a page, with the current memory."""
        self.order("memory")
        return self.arrangement.described() | {
            "mini_batch": self.recipe.batch * self.arrangement.ranks,
            "learning_rate": self.recipe.schedule.base,
            "rise": self.recipe.schedule.rise,
            "huge_page_bytes": sum(self.replies()),
        }

    def train(self, target, max_epochs, tell):
        self.order("train", target, max_epochs)
        return self.replies(tell)[0]
