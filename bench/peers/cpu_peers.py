"""PyTorch's arrangements on the cores of a CPU, in turns with `scaling_bench`: what lenet_cpu.py and resnet_cpu.py share."""

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


def serve(pipe, make_trainer, threads, options):
    """A trainer in its own process, which trains for as many seconds as it is told and says how many images that were."""
    torch.set_num_threads(threads)
    trainer = make_trainer(**options)
    trainer.step()  # a compiled one compiles now
    pipe.send("ready")
    while (seconds := pipe.recv()) > 0:
        images, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds:
            trainer.step()
            images += trainer.batch
        pipe.send(images / (time.perf_counter() - start))


class Peer:
    """Some trainers at once; a turn is the sum of their speeds."""

    def __init__(self, make_trainer, processes, threads, options):
        context = multiprocessing.get_context("spawn")
        self.children = []
        for _ in range(processes):
            ours, theirs = context.Pipe()
            child = context.Process(target=serve, args=(theirs, make_trainer, threads, options), daemon=True)
            child.start()
            self.children.append((ours, child))
        for pipe, _ in self.children:
            pipe.recv()

    def turn(self, seconds):
        for pipe, _ in self.children:
            pipe.send(seconds)
        return sum(pipe.recv() for pipe, _ in self.children)

    def stop(self):
        for pipe, child in self.children:
            pipe.send(0)
            child.join()


def our_turn(program, seconds, job):
    """Images/s of k learners, and of k processes of one learner."""
    command = [program, "--turns", "1", "--seconds", str(seconds), *job]
    result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return {"learners": result["learners_images_per_second"]["median"],
            "processes": result["processes_images_per_second"]["median"]}


def measure(make_trainer, arguments, job):
    cores = len(os.sched_getaffinity(0))
    peers = {}
    variants = {"": {}, ", channels last": {"channels_last": True}}
    if arguments.compile:
        variants |= {", compiled": {"compiled": True}, ", compiled, channels last": {"compiled": True, "channels_last": True}}
    for name, options in variants.items():
        options = {"batch": arguments.batch, "device": "cpu", "fused": True} | options
        peers[f"PyTorch, 1 thread{name}"] = Peer(make_trainer, 1, 1, options)
        peers[f"PyTorch, {cores} threads{name}"] = Peer(make_trainer, 1, cores, options)
        peers[f"PyTorch, {cores} processes{name}"] = Peer(make_trainer, cores, 1, options)
    samples = {}
    for turn in range(-1, arguments.turns):  # the first warms up
        rates = {}
        for name, peer in peers.items():
            rates[name] = peer.turn(arguments.seconds)
        for program in arguments.ours:
            for kind, rate in our_turn(program, arguments.seconds, job).items():
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


def add_arguments(parser, batch, seconds):
    parser.add_argument("--ours", action="append", default=[], help="path of a scaling_bench; may be given several times")
    parser.add_argument("--batch", type=int, default=batch, help=f"examples of PyTorch's mini-batch ({batch}, which ours is)")
    parser.add_argument("--turns", type=int, default=9, help="turns of each contender (9)")
    parser.add_argument("--seconds", type=float, default=seconds, help=f"length of a turn ({seconds})")
    parser.add_argument("--compile", action="store_true", help="PyTorch's compiler too, which needs a C++ compiler")


def compete(model, make_trainer, arguments, job=()):
    """`make_trainer`: of a module, called with a Trainer's arguments. `job`: what scaling_bench is told besides."""
    peers, samples = measure(make_trainer, arguments, job)
    best = [max(samples[name][turn] for name in peers) for turn in range(arguments.turns)]
    results = {}
    for name, rates in samples.items():
        over_best = [rate / peer for rate, peer in zip(rates, best)]
        results[name] = {"images_per_second": summary(rates), "over_best_pytorch": summary(over_best)}
        print(f"{name:<60} {statistics.median(rates):>9,.0f} images/s, {statistics.median(over_best):.2f} of PyTorch's best",
              file=sys.stderr)
    print(json.dumps({"question": "PyTorch peers", "model": model, "pytorch": torch.__version__, "batch": arguments.batch,
                      "turns": arguments.turns, "load_average": os.getloadavg()[0], "results": results}))
