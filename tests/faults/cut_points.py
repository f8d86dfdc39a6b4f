#!/usr/bin/env python3
"""R12: a run that is cut at any round and resumed ends with the bytes of a run that was never stopped.

Three small jobs change within a run: the learning rate drops, learners come and go, the scheme of synchronization changes,
rounds are long. A trial cuts one job after each of its rounds in turn: within epochs, at their ends, at each change, within
long rounds. It resumes from the checkpoint of that round, trains to the end, and compares the model and every epoch with an
undisturbed run. The process of one cut saves the checkpoint of the next one, so a trial is also one chain of restarts.

    tests/faults/cut_points.py --trials 300 --results cut-points.jsonl    # the three jobs with 100 seeds
"""

import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

import trials
from kill_runs import NORMALIZED, outcome, rows_of, write_images, write_ratings

NEVER = 1000000000
LONGEST_ROUND = {"classifier": 9, "gradients": 4, "ratings": 27}  # mini-batches

JOBS = {
    "classifier": NORMALIZED + """
data { npy { directory: "./images" classes: 10 channels: 1 height: 12 width: 12 } augmentation { padding: 2 } }
training { batch_size: 4 max_epochs: 3 moving_average_epochs: 0.3 batch_norm_examples: 16 }
optimizer { sgd { momentum: 0.9 } }
learning_rate { base: 0.01 multistep { drop { epoch: 1.6 factor: 0.1 } } }
synchronization { sma {} switch { at_epoch: 2.3 local_sgd { period: 3 } } }
learners {
  per_device { schedule { step { learners: 1 } step { at_batch: 60 learners: 3 } step { at_batch: 90 learners: 2 } } }
}
""",
    "gradients": """
model { zoo { logistic_regression {} } }
data { npy { directory: "./images" classes: 10 channels: 1 height: 12 width: 12 } validation { fraction: 0.2 } }
training { batch_size: 4 max_epochs: 4 }
optimizer { sgd { momentum: 0.9 nesterov: true weight_decay: 5e-4 } }
learning_rate { base: 0.01 one_cycle {} with_learners: LINEAR }
synchronization { s_sgd {} }
learners { per_device { growth { to: 4 epochs: 2 } } }
""",
    "ratings": """
model { zoo { matrix_factorization { width: 4 mean: 3.0 } } }
data { ratings { directory: "./ratings" sizes: [40, 30] } }
training { batch_size: 16 max_epochs: 1 }
optimizer { adamw {} }
learning_rate { base: 0.01 }
synchronization { diloco { period: 9 } }
learners { per_device { fixed: 3 } }
""",
}


def train(program, job, *more):
    """Returns what went wrong, "" if nothing."""
    command = [program, "train", str(job), "--quiet", *more]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=trials.LIMIT)
    return "" if done.returncode == 0 else f"exit code {done.returncode}: {done.stderr[-500:]}"


def checkpoints_of(run):
    """Returns the checkpoints of a run by their mini-batches."""
    return {int(path.name): path for path in (run / "checkpoints").iterdir() if path.name.isdigit()}


def check(run, at, expected):
    """Returns what is wrong with a run that was resumed at this mini-batch and has ended."""
    resumed = [row["batch"] for row in rows_of(run) if row["event"] == "resume"]
    if not resumed or resumed[-1] != at:
        return f"resumed at {resumed}"
    return "" if outcome(run) == expected else f"another outcome: {outcome(run)} instead of {expected}"


def cut_everywhere(program, root, job, most):
    """Cuts the job in `root` at its rounds, one after another. Returns a row of the results."""
    text, run = root / f"{job}.txtpb", root / "run"
    problem = train(program, text, "--output", str(root / "whole"), "--set", f"checkpoint.every_batches={NEVER}")
    problem = problem or train(program, text, "--output", str(run), "--set", "checkpoint.every_batches=1")
    if problem:
        return {"job": job, "cuts": 0, "problem": problem}
    expected = outcome(root / "whole")
    end = max(checkpoints_of(run))  # nothing is left to train from there on
    at, cuts, longest = 0, 0, 0
    while cuts < most:
        found = checkpoints_of(run)
        later = [batch for batch in found if at < batch < end]
        if not later:
            break
        longest = max(longest, min(later) - at)
        at = min(later)
        cuts += 1
        # The first save is then that of the next round, and few follow.
        problem = train(program, text, f"--resume={found[at]}", "--set", f"checkpoint.every_batches={at + 1}")
        problem = problem or check(run, at, expected)
        if problem:
            return {"job": job, "cuts": cuts, "problem": f"cut at mini-batch {at}: {problem}"}
        for old in [*(run / "checkpoints").glob("*.superseded*"), found[at]]:
            shutil.rmtree(old)
    problem = "" if cuts > 0 else "there was no round to cut at"
    if longest > LONGEST_ROUND[job]:
        problem = f"there was no checkpoint for {longest} mini-batches"
    return {"job": job, "cuts": cuts, "problem": problem}


def write_jobs(root, seed):
    numbers = random.Random(seed)
    write_images(root / "images", 12, 1, 200, numbers)
    write_ratings(root / "ratings", numbers, 2000)
    for job, text in JOBS.items():
        more = 'devices: "cpu"\ncheckpoint { keep_last: 1000 }\n'
        (root / f"{job}.txtpb").write_text(text.replace("max_epochs", f"seed: {seed} max_epochs") + more, encoding="utf-8")


def main():
    parser = trials.parser(__doc__, len(JOBS))
    parser.add_argument("--rounds", type=int, default=1000000, help="rounds of each job (default: all)")
    arguments = parser.parse_args()
    program = str((pathlib.Path(arguments.build) / "arbalest").resolve())

    def trial(number):
        with tempfile.TemporaryDirectory(dir=trials.scratch_directory()) as name:
            write_jobs(pathlib.Path(name), 1 + number // len(JOBS))
            return cut_everywhere(program, pathlib.Path(name), list(JOBS)[number % len(JOBS)], arguments.rounds)

    return trials.run(
        arguments,
        trial,
        lambda rows: f"jobs with the bytes of an undisturbed run after {sum(row['cuts'] for row in rows)} resumptions, "
        "one after each round",
    )


if __name__ == "__main__":
    sys.exit(main())
