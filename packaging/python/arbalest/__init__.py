"""Trains neural networks with many small-batch learners per device.

    import arbalest

    run = arbalest.train(arbalest.configs() / "lenet-digits.txtpb", "runs/lenet")
    run.summary["test_accuracy"]      # 0.99...
    run.metrics["test_accuracy"]      # an array with a number for each epoch
    run.weights()["fc1.weight"]       # a NumPy array

The program `arbalest` does the work; it is on the path of this Python, and in `arbalest.program_path()`.
"""

from arbalest.program import ProgramError, configs, program_path
from arbalest.run import Run, load_run, train

__all__ = ["ProgramError", "Run", "configs", "load_run", "program_path", "train"]
