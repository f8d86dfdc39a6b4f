#!/usr/bin/env python3
"""Trains a job on a GPU until it holds an accuracy on its test set, and prints how long that took:
time_to_accuracy.py arbalest JOB --learners 8 --team 8 --target 0.91
time_to_accuracy.py pytorch JOB --mini-batch 512 --target 0.91

Runs `arbalest train` or peers/pytorch_peer.py of the installed tree. Both hold a target when the lower median of the last
five accuracies is there. The clock of each covers what its program counts: reading data, preparation, training and
evaluation, but not the start of the program; `program_seconds` covers everything. The last line of stdout is a JSON
object. Exit codes: 0 measured, even if the target was not reached, else the program's.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

TREE = pathlib.Path(__file__).resolve().parents[2]
PEER_NOT_REACHED = 9
MEASURED = ("target_reached", "completed")


def train_arbalest(arguments):
    """Returns (fields of the result, exit code)."""
    with tempfile.TemporaryDirectory() as directory:
        run = pathlib.Path(directory) / "run"
        changes = ["devices=cuda:0", f"learners.per_device.fixed={arguments.learners}",
                   f"learners.per_device.team={arguments.team}", f"training.seed={arguments.seed}"]
        if arguments.target is not None:
            changes.append(f"training.target_accuracy={arguments.target}")
        command = [TREE / "bin/arbalest", "train", arguments.job, "--quiet", "--output", run,
                   "--data-root", arguments.data_root]
        for change in changes:
            command += ["--set", change]
        code = subprocess.run(command, stdout=sys.stderr).returncode
        if code != 0:
            return {}, code
        summary = json.loads((run / "summary.json").read_text())
        begun = json.loads((run / "metrics.jsonl").read_text().splitlines()[0])
    reached = summary["status"] == "target_reached"
    return {"contender": "Arbalest", "learners": arguments.learners, "team": arguments.team,
            "mini_batch": begun["batch_size"] * arguments.learners, "precision": summary["precision"],
            "target": begun["target_accuracy"], "status": summary["status"],
            "seconds_to_target": summary["time_to_accuracy_seconds"],
            "epochs_to_target": summary["epochs"] if reached else None, "epochs": summary["epochs"],
            "best_accuracy": summary["best_test_accuracy"], "images_per_second": summary["images_per_second"]}, 0


def best_accuracy(rows):
    """Returns the best accuracy of the weights or of their average, None if no epoch ended."""
    return max((row[name]["test_accuracy"] for row in rows for name in ("weights", "average") if name in row),
               default=None)


def train_pytorch(arguments):
    """Returns the same for PyTorch."""
    command = [sys.executable, TREE / "bench/peers/pytorch_peer.py", "train", "--job", arguments.job, "--device", "cuda",
               "--arrangement", arguments.arrangement, "--seed", str(arguments.seed), "--data-root", arguments.data_root]
    if arguments.target is not None:
        command += ["--target", str(arguments.target)]
    if arguments.mini_batch is not None:
        command += ["--mini-batch", str(arguments.mini_batch)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode not in (0, PEER_NOT_REACHED) or not done.stdout.strip():
        return {}, done.returncode or 1
    said = json.loads(done.stdout.splitlines()[-1])
    trained = sum(row["training_seconds"] for row in said["epoch_rows"])
    return {"contender": f"PyTorch, {said['arrangement']}", "versions": {"pytorch": said["pytorch"], "gpu": said["gpu"]},
            "mini_batch": arguments.mini_batch or said["batch"], "target": said["target_accuracy"],
            "status": said["status"], "seconds_to_target": said["time_to_accuracy_seconds"],
            "epochs_to_target": said["epochs_to_target"], "epochs": said["epochs"],
            "best_accuracy": best_accuracy(said["epoch_rows"]), "training_seconds": trained}, 0


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    contenders = parser.add_subparsers(dest="contender", required=True)
    arbalest = contenders.add_parser("arbalest")
    arbalest.add_argument("--learners", type=int, default=1, help="(1)")
    arbalest.add_argument("--team", type=int, default=1, help="learners of a team (1)")
    arbalest.set_defaults(train=train_arbalest)
    pytorch = contenders.add_parser("pytorch")
    pytorch.add_argument("--mini-batch", type=int, help="examples of a step (the job's)")
    pytorch.add_argument("--arrangement", default="CUDA graph", help="(CUDA graph)")
    pytorch.set_defaults(train=train_pytorch)
    for contender in (arbalest, pytorch):
        contender.add_argument("job")
        contender.add_argument("--seed", type=int, default=1, help="(1)")
        contender.add_argument("--target", type=float, help="accuracy to be reached (the job's)")
        contender.add_argument("--data-root", default="data", help="(data)")
    return parser.parse_args()


def described(result):
    """Describes a result for people: "91.00 % after 70.2 s and 34 epochs"."""
    best = f"best {100 * result['best_accuracy']:.2f} %" if result["best_accuracy"] is not None else "no epoch ended"
    if result["seconds_to_target"] is None:
        return f"{100 * result['target']:.2f} % was not held within {result['epochs']} epochs, {best}"
    return (f"{100 * result['target']:.2f} % after {result['seconds_to_target']:.1f} s and "
            f"{result['epochs_to_target']} epochs, {best}")


def main():
    arguments = parse()
    start = time.monotonic()
    result, code = arguments.train(arguments)
    if code != 0:
        sys.exit(code)
    result["program_seconds"] = time.monotonic() - start
    print(f"accuracy: {described(result)}", file=sys.stderr)
    print(json.dumps({"question": "time to accuracy", "job": arguments.job, "seed": arguments.seed} | result))
    if result["status"] not in MEASURED:
        sys.exit(f"error: the run ended as {result['status']}")


if __name__ == "__main__":
    main()
