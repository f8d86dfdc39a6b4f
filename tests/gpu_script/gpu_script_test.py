"""Runs bench/gpu.sh on the stand-in for CUDA's libraries, with jobs that are small enough for it."""

import json
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
STAND_IN_TREE = pathlib.Path(os.environ["ARBALEST_STAND_IN_TREE"])
REAL_PROGRAM = pathlib.Path(os.environ["ARBALEST_PROGRAM"])

SMALL_JOB = """
name: "small"
model {
  layers { name: "conv" input: "image" conv { filters: 2 kernel: 5 stride: 5 } }
  layers { name: "relu" input: "conv" relu {} }
  layers { name: "logits" input: "relu" dense { units: 10 } }
  layers { name: "loss" input: ["logits", "label"] softmax_cross_entropy {} }
}
data { mnist {} }
training { batch_size: 4 max_epochs: 1 target_accuracy: 0.01 seed: 1 }
optimizer { sgd {} }
learning_rate { base: 0.001 }
synchronization { sma {} }
"""
LARGE_JOB = SMALL_JOB.replace('"small"', '"large"').replace("mnist", "cifar10")


def write_mnist(directory):
    """Writes a dataset in MNIST's format: 512 training and 16 test images."""
    directory.mkdir(parents=True)
    numbers = random.Random(1)
    for name, count in (("train", 512), ("t10k", 16)):
        images = struct.pack(">IIII", 0x803, count, 28, 28) + numbers.randbytes(count * 28 * 28)
        labels = struct.pack(">II", 0x801, count) + bytes(i % 10 for i in range(count))
        (directory / f"{name}-images-idx3-ubyte").write_bytes(images)
        (directory / f"{name}-labels-idx1-ubyte").write_bytes(labels)


class Tree:
    """A tree like the one from `cmake --install`, with the programs on the stand-in."""

    def __init__(self, directory):
        self.root = pathlib.Path(directory) / "tree"
        for folder in ("bin", "bench/gpu", "tests"):
            (self.root / folder).mkdir(parents=True)
        for program in ("bin/arbalest", "bench/gpu_bench", "tests/gpu_test"):
            os.symlink(STAND_IN_TREE / program, self.root / program)
        for file in ("gpu.sh", "gpu/gpu_summary.py", "made_up_cifar10.py"):
            shutil.copy(ROOT / "bench" / file, self.root / "bench" / file)
        (self.root / "small.txtpb").write_text(SMALL_JOB)
        (self.root / "large.txtpb").write_text(LARGE_JOB)
        self.data = pathlib.Path(directory) / "data"
        write_mnist(self.data / "mnist")
        self.out = pathlib.Path(directory) / "out"

    def replace(self, program, script):
        (self.root / program).unlink()
        (self.root / program).write_text("#!/bin/sh\n" + script)
        (self.root / program).chmod(0o755)

    def run(self, *parts, **environment):
        sizes = {"ARBALEST_GPU_SMALL_JOB": "small.txtpb", "ARBALEST_GPU_LARGE_JOB": "large.txtpb",
                 "ARBALEST_GPU_LEARNERS": "1 2", "ARBALEST_GPU_SMALL_BATCHES": "4", "ARBALEST_GPU_LARGE_BATCHES": "4",
                 "ARBALEST_GPU_MEASURING": "--turns 1 --seconds 0.01", "ARBALEST_DATA": str(self.data),
                 "ARBALEST_GPU_SECONDS": "800", "ARBALEST_GPU_TEAM_LEARNERS": "2",
                 "ARBALEST_GPU_TEAM_SIZES": "1 2", "ARBALEST_GPU_TEAM_BATCH": "4", "ARBALEST_GPU_MADE_UP_RECORDS": "40"}
        self.done = subprocess.run(["bash", self.root / "bench/gpu.sh", self.out, *parts], capture_output=True, text=True,
                                   env={"PATH": os.environ["PATH"], **sizes, **environment})
        return self.done.returncode

    def steps(self):
        lines = (self.out / "steps.tsv").read_text().splitlines()
        return {name: (status, note) for name, status, _, note in (line.split("\t") for line in lines)}

    def results(self):
        return [json.loads(line) for line in (self.out / "results.jsonl").read_text().splitlines()]


class GpuScriptTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.tree = Tree(directory.name)

    def check_files(self):
        """Checks that the script writes only the eight files that are copied back from a machine."""
        files = {path.name for path in self.tree.out.iterdir()}
        self.assertLessEqual(files, {"summary.md", "steps.tsv", "results.jsonl", "machine.txt", "log.txt", "kernels.csv",
                                     "sanitizer.txt", "cudnn.txt"})

    def test_all_parts_pass(self):
        self.assertEqual(self.tree.run("tests", "bench", "curves", "sanitize"), 0, self.tree.done.stderr)
        self.check_files()
        steps = self.tree.steps()
        for name in ("operators", "first_losses", "repeatability", "training", "train_small", "launch_floor",
                     "launch_floor_large", "learners_1", "learners_2", "learners_BF16_2", "made_up_images", "large_b4_2",
                     "small_b4_1"):
            self.assertEqual(steps[name][0], "passed", (name, steps[name]))
        self.assertEqual(steps["several_gpus"], ("skipped", "needs 2 GPUs, and this machine has 1"))
        if not shutil.which("compute-sanitizer"):
            self.assertEqual(steps["memcheck"], ("skipped", "compute-sanitizer is not installed"))
        results = self.tree.results()
        launches = [r for r in results if r["question"] == "launch floor"]
        self.assertEqual(len(launches), 2)
        for launch in launches:
            ours = [line for line in launch["kernel_choices"] if "own tiled product" in line]
            self.assertTrue(ours, "a convolution or dense layer has timed kernels of ours")
            self.assertTrue(all(" us" in line for line in ours), ours)
        # Every point is a separate result: two numbers of learners with FP32, TF32 and BF16, and for both curves.
        self.assertEqual(sum(r["question"] == "learners of a GPU" for r in results), 10)
        self.assertIn("made-up images take its place", (self.tree.out / "machine.txt").read_text())
        summary = (self.tree.out / "summary.md").read_text()
        self.assertIn("| large | 4 |", summary)
        self.assertNotIn("Failed:", summary)

    def test_teams_are_compared_with_learners_alone(self):
        self.assertEqual(self.tree.run("teams"), 0, self.tree.done.stderr)
        self.assertEqual({name: status for name, (status, _) in self.tree.steps().items() if name.startswith("teams")},
                         {f"teams_{job}_{precision}_2": "passed" for job in ("small", "large")
                          for precision in ("FP32", "BF16")})
        for result in self.tree.results():
            self.assertEqual([(point["learners"], point["team"]) for point in result["curve"]], [(2, 1), (2, 2)])
        summary = (self.tree.out / "summary.md").read_text()
        self.assertRegex(summary, r"small, b = 32, BF16: 2 learners in teams of 2 \|.* times as many as on streams of their own")

    def test_a_failing_case_runs_again_alone(self):
        self.assertEqual(self.tree.run("tests", ARBALEST_SCRIPT_FAULT="failure"), 1)
        self.assertEqual(self.tree.steps()["operators"], (
            "failed", '1 of 6 cases fail; alone, in fresh processes: '
            '"script: counts, with a comma [and brackets]" fails;'))
        self.assertEqual(self.tree.steps()["training"][0], "passed")
        self.assertIn("Failed: operators: 1 of 6 cases fail", (self.tree.out / "summary.md").read_text())
        self.check_files()

    def test_a_case_that_fails_only_after_others_is_told_apart(self):
        self.assertEqual(self.tree.run("tests", ARBALEST_SCRIPT_FAULT="leftovers"), 1)
        self.assertEqual(self.tree.steps()["operators"], (
            "failed", '1 of 6 cases fail; alone, in fresh processes: "script: needs a fresh process" passes;'))

    def test_cases_after_one_that_ends_the_process_still_run(self):
        self.assertEqual(self.tree.run("tests", ARBALEST_SCRIPT_FAULT="death"), 1)
        self.assertEqual(self.tree.steps()["operators"], (
            "failed", '1 of 6 cases fail; alone, in fresh processes: "script: ends the process" fails;'))
        self.assertIn("case passed: script: comes last", (self.tree.out / "log.txt").read_text())

    def test_the_first_failing_calls_log_of_cudnn_is_kept(self):
        # The real cuDNN writes such a log, but the stand-in does not. A wrapper program writes it instead.
        self.tree.replace("tests/gpu_test", f"""
            [ -z "$CUDNN_LOGDEST_DBG" ] || printf 'I! CuDNN function cudnnCreate\\nE! bad convolution\\nI! later\\n' \\
              >"$CUDNN_LOGDEST_DBG"
            exec {STAND_IN_TREE}/tests/gpu_test "$@"\n""")
        self.assertEqual(self.tree.run("tests", ARBALEST_SCRIPT_FAULT="failure"), 1)
        log = (self.tree.out / "cudnn.txt").read_text()
        self.assertIn("case: script: counts, with a comma", log)
        self.assertIn("I! CuDNN function cudnnCreate\nE! bad convolution\n", log)

    def test_a_program_that_cannot_start_is_no_missing_gpu(self):
        message = "error while loading shared libraries: libcudnn.so.9: cannot open shared object file"
        self.tree.replace("bin/arbalest", f"echo '{message}' >&2\nexit 127\n")
        self.assertEqual(self.tree.run("tests"), 1)
        self.assertIn(f"error: bin/arbalest does not start: {message}", self.tree.done.stderr)
        self.assertNotIn("skipped", self.tree.done.stderr)

    def test_a_test_program_that_cannot_start_fails_with_its_error(self):
        self.tree.replace("tests/gpu_test", "echo 'symbol lookup error: ncclCommInitAll' >&2\nexit 127\n")
        self.assertEqual(self.tree.run("tests"), 1)
        for name in ("operators", "training", "several_gpus"):
            self.assertEqual(self.tree.steps()[name],
                             ("failed", "tests/gpu_test lists no case: symbol lookup error: ncclCommInitAll"))

    def test_missing_data_is_a_failure_and_no_skip(self):
        # The program exits with 4 if data is missing, and so do skipped tests.
        (self.tree.data / "mnist/train-images-idx3-ubyte").unlink()
        self.assertEqual(self.tree.run("bench"), 1)
        status, note = self.tree.steps()["launch_floor"]
        self.assertEqual(status, "failed")
        self.assertIn("exit code 4: ", note)
        self.assertIn("train-images-idx3-ubyte", note)

    def test_a_part_ends_at_its_time(self):
        self.tree.replace("tests/gpu_test", "sleep 60\n")
        self.assertEqual(self.tree.run("tests", ARBALEST_GPU_SECONDS="8"), 1)
        self.assertEqual(self.tree.steps()["train_small"], ("skipped", "no time is left"))

    def test_without_a_gpu_everything_is_skipped(self):
        devices = subprocess.run([REAL_PROGRAM, "devices"], capture_output=True, text=True)
        if "cuda:0" in devices.stdout:
            self.skipTest("this machine has a GPU")
        self.tree.replace("bin/arbalest", f'exec {REAL_PROGRAM} "$@"\n')
        for _ in range(10):  # a race would show sooner or later
            self.assertEqual(self.tree.run("tests"), 4)
            self.assertIn("skipped: no NVIDIA driver", self.tree.done.stderr)

    def test_unknown_parts_are_usage_errors(self):
        self.assertEqual(self.tree.run("sanitizer"), 2)
        self.assertIn("bench/gpu.sh OUT [tests|bench|teams|curves|peers|sanitize|all]", self.tree.done.stderr)


if __name__ == "__main__":
    sys.exit(unittest.main())
