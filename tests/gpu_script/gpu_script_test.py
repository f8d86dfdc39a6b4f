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
# Without a convolution, whose trials on tensor cores take the stand-in seconds.
LARGE_JOB = """
name: "large"
model {
  layers { name: "pool" input: "image" max_pool { kernel: 8 stride: 8 } }
  layers { name: "hidden" input: "pool" dense { units: 8 } }
  layers { name: "logits" input: "hidden" dense { units: 10 } }
  layers { name: "loss" input: ["logits", "label"] softmax_cross_entropy {} }
}
""" + SMALL_JOB[SMALL_JOB.index("data {"):].replace("mnist", "cifar10")

# A machine for tests has no PyTorch for GPUs, so this takes the peer's place. $PEER_ANSWER: what it prints, or "skipped".
PEER = """
import os, sys
if os.environ["PEER_ANSWER"] == "skipped":
    print("skipped: No module named 'torch'", file=sys.stderr)
    sys.exit(4)
assert sys.argv[1] == "train" and sys.argv[sys.argv.index("--arrangement") + 1] == "CUDA graph", sys.argv
print(os.environ["PEER_ANSWER"])
"""
PEER_ANSWER = json.dumps({
    "peer": "PyTorch", "arrangement": "CUDA graph", "pytorch": "2.11", "gpu": "made up", "batch": 4, "status": "target_reached",
    "target_accuracy": 0.01, "time_to_accuracy_seconds": 1.5, "epochs_to_target": 2, "epochs": 2, "epoch_rows": [
        {"training_seconds": 0.5, "weights": {"test_accuracy": 0.25}, "average": {"test_accuracy": 0.125}}]})


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
        for folder in ("bin", "bench/gpu", "bench/peers", "tests"):
            (self.root / folder).mkdir(parents=True)
        for program in ("bin/arbalest", "bench/gpu_bench", "tests/gpu_test"):
            os.symlink(STAND_IN_TREE / program, self.root / program)
        for file in ("gpu.sh", "gpu/gpu_summary.py", "gpu/kernel_rates.py", "gpu/time_to_accuracy.py", "made_up_cifar10.py"):
            shutil.copy(ROOT / "bench" / file, self.root / "bench" / file)
        (self.root / "bench/peers/pytorch_peer.py").write_text(PEER)
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
                 "ARBALEST_GPU_TEAM_SIZES": "1 2", "ARBALEST_GPU_TEAM_BATCH": "4", "ARBALEST_GPU_MADE_UP_RECORDS": "40",
                 "ARBALEST_GPU_MNIST_JOB": "small.txtpb", "ARBALEST_GPU_MNIST_TARGET": "0.01",
                 "ARBALEST_GPU_LARGE_TARGET": "0.01", "ARBALEST_GPU_RUN_LEARNERS": "2 1", "ARBALEST_GPU_RUN_SEEDS": "1 2",
                 "ARBALEST_GPU_FUSED_LEARNERS": "1 2", "ARBALEST_GPU_FUSED_FAST_LEARNERS": "2",
                 "ARBALEST_GPU_FUSED_LARGE_LEARNERS": "2", "ARBALEST_GPU_FUSED_TEAM_SIZES": "1 2",
                 "ARBALEST_GPU_FUSED_RUN_LEARNERS": "2", "ARBALEST_GPU_TIMED_TEAMS": "2", "ARBALEST_GPU_CHOSEN_TEAM": "2"}
        self.done = subprocess.run(["bash", self.root / "bench/gpu.sh", self.out, *parts], capture_output=True, text=True,
                                   env={"PATH": os.environ["PATH"], "PEER_ANSWER": "skipped", **sizes, **environment})
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

    def write_cifar(self):
        subprocess.run([sys.executable, ROOT / "bench/made_up_cifar10.py", self.tree.data / "cifar-10", "40"], check=True)

    def check_results(self):
        """Checks that every measurement belongs to a step that passed, and that no step has two."""
        steps = self.tree.steps()
        of = [result["step"] for result in self.tree.results()]
        self.assertEqual(len(of), len(set(of)))
        self.assertEqual({steps[name][0] for name in of}, {"passed"})

    def test_our_kernels_and_teams_pass_and_what_has_passed_does_not_run_again(self):
        self.assertEqual(self.tree.run("fused"), 0, self.tree.done.stderr)
        self.check_files()
        self.check_results()
        steps = self.tree.steps()
        passed = {name for name, (status, _) in steps.items() if status == "passed"}
        self.assertLessEqual(
            {"fused_own_kernels", "fused_teams", "teams_fused_small_FP32_1", "teams_fused_small_FP32_2", "time_to_mnist_k2_s1",
             "time_to_mnist_k2_s2", "kernel_rates_small_FP32_2", "kernel_rates_large_BF16_2", "teams_fused_small_TF32_2",
             "teams_fused_small_BF16_2", "teams_fused_large_BF16_2", "teams_fused_large_FP32_2",
             "teams_fused_kernels_small_FP32", "teams_fused_kernels_large_BF16", "fused_launch_floor"}, passed)
        for tool in ("fused_racecheck", "fused_synccheck"):
            if not shutil.which("compute-sanitizer"):
                self.assertEqual(steps[tool], ("skipped", "compute-sanitizer is not installed"))
        results = {result["step"]: result for result in self.tree.results()}
        self.assertEqual([(point["learners"], point["team"], point["kernels"])
                          for point in results["teams_fused_kernels_small_FP32"]["curve"]],
                         [(2, 2, "FIXED"), (2, 2, "TIMED")])
        self.assertEqual({layer["replicas"] for layer in results["kernel_rates_small_FP32_2"]["layers"]}, {2, None})
        summary = (self.tree.out / "summary.md").read_text()
        self.assertIn("times as many as with FIXED", summary)
        self.assertIn("GFLOP/s", summary)
        # Another call has nothing to do but what was skipped, and the summary stays the same but for the machine.
        before = {name: (self.tree.out / name).read_text() for name in ("results.jsonl", "steps.tsv")}
        self.assertEqual(self.tree.run("fused"), 0, self.tree.done.stderr)
        for name in passed - {"made_up_images"}:
            self.assertRegex(self.tree.done.stderr, rf"(?m)^{name} +passed before$")
        self.assertEqual((self.tree.out / "results.jsonl").read_text(), before["results.jsonl"])
        self.assertEqual(self.tree.steps(), steps)
        self.assertEqual((self.tree.out / "summary.md").read_text().split("```")[0], summary.split("```")[0])

    def test_times_to_an_accuracy_are_measured_beside_pytorch(self):
        self.write_cifar()
        self.assertEqual(self.tree.run("accuracy", PEER_ANSWER=PEER_ANSWER), 0, self.tree.done.stderr)
        self.check_files()
        self.check_results()
        names = ["large_k2_s1", "large_pytorch_s1", "large_k1_s1", "large_k2_s2", "large_pytorch_s2", "mnist_k2_s1",
                 "mnist_k2_s2", "mnist_k1_s1", "mnist_k1_s2", "mnist_pytorch_s1", "mnist_pytorch_s2"]
        self.assertEqual(list(self.tree.steps()), [f"time_to_{name}" for name in names])
        results = {result["step"]: result for result in self.tree.results()}
        ours = results["time_to_large_k2_s1"]
        self.assertEqual([ours[name] for name in ("contender", "learners", "team", "mini_batch", "seed", "target", "status",
                                                  "epochs_to_target")],
                         ["Arbalest", 2, 2, 8, 1, 0.01, "target_reached", 1])
        self.assertGreater(ours["seconds_to_target"], 0)
        self.assertGreater(ours["best_accuracy"], 0.01)
        theirs = results["time_to_large_pytorch_s2"]
        self.assertEqual([theirs[name] for name in ("contender", "mini_batch", "seed", "seconds_to_target",
                                                    "epochs_to_target", "best_accuracy")],
                         ["PyTorch, CUDA graph", 512, 2, 1.5, 2, 0.25])
        self.assertEqual(self.tree.steps()["time_to_large_pytorch_s1"][1], "1.00 % after 1.5 s and 2 epochs, best 25.00 %")
        self.assertRegex((self.tree.out / "summary.md").read_text(),
                         r"\| large \| PyTorch, CUDA graph \| 512 \| 1.00 % \| 2 of 2 \| 1.5 \(1.5 to 1.5\) \| 2 \|")

    def test_runs_without_data_or_pytorch_are_skipped_and_run_once_they_are_there(self):
        environment = {"ARBALEST_GPU_RUN_LEARNERS": "1", "ARBALEST_GPU_RUN_SEEDS": "1"}
        self.assertEqual(self.tree.run("accuracy", **environment), 0, self.tree.done.stderr)
        missing = f"{self.tree.data}/cifar-10/data_batch_1.bin is missing"
        self.assertEqual(self.tree.steps()["time_to_large_k1_s1"], ("skipped", missing))
        self.assertEqual(self.tree.steps()["time_to_mnist_pytorch_s1"], ("skipped", "No module named 'torch'"))
        self.assertEqual(self.tree.steps()["time_to_mnist_k1_s1"][0], "passed")
        self.write_cifar()
        self.assertEqual(self.tree.run("accuracy", **environment), 0, self.tree.done.stderr)
        self.assertIn("time_to_mnist_k1_s1          passed before", self.tree.done.stderr)
        self.assertEqual(self.tree.steps()["time_to_large_k1_s1"][0], "passed")
        self.check_results()

    def test_a_target_that_is_not_held_is_a_measurement(self):
        self.assertEqual(self.tree.run("accuracy", ARBALEST_GPU_RUN_LEARNERS="1", ARBALEST_GPU_RUN_SEEDS="1",
                                       ARBALEST_GPU_MNIST_TARGET="1"), 0, self.tree.done.stderr)
        status, note = self.tree.steps()["time_to_mnist_k1_s1"]
        self.assertEqual(status, "passed")
        self.assertRegex(note, r"^100.00 % was not held within 1 epochs, best \d+.\d\d %$")
        self.assertIn("| 0 of 1 |", (self.tree.out / "summary.md").read_text())

    def test_failed_and_unfinished_steps_run_again_and_count_once(self):
        environment = {"ARBALEST_GPU_RUN_LEARNERS": "1", "ARBALEST_GPU_RUN_SEEDS": "1"}
        self.assertEqual(self.tree.run("accuracy", **environment), 0, self.tree.done.stderr)
        row = (self.tree.out / "results.jsonl").read_text()
        # As if the machine had been lost before the step was recorded, and while another result was written.
        (self.tree.out / "steps.tsv").write_text("time_to_mnist_k1_s1\tfailed\t1\tno\n")
        with (self.tree.out / "results.jsonl").open("a") as file:
            file.write('{"step":"another","question":"lear')
        self.assertEqual(self.tree.run("accuracy", **environment), 0, self.tree.done.stderr)
        self.assertEqual(self.tree.steps()["time_to_mnist_k1_s1"][0], "passed")
        self.assertEqual([result["step"] for result in self.tree.results()], 2 * ["time_to_mnist_k1_s1"])
        self.assertTrue((self.tree.out / "results.jsonl").read_text().startswith(row))
        self.assertIn("| 1 of 1 |", (self.tree.out / "summary.md").read_text())

    def test_a_run_does_not_begin_without_time_for_it(self):
        environment = {"ARBALEST_GPU_RUN_LEARNERS": "1 2", "ARBALEST_GPU_RUN_SEEDS": "1"}
        self.assertEqual(self.tree.run("accuracy", **environment), 0, self.tree.done.stderr)
        (self.tree.out / "steps.tsv").write_text("time_to_mnist_k2_s3\tpassed\t801\tlong\n")
        self.assertEqual(self.tree.run("accuracy", **environment), 0, self.tree.done.stderr)
        for name in ("mnist_k1_s1", "mnist_k2_s1"):
            self.assertEqual(self.tree.steps()[f"time_to_{name}"], ("skipped", "no time is left"))
        self.assertIn("steps are left: call this part again with the same OUT", self.tree.done.stderr)

    def test_results_of_another_build_are_refused(self):
        self.tree.out.mkdir()
        (self.tree.out / "machine.txt").write_text("source_commit: another\n")
        self.assertEqual(self.tree.run("accuracy"), 2)
        self.assertIn("has results of build another, and this is", self.tree.done.stderr)

    def test_a_failing_case_runs_again_alone(self):
        self.assertEqual(self.tree.run("tests", ARBALEST_SCRIPT_FAULT="failure"), 1)
        self.assertEqual(self.tree.steps()["operators"], (
            "failed", '1 of 9 cases fail; alone, in fresh processes: '
            '"script: counts, with a comma [and brackets]" fails;'))
        self.assertEqual(self.tree.steps()["training"][0], "passed")
        self.assertIn("Failed: operators: 1 of 9 cases fail", (self.tree.out / "summary.md").read_text())
        self.check_files()

    def test_a_case_that_fails_only_after_others_is_told_apart(self):
        self.assertEqual(self.tree.run("tests", ARBALEST_SCRIPT_FAULT="leftovers"), 1)
        self.assertEqual(self.tree.steps()["operators"], (
            "failed", '1 of 9 cases fail; alone, in fresh processes: "script: needs a fresh process" passes;'))

    def test_cases_after_one_that_ends_the_process_still_run(self):
        self.assertEqual(self.tree.run("tests", ARBALEST_SCRIPT_FAULT="death"), 1)
        self.assertEqual(self.tree.steps()["operators"], (
            "failed", '1 of 9 cases fail; alone, in fresh processes: "script: ends the process" fails;'))
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
        self.assertEqual(self.tree.run("tests", ARBALEST_GPU_SECONDS="25"), 1)  # a step begins if 5 are left
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
        self.assertIn("\nMNIST and CIFAR-10 are searched below $ARBALEST_DATA", self.tree.done.stderr)
        self.assertTrue(self.tree.done.stderr.endswith("4 there is no GPU.\n"))

    def test_resumable_parts_are_called_alone(self):
        for parts in (("fused", "accuracy"), ("tests", "fused"), ("accuracy", "all")):
            self.assertEqual(self.tree.run(*parts), 2)
            self.assertIn("are called alone", self.tree.done.stderr)


if __name__ == "__main__":
    sys.exit(unittest.main())
