#!/usr/bin/env python3
"""Kills training runs with SIGKILL at random instants, resumes them until they end, and compares every byte.

A trial starts one of sixteen small jobs, which have all schemes, optimizers, schedules and kinds of data between them, kills
it after a random time, and resumes it, again and again, until it ends. Three of ten kills follow a SIGTERM by up to 2 s.
Half of the trials of jobs that allow it end after one epoch first, and then go on to all epochs. A trial passes if

- the model, the best model, the accuracies and the epochs of metrics.jsonl are those of a run that was never killed,
- the last start resumed at the newest checkpoint that the log had told, or a later one,
- no checkpoint was found damaged.

    tests/faults/kill_runs.py --program build/release/arbalest --kills 500 --results kills.jsonl

Each trial is a line of the results, written as it ends; the same command goes on after the last one.
"""

import argparse
import hashlib
import json
import pathlib
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time
import zlib

import trials

EVERY = 20  # mini-batches between two checkpoints


def write_array(path, kind, shape, data):
    """Writes an array in NumPy's format 1.0; `kind` is its type, such as '|u1'."""
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode("ascii") + data)


def write_images(directory, size, channels, rows, numbers):
    directory.mkdir()
    for split, count in (("train", rows), ("test", 64)):
        labels = [numbers.randrange(10) for _ in range(count)]
        pixels = bytearray()
        for label in labels:
            pixels += bytes((numbers.randrange(128) + 12 * label) % 256 for _ in range(channels * size * size))
        shape = [count, channels, size, size]
        write_array(directory / f"{split}_images.npy", "|u1", shape, bytes(pixels))
        write_array(directory / f"{split}_labels.npy", "|u1", [count], bytes(labels))


def write_ratings(directory, numbers, rows=4000):
    directory.mkdir()
    for split, count in (("train", rows), ("test", 200)):
        ids = [(numbers.randrange(40), numbers.randrange(30)) for _ in range(count)]
        pairs = b"".join(struct.pack("<2i", *pair) for pair in ids)
        targets = b"".join(struct.pack("<f", 3.0 + 0.02 * (a - b)) for a, b in ids)
        write_array(directory / f"{split}_ids.npy", "<i4", [count, 2], pairs)
        write_array(directory / f"{split}_targets.npy", "<f4", [count], targets)


NORMALIZED = """
model {
  layers { name: "conv1" input: "image" conv { filters: 4 kernel: 3 padding_mode: SAME use_bias: false } }
  layers { name: "norm1" input: "conv1" batch_norm {} }
  layers { name: "relu1" input: "norm1" relu {} }
  layers { name: "mean" input: "relu1" average_pool { kernel: 4 stride: 4 } }
  layers { name: "drop" input: "mean" dropout { ratio: 0.2 } }
  layers { name: "logits" input: "drop" dense { units: 10 } }
  layers { name: "loss" input: ["logits", "label"] softmax_cross_entropy {} }
}
"""

