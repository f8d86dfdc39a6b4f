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
CAN_COUNT = HAS_MPI and shutil.which("ompi_info") is not None and "pml: monitoring" in subprocess.run(
    ["ompi_info"], capture_output=True, text=True).stdout
MOST_OTHERS = 1.05  # counted bytes over those of the formula: biases, padding, and decisions of the processes
CLASSES = split_layers.CLASSES
UNITS = 16  # fewer would be padded to 16 by the layout of the weights, and gradients are sent as they lie
COLUMNS = 8 * 12 * 12  # of pool1: digits have 28 x 28 pixels


class Measurement(unittest.TestCase):
    def measure(self, *words, program=PROGRAM):
        command = [sys.executable, SCRIPT, "--program", program, "--processes", "2" if HAS_MPI else "1",
                   "--widths", str(UNITS), "--batches", "128", "--examples", "1024", "--turns", "2",
                   "--links", "2GB/s,50us", "--flops", "50GFLOP/s", *words]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)

    def test_both_ways_train_and_the_row_has_what_a_device_sends(self):
        done = self.measure()
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([(row["width"], row["batch_size"], len(row["turns"])) for row in rows], [(UNITS, 128, 2)])
        row = rows[0]
        self.assertTrue(row["commit"].startswith("arbalest "))
        ratios = [turn["split"] / turn["data_parallel"] for turn in row["turns"]]
        self.assertGreater(min(ratios), 0.0)
        self.assertAlmostEqual(row["split_over_data_parallel"]["median"], sum(ratios) / 2)
        low, high = row["split_over_data_parallel"]["quartiles"]
        self.assertAlmostEqual(high - low, (max(ratios) - min(ratios)) / 2)
        # Gradients of both dense layers; inputs of the first and outputs of the second one, and their gradients.
        self.assertEqual(row["data_parallel"]["bytes"], 4 * (COLUMNS * UNITS + UNITS + UNITS * UNITS + UNITS))
        self.assertEqual(row["split"]["bytes"], 2 * 4 * 128 * (COLUMNS + UNITS))
        others = 4 * (8 * 25 + 8 + CLASSES * UNITS + CLASSES)  # gradients of the convolution and of the logits
        for way in ("data_parallel", "split"):
            self.assertEqual(row["formula_bytes"][way], row[way]["bytes"] + others)
        self.assertLess(row["predicted_ratio"], 1.0)
        self.assertIn(f"{UNITS} units, 128 examples a device: split", done.stderr)

    @unittest.skipUnless(CAN_COUNT, "needs two processes, and Open MPI's monitoring")
    def test_open_mpi_counts_the_bytes_of_the_formula(self):
        done = self.measure("--turns", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        with tempfile.NamedTemporaryFile("w+", suffix=".jsonl") as file:
            file.write(done.stdout)
            file.flush()
            counting = [sys.executable, SCRIPT, "--program", PROGRAM, "--count", file.name]
            done = subprocess.run(counting, cwd=ROOT, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            row = json.loads(pathlib.Path(file.name).read_text())
        for way in ("data_parallel", "split"):
            part = row["counted_bytes"][way] / row["formula_bytes"][way]
            self.assertGreaterEqual(part, 1.0, way)
            self.assertLess(part, MOST_OTHERS, way)

    def test_wrong_usage(self):
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
            file.write(json.dumps({"processes": 1}) + "\n")
            file.flush()
            done = subprocess.run([sys.executable, SCRIPT, "--count", file.name], cwd=ROOT, capture_output=True,
                                  text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("a row of one process, which sends no messages", done.stderr)
        done = subprocess.run([sys.executable, SCRIPT], cwd=ROOT, capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("needs --links and --flops", done.stderr)

    def test_a_run_that_fails_ends_the_measurement(self):
        done = self.measure("--devices", "cpu:0", "nonsense")
        self.assertEqual(done.returncode, 1)
        self.assertIn("nonsense", done.stderr)
        self.assertEqual(done.stdout, "")


class Prediction(unittest.TestCase):
    def ratio(self, width, batch, links, flops="50GFLOP/s"):
        options = argparse.Namespace(program=PROGRAM, links=links, flops=flops, devices=["cpu:0", "cpu:1"], epochs=1)
        with tempfile.NamedTemporaryFile("w", suffix=".txtpb") as job:
            job.write(split_layers.job_text(options, width, batch, "data_parallel", "images"))
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


class Table(unittest.TestCase):
    def test_a_line_has_medians_quartiles_and_bytes(self):
        spread = {"median": 1.5, "quartiles": [1.25, 1.75]}
        row = {"width": 2048, "batch_size": 16, "turns": [{}, {}, {}], "split_over_data_parallel": spread,
               "split_images_per_second": {"median": 3000.4, "quartiles": [2900.0, 3100.0]},
               "data_parallel_images_per_second": {"median": 2000.0, "quartiles": [1900.0, 2100.0]},
               "predicted_ratio": 1.361, "formula_bytes": {"data_parallel": 26313000, "split": 491000}}
        counted = {**row, "counted_bytes": {"data_parallel": 26400000.6, "split": 500000.0}}
        lines = split_layers.table_of([row, counted]).splitlines()
        cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
        self.assertEqual(cells[2], ["2,048", "16", "3", "3,000 (2,900 to 3,100)", "2,000 (1,900 to 2,100)",
                                    "1.50 (1.25 to 1.75)", "1.36", "26,313,000", "-", "491,000", "-"])
        self.assertEqual(cells[3][7:], ["26,313,000", "26,400,001", "491,000", "500,000"])
        self.assertEqual(len(cells[0]), len(cells[2]))


if __name__ == "__main__":
    unittest.main()
