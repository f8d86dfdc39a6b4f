"""Tests bench/split_layers.py: a tiny measurement has the rows of its page, and the prediction knows the messages."""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import split_layers
from tiny_data import ROOT

SCRIPT = ROOT / "bench" / "split_layers.py"
PROGRAM = pathlib.Path(os.environ["ARBALEST_PROGRAM"])
HAS_MPI = shutil.which("mpirun") is not None and (PROGRAM.parent / "libarbalest_mpi.so").exists()
COLUMNS = 8 * 12 * 12  # of pool1: digits have 28 x 28 pixels


class Measurement(unittest.TestCase):
    def measure(self, *words, program=PROGRAM):
        command = [sys.executable, SCRIPT, "--program", program, "--processes", "2" if HAS_MPI else "1", "--widths", "8",
                   "--batches", "128", "--turns", "1", "--links", "2GB/s,50us", "--flops", "50GFLOP/s", *words]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)

    def test_both_ways_train_and_the_row_has_what_a_device_sends(self):
        done = self.measure()
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([(row["width"], row["batch_size"], row["turns"]) for row in rows], [(8, 128, 1)])
        row = rows[0]
        split, data = row["split_images_per_second"], row["data_parallel_images_per_second"]
        self.assertGreater(min(split, data), 0.0)
        self.assertEqual(row["split_over_data_parallel"], split / data)
        # Gradients of both dense layers; inputs of the first and outputs of the second one, and their gradients.
        self.assertEqual(row["data_parallel"]["bytes"], 4 * (COLUMNS * 8 + 8 + 8 * 8 + 8))
        self.assertEqual(row["split"]["bytes"], 2 * 4 * 128 * (COLUMNS + 8))
        self.assertLess(row["predicted_ratio"], 1.0)
        self.assertIn("8 units, 128 examples a device: split", done.stderr)

    def test_a_run_that_fails_ends_the_measurement(self):
        done = self.measure("--devices", "cpu:0", "nonsense")
        self.assertEqual(done.returncode, 1)
        self.assertIn("nonsense", done.stderr)
        self.assertEqual(done.stdout, "")


class Prediction(unittest.TestCase):
    def ratio(self, width, batch, links, flops="50GFLOP/s"):
        options = argparse.Namespace(program=PROGRAM, links=links, flops=flops, devices=["cpu:0", "cpu:1"], epochs=1)
        with tempfile.NamedTemporaryFile("w", suffix=".txtpb") as job:
            job.write(split_layers.job_text(options, width, batch, False))
            job.flush()
            return split_layers.predict(options, job.name)["predicted_ratio"]

    def test_wide_layers_and_few_examples_are_for_splitting(self):
        slow = "100MB/s,50us"
        self.assertGreater(self.ratio(1024, 16, slow), 1.0)
        self.assertLess(self.ratio(64, 128, slow), 1.0)
        # A slow device hides all messages of data-parallel training, and none of the split model.
        self.assertLess(self.ratio(1024, 16, slow, flops="10MFLOP/s"), 1.0)

    def test_a_link_without_cost_leaves_the_time_of_the_layers(self):
        self.assertAlmostEqual(self.ratio(64, 128, "1000000GB/s,0us"), 1.0, places=3)


if __name__ == "__main__":
    unittest.main()
