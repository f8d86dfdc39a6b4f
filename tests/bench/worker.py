"""The worker process for workers_test.py and picking_test.py. Its learner is in pure Python."""

from peers.datasets import DataMissing
from peers.job_file import JobError
from peers.workers import obey

HELD = 32 << 20  # bytes


class Learner:
    steps_of_epoch, has_average, has_validation = 2, False, False

    def __init__(self):
        self.memory = b"x" * HELD

    def step(self):
        return 1.0

    def finish(self, loss):
        return loss

    def reference_kernels(self):
        return {"convolution": 0.5}

    def evaluate(self, _averaged, at_end):
        return {"test_accuracy": 0.5}


def serve(pipe, rank, _meeting_place, arrangement, recipe, options):
    def make_learner():
        if options.get("fails_in") == arrangement.name:
            raise {"data": DataMissing("no such file"), "job": JobError("no such job"), "other": OSError("no disk")}[
                options["with"]
            ]
        if options.get("ends"):
            raise SystemExit(7)
        return Learner(), 0.0

    obey(pipe, rank, make_learner)
