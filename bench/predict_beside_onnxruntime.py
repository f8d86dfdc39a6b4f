#!/usr/bin/env python3
"""How fast does `arbalest predict` answer beside onnxruntime, with the same model?

    bench/predict_beside_onnxruntime.py runs/lenet runs/resnet20 --turns 6 --results predict.jsonl

Each RUN is exported to ONNX, and both programs compute it in FP32 on random images that lie in memory: single examples on one
core, and mini-batches on one core and on all. Turns follow each other as A B B A, each in a process of its own that is
pinned to its cores. onnxruntime runs in the arrangement that is fastest in a first pass: the mini-batch, one session
with all threads or one session for each core, and for single examples bound or unbound buffers. `latency` is our
median time over onnxruntime's (target: at most 1), `throughput` our images/s over its (target: at least 1), turn by turn.
`throughput_by_cpu_time` compares images per second of processor time, which other work on the machine disturbs less.
Each turn is a line of the results, and so is each summary. Needs the packages onnxruntime and numpy.
"""

import argparse
import itertools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
BATCHES = (1, 16, 64, 256)
WARM_UP = 16
EXAMPLES = 1024  # single examples of a turn, as `arbalest predict --latency` has them


def open_session(file, threads):
    import onnxruntime  # pylint: disable=import-outside-toplevel
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])


def images_of(session, count):
    import numpy  # pylint: disable=import-outside-toplevel
    shape = session.get_inputs()[0].shape[1:]
    return numpy.random.default_rng(1).uniform(-1, 1, (count, *shape)).astype(numpy.float32)


def caller(session, batch, is_bound):
    """Returns a function that computes one mini-batch which lies in memory."""
    import onnxruntime  # pylint: disable=import-outside-toplevel
    name, images = session.get_inputs()[0].name, images_of(session, batch)
    if not is_bound:
        return lambda: session.run(None, {name: images})
    binding = session.io_binding()
    value = onnxruntime.OrtValue.ortvalue_from_numpy(images)
    binding.bind_ortvalue_input(name, value)
    binding.bind_output(session.get_outputs()[0].name, "cpu")
    return lambda: session.run_with_iobinding(binding)


