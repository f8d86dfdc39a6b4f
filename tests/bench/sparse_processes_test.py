"""Tests bench/sparse_processes.py: what it makes of an objective's course, and a tiny measurement."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

import sparse_processes
from tiny_data import ROOT

SCRIPT = ROOT / "bench" / "sparse_processes.py"
BUILD = pathlib.Path(os.environ["ARBALEST_PROGRAM"]).parent
HAS_MPI = shutil.which("mpirun") is not None and (BUILD / "libarbalest_mpi.so").exists()


class Course(unittest.TestCase):
    EPOCHS = [{"epoch": number + 1, "objective": objective, "training_seconds": seconds}
              for number, (objective, seconds) in enumerate([(0.5, 1.0), (0.3, 2.0), (0.2, 4.0)])]

    def test_it_ends_with_the_first_epoch_that_reaches_the_goal(self):
        self.assertEqual(sparse_processes.course_to(0.3, self.EPOCHS),
                         ({"has_reached": True, "epochs": 2, "objective": 0.3}, 3.0))

    def test_a_goal_that_is_not_reached_counts_all_epochs(self):
        self.assertEqual(sparse_processes.course_to(0.1, self.EPOCHS),
                         ({"has_reached": False, "epochs": 3, "objective": 0.2}, 7.0))


@unittest.skipUnless((BUILD / "bench" / "sparse_bench").exists(), "the programs of bench/ are not built")
class Measurement(unittest.TestCase):
    def measure(self, *words, exit_code=0):
        command = [sys.executable, SCRIPT, "--build", BUILD, "--rows", "200", "--features", "50", "--entries", "5",
                   "--blocks", "4", "--delays", "0", "1", "--learners", "1", "--epochs", "3", "--turns", "1", *words]
        done = subprocess.run([str(word) for word in command], cwd=ROOT, capture_output=True, text=True)
        self.assertEqual(done.returncode, exit_code, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()], done.stderr

    def test_a_row_for_each_setting_with_the_epochs_to_the_goal(self):
        processes = ["1", "2"] if HAS_MPI else ["1"]
        rows, text = self.measure("--processes", *processes, "--reference", "0.001")
        self.assertEqual([(row["max_delay"], row["processes"], row["learners"]) for row in rows],
                         [(delay, int(count), 1) for delay in (0, 1) for count in processes])
        for row in rows:
            self.assertFalse(row["has_reached"])
            self.assertEqual(row["epochs"], 3)
            self.assertAlmostEqual(row["above_reference"], row["objective"] / 0.001 - 1)
            self.assertEqual(row["median_seconds"], row["seconds"][0])
            self.assertGreater(row["seconds"][0], 0.0)
            self.assertTrue(row["commit"].startswith("arbalest "))
        self.assertIn("max_delay 1, 1 processes, 1 learners each: 3 epochs", text)
        reached, _ = self.measure("--processes", "1", "--reference", rows[0]["objective"])
        self.assertTrue(reached[0]["has_reached"])
        self.assertEqual(reached[0]["objective"], rows[0]["objective"])  # a run without delay has the same course again

    def test_a_run_that_fails_ends_the_measurement(self):
        rows, text = self.measure("--processes", "1", "--reference", "0.1", "--l1", "-1", exit_code=1)
        self.assertEqual(rows, [])
        self.assertIn("exit code 3", text)
        self.assertIn("l1", text)


if __name__ == "__main__":
    unittest.main()
