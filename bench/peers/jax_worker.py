"""A worker process of an arrangement of JAX."""

import os
import time

from peers.workers import obey, read_parts


def serve(pipe, rank, _meeting_place, arrangement, recipe, options):
    """Executes the pipe's commands (workers.py). The clock starts when the framework is loaded."""

    def make_learner():
        os.environ["NPROC"] = str(arrangement.threads)  # XLA reads it when its pool of threads starts
        os.environ["JAX_PLATFORMS"] = "cpu"
        import jax  # imported here, so that the parent process does not load it

        from peers.jax_trainer import Trainer

        jax.config.update("jax_enable_compilation_cache", False)  # compiling counts as training time
        start = time.perf_counter()
        parts = read_parts(recipe, options["data_root"])
        return Trainer(recipe, parts, arrangement, options["seed"]), start

    obey(pipe, rank, make_learner)