JOBS = {
    "lenet": """
model { zoo { lenet {} } }
data { npy { directory: "./images28" classes: 10 channels: 1 height: 28 width: 28 } }
training { batch_size: 8 max_epochs: 3 moving_average_epochs: 0.3 }
optimizer { sgd { momentum: 0.9 } }
learning_rate { base: 0.003 multistep { drop { epoch: 1.6 factor: 0.1 } } }
synchronization { sma {} switch { at_epoch: 2.2 local_sgd { period: 5 } } }
learners { per_device { schedule { step { learners: 1 } step { at_batch: 100 learners: 3 } } } }
""",
    "frozen": """
model { zoo { lenet {} } }
data { npy { directory: "./images28" classes: 10 channels: 1 height: 28 width: 28 } }
training { batch_size: 8 max_epochs: 3 freeze: "conv1" }
optimizer { sgd { momentum: 0.9 } }
learning_rate { base: 0.003 }
synchronization { local_sgd { period: 7 } }
learners { per_device { fixed: 2 } }
""",
    "resnet": """
model { zoo { resnet_cifar { depth: 20 } } }
data { npy { directory: "./images32" classes: 10 channels: 3 height: 32 width: 32 } augmentation { padding: 4 } }
training { batch_size: 8 max_epochs: 2 batch_norm_examples: 64 }
optimizer { sgd { momentum: 0.9 nesterov: true weight_decay: 5e-4 } }
learning_rate { base: 0.01 one_cycle {} with_learners: LINEAR }
synchronization { s_sgd {} }
learners { per_device { growth { to: 4 epochs: 1 } } }
""",
    "ratings": """
model { zoo { matrix_factorization { width: 4 mean: 3.0 } } }
data { ratings { directory: "./ratings" sizes: [40, 30] } }
training { batch_size: 16 max_epochs: 4 }
optimizer { adamw {} }
learning_rate { base: 0.01 }
synchronization { diloco { period: 9 } }
learners { per_device { fixed: 3 } }
""",
    "normalized": NORMALIZED + """
data { npy { directory: "./images28" classes: 10 channels: 1 height: 28 width: 28 } }
training { batch_size: 8 max_epochs: 3 }
optimizer { adamw {} }
learning_rate { base: 0.003 cosine {} }
synchronization { ea_sgd {} }
learners { per_device { fixed: 2 } }
""",
    "pictures": """
model { zoo { logistic_regression {} } }
data {
  images { directory: "./pictures" classes: 3 decoding { height: 8 width: 8 resize: 10 } }
  augmentation { random_resized_crop {} horizontal_flip: true }
}
training { batch_size: 4 max_epochs: 3 }
optimizer { sgd { momentum: 0.9 } }
learning_rate { base: 0.0001 }
learners { per_device { fixed: 2 } }
""",
    "goes back": """
model { zoo { mlp { hidden: [16] } } }
data { npy { directory: "./images28" classes: 10 channels: 1 height: 28 width: 28 } }
training { batch_size: 8 max_epochs: 3 on_divergence: ROLL_BACK rollback_factor: 0.00001 }
optimizer { sgd { momentum: 0.9 } }
learning_rate { base: 1000 with_learners: KEEP }
learners { per_device { fixed: 2 } }
""",
    "plateau": """
model { zoo { mlp { hidden: [16] } } }
data {
  npy { directory: "./images28" classes: 10 channels: 1 height: 28 width: 28 }
  validation { fraction: 0.2 }
}
training { batch_size: 8 max_epochs: 5 }
optimizer { sgd { momentum: 0.9 } }
learning_rate { base: 0.01 plateau { factor: 0.3 patience: 1 } }
synchronization { sma { period: 2 } }
learners { per_device { fixed: 2 } }
""",
} | {
    name: f"""
model {{ zoo {{ mlp {{ hidden: [16] }} }} }}
data {{ npy {{ directory: "./images28" classes: 10 channels: 1 height: 28 width: 28 }} }}
training {{ batch_size: 8 max_epochs: 4 }}
optimizer {{ sgd {{ momentum: 0.5 }} clip_gradient_norm: 5.0 }}
learning_rate {{ base: 0.003 }}
synchronization {{ {scheme} }}
learners {{ per_device {{ fixed: 2 }} }}
"""
    for name, scheme in {
        "clipped": "s_sgd {}",
        "bmuf": "bmuf { period: 5 }",
        "slow_mo": "slow_mo { period: 5 }",
        "lookahead": "lookahead { period: 5 }",
        "swap": "sma {} switch { at_epoch: 3 swap {} }",
        "server": "async_sgd { staleness: 0 }",
        "switched": "s_sgd {} switch { at_epoch: 1.5 local_sgd { period: 4 local_state: ZERO } } switch { at_epoch: 3 sma {} }",
        "diloco": "diloco { period: 6 }",
    }.items()
}


def png(width, height, numbers):
    """A picture in RGB, of random pixels."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + numbers.randbytes(3 * width) for _ in range(height))
    head = struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def write_pictures(directory, numbers):
    for split, count in (("train", 200), ("test", 30)):
        for number in range(count):
            folder = directory / split / f"class{number % 3}"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{number}.png").write_bytes(png(14, 12, numbers))


def make_jobs(root):
    numbers = random.Random(1)
    write_images(root / "images28", 28, 1, 800, numbers)
    write_images(root / "images32", 32, 3, 480, numbers)
    write_ratings(root / "ratings", numbers)
    write_pictures(root / "pictures", numbers)
    for name, text in JOBS.items():
        (root / f"{name}.txtpb").write_text(
            text + f"devices: \"cpu\"\ncheckpoint {{ every_batches: {EVERY} keep_last: 2 }}\n", encoding="utf-8"
        )


LONGER = ("frozen",)  # jobs that train the same epochs whatever max_epochs is, and may end after one


def command(program, root, job, run, epochs=None):
    end = [] if epochs is None else ["--set", f"training.max_epochs={epochs}"]
    return [program, "train", str(root / f"{job}.txtpb"), "--quiet", "--output", str(run), "--resume=auto", *end]


def rows_of(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]


def outcome(run):
    """What must be equal: the model's hash, and of each epoch everything but times."""
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    epochs = []
    for row in rows_of(run):
        if row["event"] == "epoch":
            names = ("epoch", "train_loss", "test_loss", "test_accuracy", "test_rmse", "validation_loss",
                     "validation_accuracy", "learning_rate", "learners_per_device")
            epochs.append([row.get(name) for name in names])
    best = run / "best.safetensors"
    best_hash = hashlib.sha256(best.read_bytes()).hexdigest() if best.exists() else None
    names = ("status", "epochs", "examples", "model_sha256", "test_loss")
    return [summary[name] for name in names] + [best_hash, epochs]


def wrong_checkpoints(run):
    """What is wrong with the checkpoints of a run that has ended; "" if nothing is."""
    damaged = [path.name for path in (run / "checkpoints").iterdir() if path.suffix in (".damaged", ".superseded")]
    return f"set aside: {damaged}" if damaged else ""


