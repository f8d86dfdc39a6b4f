#!/usr/bin/env python3
"""R13: SIGTERM, SIGINT and SIGUSR1 at each stage of a run, and a second signal; the run can always be resumed.

Cases, in turns: each signal at each of six stages, which strace finds (the job file is read, the data are read, the first
line of the log, the line of the first epoch, a checkpoint is being written, the model has its name); each signal at a
random instant; two signals at a random instant; SIGTERM, and SIGKILL while the run, whose syncs are slow, saves its end. A
trial passes if the exit code is right and the run, resumed by --resume=auto, ends with the bytes of an undisturbed run.

    tests/faults/polite_stops.py --trials 540 --results polite-stops.jsonl
"""

import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

import trials
from kill_runs import outcome, rows_of, write_ratings

SIGNALS = [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1]
STAGES = ["job", "data", "begin", "epoch", "save", "model"]
TWO = [
    (signal.SIGTERM, signal.SIGTERM),
    (signal.SIGINT, signal.SIGTERM),
    (signal.SIGTERM, signal.SIGINT),
    (signal.SIGTERM, signal.SIGKILL),  # as launchers do that wait a short time only
]
CASES = 60
BATCHES_PER_EPOCH = 50

JOB = """
model { zoo { matrix_factorization { width: 4 mean: 3.0 } } }
data { ratings { directory: "./ratings" sizes: [40, 30] } }
training { batch_size: 16 max_epochs: 5 }
optimizer { adamw {} }
learning_rate { base: 0.01 }
synchronization { diloco { period: 10 } }
learners { per_device { fixed: 2 } }
devices: "cpu"
checkpoint { every_epochs: 1 keep_last: 2 keep_best: 0 }
"""


def stage_options(stage, number, root, run):
    """Options of strace that send the signal once, at the stage."""
    calls = {
        "job": ("openat", root / "job.txtpb", 1),
        "data": ("openat", root / "ratings/train_ids.npy", 1),
        "begin": ("write", run / "metrics.jsonl", 1),
        "epoch": ("write", run / "metrics.jsonl", 2),
        "model": ("openat", run, 2),  # the directory is synced after job.txtpb and after model.safetensors
    }
    call, path, when = calls[stage]
    inject = f"inject={call}:signal={signal.Signals(number).name}:when={when}"
    # With --seccomp-bpf strace 6.1 injects no signals.
    return ["strace", "-f", "-qq", "-o", str(run) + ".trace", "-P", str(path), "-e", f"trace={call}", "-e", inject]


def command(program, root, run):
    return [program, "train", str(root / "job.txtpb"), "--quiet", "--output", str(run), "--resume=auto"]


def wait_until_begun(process, run):
    while process.poll() is None and not (run / "metrics.jsonl").exists():
        time.sleep(0.001)