def single(file, is_bound, seconds):
    """Returns the percentiles of single examples in milliseconds, by nearest rank."""
    call = caller(open_session(file, 1), 1, is_bound)
    for _ in range(WARM_UP):
        call()
    times, begin = [], time.perf_counter()
    while len(times) < EXAMPLES and (len(times) < WARM_UP or time.perf_counter() - begin < seconds):
        asked = time.perf_counter()
        call()
        times.append(1e3 * (time.perf_counter() - asked))
    times.sort()
    return {f"p{percent}_ms": times[-(-percent * len(times) // 100) - 1] for percent in (50, 90, 99)}


def throughput(file, batch, sessions, threads, seconds):
    """Returns images/s of sessions that work side by side, by the clock and by processor time."""
    calls = [caller(open_session(file, threads), batch, True) for _ in range(sessions)]
    counts = [0] * sessions
    begin = threading.Barrier(sessions + 1)
    end = [0.0]

    def work(number):
        calls[number]()
        calls[number]()
        begin.wait()
        while time.perf_counter() < end[0]:
            calls[number]()
            counts[number] += batch

    workers = [threading.Thread(target=work, args=(number,)) for number in range(sessions)]
    for worker in workers:
        worker.start()
    started = time.perf_counter()
    end[0] = started + 3600.0
    begin.wait()
    started, used = time.perf_counter(), time.process_time()
    end[0] = started + seconds
    for worker in workers:
        worker.join()
    return {"images_per_second": sum(counts) / (time.perf_counter() - started),
            "images_per_cpu_second": sum(counts) / (time.process_time() - used)}


def answer(request):
    """Measures onnxruntime in this process."""
    file, seconds, cores = request["file"], request["seconds"], request["cores"]
    if request["what"] == "single":
        return single(file, request["is_bound"], seconds)
    sessions = request["sessions"]
    return throughput(file, request["batch"], sessions, cores // sessions, seconds)


class Machine:
    """Runs a command on the first `cores` cores that this process may use."""

    def __init__(self):
        self.available = sorted(os.sched_getaffinity(0))

    def run(self, cores, command):
        pinned = set(self.available[:cores])
        done = subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True,
                              preexec_fn=lambda: os.sched_setaffinity(0, pinned))
        return json.loads(done.stdout)

    def onnxruntime(self, cores, **request):
        return self.run(cores, [sys.executable, "-B", __file__, "--answer", json.dumps({"cores": cores, **request})])


def arrangement_of(machine, file, cores, seconds):
    """Returns onnxruntime's fastest arrangement for mini-batches, and for single examples."""
    batches = [{"what": "batch", "batch": batch, "sessions": sessions}
               for batch, sessions in itertools.product(BATCHES, sorted({1, cores}))]
    singles = [{"what": "single", "is_bound": is_bound} for is_bound in (False, True)]
    measured = [machine.onnxruntime(cores, file=str(file), seconds=seconds, **of) for of in batches + singles]
    best = max(zip(measured, batches), key=lambda pair: pair[0]["images_per_cpu_second"])[1]
    shortest = min(zip(measured[len(batches):], singles), key=lambda pair: pair[0]["p50_ms"])[1]
    return best, shortest


def ours(machine, program, run, cores):
    report = machine.run(cores, [program, "predict", run, "--latency", "--json", "--devices", "cpu"])
    one = report["single"][0]
    return {"p50_ms": one["p50_ms"], "p90_ms": one["p90_ms"], "p99_ms": one["p99_ms"],
            "images_per_second": report["images_per_second"],
            "images_per_cpu_second": report["images_per_cpu_second"], "batch": report["batch_size"]}


def theirs(machine, file, cores, arrangement, seconds):
    batch, one = arrangement
    return {**machine.onnxruntime(cores, file=str(file), seconds=seconds, **one),
            **machine.onnxruntime(cores, file=str(file), seconds=seconds, **batch), "batch": batch["batch"],
            "sessions": batch["sessions"], "is_bound": one["is_bound"]}


def summary_of(pairs, figure):
    ratios = [pair["arbalest"][figure] / pair["onnxruntime"][figure] for pair in pairs]
    low, median, high = statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
    return {"median": median, "quartiles": [low, high]}


def compare(machine, arguments, run, file, cores, write):
    arrangement = arrangement_of(machine, file, cores, arguments.seconds / 4)
    pairs = []
    for turn in range(arguments.turns):
        contenders = {"arbalest": lambda: ours(machine, arguments.program, run, cores),
                      "onnxruntime": lambda: theirs(machine, file, cores, arrangement, arguments.seconds)}
        order = list(contenders) if turn % 2 == 0 else list(contenders)[::-1]
        pairs.append({name: contenders[name]() for name in order})
        write({"run": run.name, "cores": cores, "turn": turn, "load": os.getloadavg()[0], **pairs[-1]})
    write({"run": run.name, "cores": cores, "turns": arguments.turns, "latency": summary_of(pairs, "p50_ms"),
           "throughput": summary_of(pairs, "images_per_second"),
           "throughput_by_cpu_time": summary_of(pairs, "images_per_cpu_second")})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", metavar="RUN", type=pathlib.Path, help="directory of a run in FP32")
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/release/arbalest")
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each of onnxruntime's measurements")
    parser.add_argument("--cores", type=int, nargs="+", help="numbers of cores (default: 1 and all)")
    parser.add_argument("--results", type=pathlib.Path, help="file to which the lines are added")
    parser.add_argument("--answer", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.answer is not None:
        print(json.dumps(answer(json.loads(arguments.answer))))
        return 0
    if not arguments.runs:
        parser.error("name the directory of at least one run")
    machine = Machine()

    def write(row):
        line = json.dumps(row)
        print(line, flush=True)
        if arguments.results is not None:
            with arguments.results.open("a", encoding="utf-8") as results:
                results.write(line + "\n")

    with tempfile.TemporaryDirectory() as directory:
        for run in arguments.runs:
            file = pathlib.Path(directory) / "model.onnx"
            subprocess.run([arguments.program, "export", run, "--format", "onnx", "--output", file], check=True)
            for cores in arguments.cores or sorted({1, len(machine.available)}):
                compare(machine, arguments, run, file, cores, write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
