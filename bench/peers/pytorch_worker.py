"""A worker process of an arrangement of PyTorch."""

import os
import time

import torch

from peers.trainer import GraphedTrainer, Trainer
from peers.workers import obey, read_parts


def prepare(arrangement, rank, meeting_place, allow_tf32):
    torch.set_num_threads(arrangement.threads)
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = allow_tf32
    if arrangement.is_parallel:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        torch.distributed.init_process_group(
            "gloo", init_method=f"file://{meeting_place}", rank=rank, world_size=arrangement.processes
        )


def serve(pipe, rank, meeting_place, arrangement, recipe, options):
    """Executes the pipe's commands (workers.py). The clock starts when PyTorch is loaded and all ranks are connected.
    """

    def make_learner():
        prepare(arrangement, rank, meeting_place, options["tf32"])
        start = time.perf_counter()
        parts = read_parts(recipe, options["data_root"])
        make = GraphedTrainer if arrangement.is_graphed else Trainer
        trainer = make(recipe, parts, arrangement, options["seed"], rank if arrangement.is_parallel else 0)
        return trainer, start

    try:
        obey(pipe, rank, make_learner)
    finally:
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()
