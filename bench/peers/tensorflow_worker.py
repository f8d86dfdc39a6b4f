"""The process of an arrangement of TensorFlow."""

import os
import time

from peers.workers import obey, read_parts


def serve(pipe, rank, _meeting_place, arrangement, recipe, options):
    """Runs what the pipe says (workers.py). The clock starts when the framework is there."""

    def make_learner():
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
        import tensorflow as tf  # here, so that the process that starts this one does without

        from peers.tensorflow_trainer import Trainer

        tf.config.threading.set_intra_op_parallelism_threads(arrangement.threads)
        tf.config.threading.set_inter_op_parallelism_threads(arrangement.operators)
        start = time.perf_counter()
        parts = read_parts(recipe, options["data_root"])
        return Trainer(recipe, parts, arrangement, options["seed"]), start

    obey(pipe, rank, make_learner)
