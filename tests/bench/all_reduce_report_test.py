"""Tests the report of bench/all_reduce on made-up rows, and that the committed page has the tables of its rows."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml

from launching import environment, launched
from report_case import ReportCase
from tiny_data import ROOT

SVG = "{http://www.w3.org/2000/svg}"
REPORT = str(ROOT / "bench/all_reduce/report.py")
RESULTS = ROOT / "bench" / "results"
BENCH = pathlib.Path(os.environ["ARBALEST_BENCHES"]) / "all_reduce_bench"
METHODS = ["canonical", "ring", "halving-doubling", "binomial tree", "MPI_Iallreduce, polled", "MPI_Allreduce, blocking"]


def made_up_rows(processes):
    machine = {"processor": "made up", "usable_cores": 2, "load_average": 0.5}
    messages = [{"bytes": 4, "seconds": 10e-6, "predicted_seconds": 11e-6},
                {"bytes": 4000, "seconds": 20e-6, "predicted_seconds": 16e-6}]
    rows = [{"machine": machine, "processes": processes, "messages": messages, "latency_seconds": 11e-6,
             "seconds_per_byte": 0.5e-9, "seconds_per_added_byte": 0.1e-9}]
    for elements in (100_000, 1000):
        ring = {"name": "ring", "seconds": {"median": 9.0}, "fastest_seconds": elements * 1e-9, "predicted_seconds": elements * 2e-9}
        library = {"name": "MPI", "seconds": {"median": 9.0}, "fastest_seconds": 1e-5}
        copy = {"name": "memcpy", "seconds": {"median": 9.0}, "fastest_seconds": 1e-9}
        skipped = {"name": "NCCL", "skipped": "there is no GPU"}
        rows.append({"machine": machine, "processes": processes, "elements": elements,
                     "results": [ring, library, copy, skipped]})
    return rows


class Report(ReportCase):
    script = REPORT

    def test_tables(self):
        text = self.report(made_up_rows(2) + made_up_rows(4))
        self.assertIn("Measured on made up, 2 cores. Load average: 0.5 to 0.5.", text)
        self.assertIn("NCCL is skipped: there is no GPU.", text)
        self.assertIn("| 2 | 11.0 | 2.00 | 10.00 | 15 % | -20 % | +10 % |", text)
        self.assertIn("4 processes: measured (predicted)\n\n| floats | ring | MPI | fastest |", text)
        self.assertIn("| 1,000 | 1.0 (2.0) | 10.0 | ring |\n| 100,000 | 100 (200) | 10.0 | MPI |", text)
        self.assertIn("| 4 | ring | 100 % | +100 % | +100 % |", text)
        self.assertNotIn("| 4 | MPI |", text)  # nobody predicts it

    def test_a_chart_for_each_number_of_processes(self):
        self.report(made_up_rows(2) + made_up_rows(3), "--figures", str(self.folder))
        for processes in (2, 3):
            chart = xml.parse(self.folder / f"all-reduce-{processes}.svg")
            self.assertIn(f"{processes} processes", chart.find(f"{SVG}title").text)
            self.assertEqual(len(list(chart.iter(f"{SVG}circle"))), 2 * 3)  # two dots and one in the legend
            curves = [shape for shape in chart.iter(f"{SVG}path") if shape.get("class").startswith("curve")]
            self.assertEqual(len(curves), 2)  # the prediction and its sample in the legend

    def test_missing_rows(self):
        rows = made_up_rows(2)
        self.assertIn("2 processes have 0 rows of messages", self.report(rows[1:], exit_code=2))
        self.assertIn("and 0 of sums", self.report(rows[:1], exit_code=2))
        self.assertIn("there are no rows", self.report([], exit_code=2))
        page = self.folder / "page.md"
        page.write_text("# Title\n", encoding="utf-8")
        self.assertIn('no heading "## Tables"', self.report(rows, "--page", str(page), exit_code=2))


class Program(unittest.TestCase):
    def test_the_program_measures_all_methods_and_predicts_ours(self):
        if not shutil.which("mpirun") or not BENCH.exists():
            self.skipTest("needs Open MPI")
        with tempfile.TemporaryDirectory() as name:
            rows = pathlib.Path(name, "rows.jsonl")
            for processes in (2, 3):
                command = launched([str(BENCH), "--turns", "3", "--elements", "1", "5000"], processes)
                variables = {**environment(), "CUDA_VISIBLE_DEVICES": ""}
                done = subprocess.run(command, capture_output=True, text=True, check=True, env=variables)
                with rows.open("a", encoding="utf-8") as file:
                    file.write(done.stdout)
            done = subprocess.run([sys.executable, REPORT, str(rows)], capture_output=True, text=True, check=True)
        self.assertIn(f"| floats | {' | '.join(METHODS)} | fastest |", done.stdout)
        self.assertIn("NCCL is skipped: NCCL sums over one GPU for each process, but rank 0", done.stdout)
        for method in METHODS[:4]:
            self.assertIn(f"| 3 | {method} |", done.stdout)


class Committed(unittest.TestCase):
    def test_the_page_has_the_tables_of_its_rows(self):
        pages = list(RESULTS.glob("*-all-reduce-algorithms.md"))
        self.assertTrue(pages)
        for page in pages:
            rows = RESULTS / f"all-reduce-algorithms-{page.name[:10]}.jsonl"
            done = subprocess.run([sys.executable, REPORT, str(rows)], capture_output=True, text=True, check=True)
            self.assertEqual(page.read_text(encoding="utf-8").partition("## Tables\n")[2].strip(), done.stdout.strip())


if __name__ == "__main__":
    unittest.main()
