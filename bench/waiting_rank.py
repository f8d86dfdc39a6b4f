#!/usr/bin/env python3
"""How much processor time does a process take while it trains, and while it waits for another one?

    bench/waiting_rank.py configs/lenet-mnist.txtpb --data-root DIR --results waiting.jsonl

Two processes train with one learner each. After a few seconds rank 1 is stopped (SIGSTOP), so rank 0 soon has nothing to do
but wait for it; then rank 1 goes on. A row has the processor seconds a second of both ranks while they train, and of rank 0
while it waits. The job must train for longer than --seconds, three times over.
"""

import argparse
import json
import os
import pathlib
import signal
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/faults"))
import processes  # noqa: E402


def processor_seconds(process):
    fields = pathlib.Path(f"/proc/{process}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def loads(ids, seconds):
    """Processor seconds a second of these processes."""
    begin, before = time.monotonic(), [processor_seconds(process) for process in ids]
    time.sleep(seconds)
    taken = time.monotonic() - begin
    return [round((processor_seconds(process) - used) / taken, 4) for process, used in zip(ids, before)]


def measure(arguments):
    with tempfile.TemporaryDirectory() as name:
        words = [arguments.job, "--quiet", "--output", f"{name}/run", "--data-root", arguments.data_root]
        settings = [*arguments.set, "learners.per_device.fixed=1", "checkpoint.keep_last=0", "training.target_accuracy=default"]
        words += [word for setting in settings for word in ("--set", setting)]
        launched = processes.launch(arguments.program, 2, words, ROOT)
        time.sleep(arguments.seconds)  # reading and the first rounds
        ranks = processes.ranks_of(launched)
        training = loads([ranks[0], ranks[1]], arguments.seconds)
        os.kill(ranks[1], signal.SIGSTOP)
        time.sleep(0.5)  # rank 0 ends its round
        waiting = loads([ranks[0]], arguments.seconds)[0]
        os.kill(ranks[1], signal.SIGCONT)
        code, errors = processes.end(launched)
    if code != 0:
        sys.exit(f"the run ended with exit code {code}: {errors}")
    return {"training": training, "waiting": waiting, "load": os.getloadavg()[0]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("job")
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/release/arbalest")
    parser.add_argument("--data-root", default=os.environ.get("ARBALEST_DATA", "data"))
    parser.add_argument("--set", action="append", default=[], help="a setting of the job")
    parser.add_argument("--seconds", type=float, default=4.0, help="of each measurement (default: 4)")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--results", type=pathlib.Path, required=True, help="gets a line for each turn")
    arguments = parser.parse_args()
    for _ in range(arguments.turns):
        row = {"program": arguments.program.name, **measure(arguments)}
        with arguments.results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        training = " and ".join(f"{load:.3f}" for load in row["training"])
        print(f"processor seconds a second: training {training}, waiting {row['waiting']:.4f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
