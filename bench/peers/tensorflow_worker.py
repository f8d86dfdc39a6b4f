"""The worker process of an arrangement of TensorFlow."""

import os
import time

from peers.workers import obey, read_parts


def serve(pipe, rank, _meeting_place, arrangement, recipe, options):
    """Executes the pipe's commands (workers.py). The clock starts when the framework is loaded."""

    def make_learner():
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
        import tensorflow as tf  # imported here, so that the parent process does not load it

        from peers.tensorflow_trainer import Trainer

        tf.config.threading.set_intra_op_parallelism_threads(arrangement.threads)
        tf.config.threading.set_inter_op_parallelism_threads(arrangement.operators)
        start = time.perf_counter()
        parts = read_parts(recipe, options["data_root"])
        return Trainer(recipe, parts, arrangement, options["seed"]), start

    obey(pipe, rank, make_learner)
