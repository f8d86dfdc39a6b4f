"""Tests bench/gpu/gpu_summary.py: the table of a GPU's measurements, made from gpu.sh's output."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SUMMARY = pathlib.Path(__file__).resolve().parents[2] / "bench/gpu/gpu_summary.py"
LENET = "configs/lenet-digits.txtpb"


def point(learners, images_per_second):
    share = {"median": 0.02, "first_quartile": 0.01, "third_quartile": 0.03, "spread": 1.0}
    return {"learners": learners, "images_per_second": {"median": images_per_second, "spread": 0.01},
            "host_seconds_of_step": {"median": 2e-6}, "host_share": {"median": 0.5},
            "averaging_share": share if learners > 1 else None, "all_reduce_share": None,
            "streams_busy": 0.96, "gap_seconds": 1e-6, "step_seconds": 5e-5}


def curve(job, batch, first, best, precision="FP32", connections="default"):
    return {"question": "learners of a GPU", "job": job, "batch": batch, "precision": precision,
            "connections": connections, "curve": [point(1, first), point(8, best)], "best_learners": 8,
            "gain": best / first}


class GpuSummaryTest(unittest.TestCase):
    def summarize(self, results, steps=""):
        with tempfile.TemporaryDirectory() as directory:
            out = pathlib.Path(directory)
            (out / "steps.tsv").write_text(steps)
            (out / "machine.txt").write_text("date: today\n")
            (out / "results.jsonl").write_text("".join(json.dumps(result) + "\n" for result in results))
            return subprocess.run([sys.executable, "-B", SUMMARY, out], check=True, capture_output=True, text=True).stdout

    def test_gains_stand_beside_the_papers_by_job_and_batch_size(self):
        table = self.summarize([curve(LENET, 32, 1e6, 2.1e6), curve(LENET, 64, 1e6, 1.5e6),
                                curve("configs/resnet32-cifar10.txtpb", 128, 2e4, 3e4)])
        self.assertIn("| images/s with the best m, 8 | 2,000,000 | 2,100,000, spread 1.0 % | met |", table)
        self.assertIn("| m = 8 over m = 1 | ≥ 1.78 | 2.10 | met |", table)
        self.assertIn("| lenet-digits | 32 | 8 | +110 % | +78 % | 1: 1,000,000, 8: 2,100,000 |", table)
        self.assertIn("| lenet-digits | 64 | 8 | +50 % | +65 % | 1: 1,000,000, 8: 1,500,000 |", table)
        self.assertIn("| resnet32-cifar10 | 128 | 8 | +50 % | +44 % | 1: 20,000, 8: 30,000 |", table)

    def test_the_targets_are_judged_by_lenet_as_users_run_it(self):
        table = self.summarize([curve(LENET, 64, 1e6, 9e6), curve(LENET, 32, 1e6, 1.9e6),
                                curve(LENET, 32, 1e6, 8e6, connections="32"), curve(LENET, 32, 1e6, 7e6, "BF16")])
        self.assertIn("| images/s with the best m, 8 | 2,000,000 | 1,900,000, spread 1.0 % | **missed** |", table)
        self.assertIn("With CUDA_DEVICE_MAX_CONNECTIONS=32, images/s by learners: 1: 1,000,000, 8: 8,000,000.", table)
        self.assertIn("In BF16, images/s by learners: 1: 1,000,000, 8: 7,000,000.", table)

    def test_points_measured_one_by_one_make_a_curve(self):
        def lone(learners, images_per_second):
            return {**curve(LENET, 32, 1, 1), "curve": [point(learners, images_per_second)], "best_learners": learners}
        table = self.summarize([lone(8, 2e6), lone(1, 1e6), lone(16, 2.4e6), lone(8, 2.2e6)])
        self.assertIn("| lenet-digits | 32 | 16 | +140 % | +78 % | 1: 1,000,000, 8: 2,200,000, 16: 2,400,000 |", table)
        table = self.summarize([lone(8, 2e6)])
        self.assertIn("| lenet-digits | 32 | 8 | one learner was not measured | +78 % | 8: 2,000,000 |", table)

    def test_a_step_that_ran_again_counts_once(self):
        table = self.summarize([{**curve("a.txtpb", 32, 1e6, 2e6), "step": "one"},
                                {**curve("b.txtpb", 32, 1e6, 3e6), "step": "other"},
                                {**curve("a.txtpb", 64, 1e6, 4e6), "step": "one"}])
        self.assertNotIn("| a | 32 |", table)
        self.assertIn("| b | 32 | 8 | +200 % |", table)
        self.assertIn("| a | 64 | 8 | +300 % |", table)

    def test_timed_kernels_stand_beside_the_rules_and_only_they_make_curves(self):
        fixed = {**point(8, 1e6), "team": 8, "kernels": "FIXED"}
        timed = {**point(8, 1.5e6), "team": 8, "kernels": "TIMED"}
        alone = {**point(8, 5e5), "team": 1, "kernels": "FIXED"}
        table = self.summarize([{**curve(LENET, 32, 1, 1), "curve": [alone, fixed, timed]}])
        self.assertIn("FP32: 8 learners in teams of 8, kernels TIMED |  | 1,500,000 images/s, 1.50 times as many as with FIXED",
                      table)
        self.assertIn("| LeNet b = 32, images/s | 2,000,000 | not measured |", table)

    def test_times_to_accuracy_by_contender_with_the_range_over_seeds(self):
        def run(seed, seconds, contender, **more):
            return {"question": "time to accuracy", "job": "configs/a.txtpb", "seed": seed, "contender": contender,
                    "mini_batch": 512, "target": 0.91, "seconds_to_target": seconds, "best_accuracy": 0.9 + seed / 100,
                    "epochs_to_target": 30 + seed if seconds else None, **more}
        ours = {"learners": 8, "team": 8, "precision": "FP32"}
        table = self.summarize([run(1, 70, "Arbalest", **ours), run(2, 60, "Arbalest", **ours), run(3, 90, "Arbalest", **ours),
                                run(1, 150, "PyTorch, CUDA graph"), run(2, None, "PyTorch, CUDA graph")])
        self.assertIn("| a | Arbalest, 8 learners in teams of 8, FP32 | 512 | 91.00 % | 3 of 3 | 70.0 (60.0 to 90.0) | 32 | "
                      "91.00 to 93.00 % |", table)
        self.assertIn("| a | PyTorch, CUDA graph | 512 | 91.00 % | 1 of 2 | 150.0 (150.0 to 150.0) | 31 | 91.00 to 92.00 % |",
                      table)

    def test_failed_steps_stand_below_the_table(self):
        self.assertIn("Failed: learners_8: exit code 10: no\n", self.summarize([], "learners_8\tfailed\t3\texit code 10: no\n"))

    def test_what_was_not_measured_is_said(self):
        table = self.summarize([], "operators\tfailed\t3\texit code 10\n")
        self.assertIn("| LeNet b = 32, images/s | 2,000,000 | not measured |", table)
        self.assertIn("| failed: exit code 10 | **missed** |", table)
        self.assertIn("| one learner's step over its launch floor | < 2 | not measured |", table)


if __name__ == "__main__":
    unittest.main()