def start_with_slow_syncs(train, run):
    slow = ["strace", "-f", "-qq", "-o", str(run) + ".trace", "-e", "trace=fsync", "-e", "inject=fsync:delay_enter=20000"]
    return subprocess.Popen(slow + train, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def send_to_traced(tracer, number):
    if tracer.poll() is None:  # else the trace says that no signal was sent
        children = pathlib.Path(f"/proc/{tracer.pid}/task/{tracer.pid}/children").read_text(encoding="ascii").split()
        for child in children[:1]:
            os.kill(int(child), number)


def signal_in_save(train, number, run):
    """Trains with slow syncs and sends the signal when a checkpoint is being written. Returns the ended process."""
    tracer = start_with_slow_syncs(train, run)
    while tracer.poll() is None and not list((run / "checkpoints").glob(".partial-*")):
        time.sleep(0.001)
    send_to_traced(tracer, number)
    errors = trials.ended(tracer)
    return subprocess.CompletedProcess(tracer.args, tracer.returncode, "", errors)


def kill_in_last_save(train, run, numbers):
    """Trains with slow syncs, asks the run to stop in its first epoch, and kills it soon after."""
    tracer = start_with_slow_syncs(train, run)
    wait_until_begun(tracer, run)
    time.sleep(numbers.uniform(0.0, 0.1))
    send_to_traced(tracer, signal.SIGTERM)
    time.sleep(numbers.uniform(0.0, 0.3))
    send_to_traced(tracer, signal.SIGKILL)
    return tracer, trials.ended(tracer)


def judge(code, errors, run, signals):
    """Returns what is wrong with the end of a process that got these signals."""
    summary = run / "summary.json"
    status = json.loads(summary.read_text(encoding="utf-8"))["status"] if summary.exists() else "without a summary"
    completed = status == "completed"
    if signals[-1] == signal.SIGKILL and code == -signal.SIGKILL:
        return ""
    stops = [128 + number for number in signals if number != signal.SIGUSR1]
    if code == 0 and (completed or not stops):
        return "" if completed else "exit code 0, but the run is not complete"
    if code not in stops:
        return f"exit code {code} after {signals}: {errors[-500:]}"
    if len(signals) == 1 and status != "stopped":
        return f"exit code {code}, but the run is {status}"
    return ""


def resume(program, root, run, expected):
    """Returns what is wrong with the resumed run."""
    ended = subprocess.run(command(program, root, run), capture_output=True, text=True, check=False, timeout=trials.LIMIT)
    if ended.returncode != 0:
        return f"resumed with exit code {ended.returncode}: {ended.stderr[-500:]}"
    if outcome(run) != expected:
        return f"another outcome: {outcome(run)} instead of {expected}"
    return ""


def run_case(program, root, run, number, seconds):
    """Trains with the signals of case `number`. Returns (signals, stage, exit code, messages)."""
    numbers = random.Random(number)
    case = number % CASES
    signals = [SIGNALS[case % 3]] if case < 36 else list(TWO[case % len(TWO)])
    if case < 18:
        stage, train = STAGES[case // 3], command(program, root, run)
        if stage == "save":
            ended = signal_in_save(train, signals[0], run)
        else:
            traced = stage_options(stage, signals[0], root, run) + train
            ended = subprocess.run(traced, capture_output=True, text=True, check=False, timeout=trials.LIMIT)
        sent = f"--- {signals[0].name} " in pathlib.Path(str(run) + ".trace").read_text(encoding="utf-8")
        return signals, stage if sent else "never", ended.returncode, ended.stderr
    if signals[-1] == signal.SIGKILL:
        process, errors = kill_in_last_save(command(program, root, run), run, numbers)
        return signals, "any", process.returncode, errors
    process = subprocess.Popen(command(program, root, run), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    wait_until_begun(process, run)
    time.sleep(numbers.uniform(0.0, 1.1 * seconds))
    for each in signals:
        process.send_signal(each)
    errors = trials.ended(process)
    return signals, "any", process.returncode, errors


def trial(program, root, expected, seconds, number):
    with tempfile.TemporaryDirectory(dir=root) as name:
        run = pathlib.Path(name) / "run"
        signals, stage, code, errors = run_case(program, root, run, number, seconds)
        problem = judge(code, errors, run, signals)
        if stage == "never":
            problem = "strace has not sent the signal"
        elif not problem and code == 0 and signals[0] != signal.SIGUSR1 and stage not in ("any", "model"):
            problem = f"the signal at the stage '{stage}' was ignored"
        if not problem:
            problem = resume(program, root, run, expected)
        if not problem and signals == [signal.SIGUSR1] and stage == "begin":
            saved = [row["batch"] for row in rows_of(run) if row["event"] == "checkpoint"]
            if not any(batch % BATCHES_PER_EPOCH for batch in saved):
                problem = f"SIGUSR1 saved no checkpoint within an epoch, only {saved}"
    return {"stage": stage, "signals": [int(each) for each in signals], "exit_code": code, "problem": problem}


def main():
    arguments = trials.parser(__doc__, CASES).parse_args()
    program = str((pathlib.Path(arguments.build) / "arbalest").resolve())
    with tempfile.TemporaryDirectory(dir=trials.scratch_directory()) as name:
        root = pathlib.Path(name).resolve()
        write_ratings(root / "ratings", random.Random(3), BATCHES_PER_EPOCH * 16)
        (root / "job.txtpb").write_text(JOB, encoding="utf-8")
        begin = time.monotonic()
        subprocess.run(command(program, root, root / "whole"), check=True, stdout=subprocess.DEVNULL, timeout=trials.LIMIT)
        seconds = time.monotonic() - begin
        expected = outcome(root / "whole")
        return trials.run(
            arguments, lambda number: trial(program, root, expected, seconds, number), "stops by one or two signals"
        )


if __name__ == "__main__":
    sys.exit(main())
