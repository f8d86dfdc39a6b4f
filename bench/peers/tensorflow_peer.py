#!/usr/bin/env python3
"""Trains an Arbalest job file with TensorFlow: one process with all threads, and each step is one tf.function.

    tensorflow_peer.py pick --model lenet       images/s with and without XLA and bfloat16
    tensorflow_peer.py train --model lenet --arrangement "2 threads, bfloat16" --target 0.99 --seed 1
    tensorflow_peer.py turns --model lenet      measures for as many seconds as each line of stdin says

As pytorch_peer.py, whose exit codes it has. It is evaluated as it is, and not through an average of its weights.
"""

import importlib.metadata
import importlib.util
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from peers.command_line import SKIPPED, say  # noqa: E402
from peers.program import Framework, main  # noqa: E402
from peers.tensorflow_arrangements import arrangements  # noqa: E402
from peers.tensorflow_worker import serve  # noqa: E402


def versions():
    for package in ("tensorflow", "tensorflow-cpu"):
        try:
            return {"tensorflow": importlib.metadata.version(package)}
        except importlib.metadata.PackageNotFoundError:
            continue
    return {"tensorflow": "of an unknown version"}


TENSORFLOW = Framework(
    "TensorFlow", serve, lambda arguments, compiles, precision: arrangements(compiles, precision), versions
)

if __name__ == "__main__":
    if importlib.util.find_spec("tensorflow") is None:  # the training processes import it
        say("skipped: No module named 'tensorflow'")
        sys.exit(SKIPPED)
    main(TENSORFLOW, __doc__)