def last_batch(run):
    """Mini-batches of the newest checkpoint that the log tells of; 0 if there is none."""
    try:
        return max([row["batch"] for row in rows_of(run) if row["event"] == "checkpoint"], default=0)
    except (OSError, ValueError, KeyError):  # killed within a line, or before the first one
        return 0


def trial(program, root, job, expected, seconds, numbers, directory):
    """Kills the run at random instants of its first starts, within `seconds`, the length of a whole run.

    Returns a row of the results, and the length of a start that trained everything without a kill, or `seconds`.
    """
    run = directory / "run"
    kills = 0
    length = seconds
    problem = ""
    epochs = 1 if job in LONGER and numbers.random() < 0.5 else None  # ends of the run: after one epoch, then after all
    while not problem:
        known = last_batch(run)
        had_ended = (run / "summary.json").exists()  # it was killed after its end: nothing is left to resume
        process = subprocess.Popen(
            command(program, root, job, run, epochs), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        begin = time.monotonic()
        # Late starts may finish, so that a trial ends.
        is_last = kills >= 4
        try:
            process.wait(timeout=trials.LIMIT if is_last else numbers.uniform(0.02, 1.1 * seconds))
        except subprocess.TimeoutExpired:
            if numbers.random() < 0.3:  # as launchers do: they ask it to stop, and wait a short time only
                process.send_signal(signal.SIGTERM)
                time.sleep(numbers.uniform(0.0, min(2.0, seconds)))
            process.send_signal(signal.SIGKILL)
            kills += 1
        errors = process.communicate()[1]
        if process.returncode == -signal.SIGKILL and is_last:
            problem = f"a start did not end within {trials.LIMIT} seconds"
            break
        if process.returncode in (-signal.SIGKILL, -signal.SIGTERM, 128 + signal.SIGTERM):  # -SIGTERM: before main
            continue
        if process.returncode != 0:
            problem = f"exit code {process.returncode}: {errors[-500:]}"
            break
        resumed = [row["batch"] for row in rows_of(run) if row["event"] == "resume"]
        if known and not had_ended and (not resumed or resumed[-1] < known):
            problem = f"resumed at {resumed}, though a checkpoint of mini-batch {known} had been told"
        if epochs is None:
            length = time.monotonic() - begin if kills == 0 and not had_ended and not known else seconds
            break
        epochs = None
    problem = problem or wrong_checkpoints(run)
    if not problem and outcome(run) != expected:
        problem = f"another outcome: {outcome(run)} instead of {expected}"
    events = [] if problem else [row["event"] for row in rows_of(run)]
    counts = {"resumptions": events.count("resume"), "checkpoints": events.count("checkpoint")}
    return {"job": job, "kills": kills, **counts, "passed": not problem, "problem": problem}, length


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--kills", type=int, default=20, help="end after at least so many kills (default: 20)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--results", help="file of the trials' results; goes on if it has some")
    arguments = parser.parse_args()
    program = str(pathlib.Path(arguments.program).resolve())
    results = pathlib.Path(arguments.results) if arguments.results else None
    rows = [json.loads(line) for line in results.read_text().splitlines()] if results and results.exists() else []
    kills = sum(row["kills"] for row in rows)
    failed = sum(not row["passed"] for row in rows)
    with tempfile.TemporaryDirectory(dir=trials.scratch_directory()) as name:
        root = pathlib.Path(name)
        make_jobs(root)
        expected = {}
        lengths = {}  # seconds of a run without kills, when it was last seen: the machine's load changes
        for job in JOBS:
            begin = time.monotonic()
            whole = command(program, root, job, root / f"whole-{job}")
            subprocess.run(whole, check=True, stdout=subprocess.DEVNULL, timeout=trials.LIMIT)
            expected[job] = outcome(root / f"whole-{job}")
            lengths[job] = time.monotonic() - begin
        for number in range(len(rows), 1000000):
            if kills >= arguments.kills:
                break
            job = list(JOBS)[number % len(JOBS)]
            numbers = random.Random(f"{arguments.seed} {number}")
            with tempfile.TemporaryDirectory(dir=root) as directory:
                row, lengths[job] = trial(
                    program, root, job, expected[job], lengths[job], numbers, pathlib.Path(directory)
                )
            kills += row["kills"]
            failed += not row["passed"]
            rows.append(row)
            if results:
                with results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
            if not row["passed"]:
                print(f"trial {number}, {job}: {row['problem']}", file=sys.stderr)
    resumptions = sum(row["resumptions"] for row in rows)
    print(
        f"{kills} kills in {len(rows)} trials, {resumptions} resumptions in their logs: {len(rows) - failed} passed, "
        f"{failed} failed"
    )
    if kills >= 10 and resumptions == 0:
        print("no run was resumed from a checkpoint, so this proves nothing", file=sys.stderr)
        return 1
    # A busy disk skips some of the ten or more checkpoints of a run, but not most of those of all runs.
    if kills >= 10 and sum(row.get("checkpoints", 3) for row in rows) < 2 * len(rows):
        print("the runs have hardly saved any checkpoints", file=sys.stderr)
        return 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
