#!/usr/bin/env python3
"""How fast does PyTorch train Arbalest's LeNet on this machine's cores, and how fast do we, in the same run?

PyTorch with one thread, with one thread for each core, and as one process for each core; each with the optimizer's update
fused, and in both orders of an image's elements. Its data costs nothing: images lie in memory as float32, normalized, and
a mini-batch is a view of them. Its processes do not talk to each other. Ours are what `scaling_bench` measures: k = cores
learners in one process, which average their models, and k processes of one learner. Several `--ours` compare builds.

Contenders take turns. One JSON object goes to stdout, readable lines to stderr. Without PyTorch it says so and exits with
4, which means skipped.
"""

import argparse
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import time

SKIPPED = 4

try:
    import torch
except ImportError as missing:
    print(f"skipped: {missing}", file=sys.stderr)
    sys.exit(SKIPPED)

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lenet_gpu import Trainer  # noqa: E402  the same model, whatever the device


def serve(pipe, batch, threads, channels_last):
    """A trainer in its own process, which trains for as many seconds as it is told and says how many images that were."""
    torch.set_num_threads(threads)
    trainer = Trainer(batch, "cpu", channels_last=channels_last, fused=True)
    while (seconds := pipe.recv()) > 0:
        images, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds:
            trainer.step()
            images += batch
        pipe.send(images / (time.perf_counter() - start))


class Peer:
    """Some trainers at once; a turn is the sum of their speeds."""

    def __init__(self, batch, processes, threads, channels_last):
        context = multiprocessing.get_context("spawn")
        self.children = []
        for _ in range(processes):
            ours, theirs = context.Pipe()
            child = context.Process(target=serve, args=(theirs, batch, threads, channels_last), daemon=True)
            child.start()
            self.children.append((ours, child))

    def turn(self, seconds):
        for pipe, _ in self.children:
            pipe.send(seconds)
        return sum(pipe.recv() for pipe, _ in self.children)

    def stop(self):
        for pipe, child in self.children:
            pipe.send(0)
            child.join()


def our_turn(program, seconds):
    """Images/s of k learners, and of k processes of one learner."""
    command = [program, "--turns", "1", "--seconds", str(seconds)]
    result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return {"learners": result["learners_images_per_second"]["median"],
            "processes": result["processes_images_per_second"]["median"]}


def measure(arguments):
    cores = len(os.sched_getaffinity(0))
    peers = {}
    for order, channels_last in (("", False), (", channels last", True)):
        peers[f"PyTorch, 1 thread{order}"] = Peer(arguments.batch, 1, 1, channels_last)
        peers[f"PyTorch, {cores} threads{order}"] = Peer(arguments.batch, 1, cores, channels_last)
        peers[f"PyTorch, {cores} processes{order}"] = Peer(arguments.batch, cores, 1, channels_last)
    samples = {}
    for turn in range(-1, arguments.turns):  # the first warms up
        rates = {}
        for name, peer in peers.items():
            rates[name] = peer.turn(arguments.seconds)
        for program in arguments.ours:
            for kind, rate in our_turn(program, arguments.seconds).items():
                rates[f"{program}, {cores} {kind}"] = rate
        for name, rate in rates.items():
            if turn >= 0:
                samples.setdefault(name, []).append(rate)
    for peer in peers.values():
        peer.stop()
    return peers.keys(), samples


def summary(values):
    first, median, third = statistics.quantiles(values, n=4)
    return {"median": median, "first_quartile": first, "third_quartile": third}


def main():
    parser = argparse.ArgumentParser(description="PyTorch's images/s on LeNet, b = 32, on all cores, and ours.")
    parser.add_argument("--ours", action="append", default=[], help="path of a scaling_bench; may be given several times")
    parser.add_argument("--batch", type=int, default=32, help="examples of PyTorch's mini-batch (32, which ours is)")
    parser.add_argument("--turns", type=int, default=9, help="turns of each contender (9)")
    parser.add_argument("--seconds", type=float, default=0.5, help="length of a turn (0.5)")
    arguments = parser.parse_args()

    peers, samples = measure(arguments)
    best = [max(samples[name][turn] for name in peers) for turn in range(arguments.turns)]
    results = {}
    for name, rates in samples.items():
        over_best = [rate / peer for rate, peer in zip(rates, best)]
        results[name] = {"images_per_second": summary(rates), "over_best_pytorch": summary(over_best)}
        print(f"{name:<60} {statistics.median(rates):>9,.0f} images/s, {statistics.median(over_best):.2f} of PyTorch's best",
              file=sys.stderr)
    print(json.dumps({"question": "PyTorch peers", "pytorch": torch.__version__, "batch": arguments.batch,
                      "turns": arguments.turns, "load_average": os.getloadavg()[0], "results": results}))


if __name__ == "__main__":
    main()
