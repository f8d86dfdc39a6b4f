#!/usr/bin/env python3
"""Trains an Arbalest job file with JAX: one process with all threads, and each step is one compiled function.

    jax_peer.py pick --model lenet              images/s with and without bfloat16
    jax_peer.py train --model lenet --arrangement "2 threads, bfloat16" --target 0.99 --seed 1
    jax_peer.py turns --model lenet             measures for as many seconds as each line of stdin says

As pytorch_peer.py, whose exit codes it has. It is evaluated as it is, and not through an average of its weights.
"""

import importlib.metadata
import importlib.util
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from peers.command_line import SKIPPED, say  # noqa: E402
from peers.jax_arrangements import arrangements  # noqa: E402
from peers.jax_worker import serve  # noqa: E402
from peers.program import Framework, main  # noqa: E402

JAX = Framework(
    "JAX",
    serve,
    lambda arguments, compiles, precision: arrangements(compiles, precision),
    lambda: {"jax": importlib.metadata.version("jax")},
)

if __name__ == "__main__":
    if importlib.util.find_spec("jax") is None:  # the training processes import it
        say("skipped: No module named 'jax'")
        sys.exit(SKIPPED)
    main(JAX, __doc__)
