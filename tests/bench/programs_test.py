"""Tests that the C++ programs in bench/ handle invalid input like arbalest, and the all-reduce of two processes."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

from tiny_data import ROOT

PROGRAMS = pathlib.Path(os.environ["ARBALEST_BENCHES"])


class BadInput(unittest.TestCase):
    def check(self, exit_code, message, program, *words, cwd=ROOT):
        done = subprocess.run([PROGRAMS / program, *words], cwd=cwd, capture_output=True, text=True)
        self.assertEqual(done.returncode, exit_code, done.stderr)
        self.assertIn(message, done.stderr)
        self.assertEqual(done.stdout, "")

    def test_a_job_file_that_is_not_there(self):
        with tempfile.TemporaryDirectory() as folder:  # a folder without the repository's jobs
            self.check(3, "error: configs/lenet-digits.txtpb: ", "overhead_bench", cwd=folder)
            for program in ("input_bench", "scaling_bench", "tuning_bench"):
                self.check(3, "error: none.txtpb: ", program, "none.txtpb", cwd=folder)
            self.check(3, "error: none.txtpb: ", "setting_bench", "none.txtpb", "--trace", cwd=folder)

    def test_data_that_are_not_there(self):
        with tempfile.TemporaryDirectory() as folder:
            missing = f"error: cifar10: dataset is missing: {folder}/cifar-10"
            self.check(4, missing, "overhead_bench", "--model", "resnet20", "--data-root", folder)
            self.check(4, missing, "input_bench", "configs/resnet20-cifar10.txtpb", "--data-root", folder)

    def test_the_all_reduce_needs_processes(self):
        if not (PROGRAMS / "all_reduce_bench").exists():
            self.skipTest("built without MPI")
        self.check(2, "mpirun", "all_reduce_bench")
        launcher = ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", "2"]
        allowed = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        command = [*launcher, PROGRAMS / "all_reduce_bench", "--elements", "1000", "--turns", "3"]
        done = subprocess.run(command, env=allowed, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        row = json.loads(done.stdout)
        self.assertEqual([one["name"] for one in row["results"]],
                         ["canonical", "MPI_Iallreduce, polled", "MPI_Allreduce, blocking", "memcpy"])
        self.assertEqual(row["results"][2]["speed_over_blocking"]["median"], 1.0)

    def test_an_option_out_of_its_range(self):
        self.check(2, "--turns", "overhead_bench", "--turns", "1")
        self.check(2, "--change or --trace", "setting_bench")
        self.check(2, "--nonsense", "averaging_bench", "--nonsense")


if __name__ == "__main__":
    unittest.main()
