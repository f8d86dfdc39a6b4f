"""Tests bench/tune_runs.py with a made-up program: what it records, and that it runs only what the file lacks."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "bench" / "tune_runs.py"

POINTS = [{"learners": 1, "images_per_second": 100.0}, {"learners": 2, "images_per_second": 290.0},
          {"learners": [1, 2], "images_per_second": 7.0}]
BEFORE = {"chosen": [2], "points": POINTS[:2], "sweep": POINTS, "regret": 0.0}
AFTER = {**BEFORE, "gain": {"ratio": 1.2, "error": 0.02, "by": "processor_time"}, "regret_error": 0.01,
         "machine": {"is_known": True, "is_quiet": False, "lost": 0.25, "disturbed_windows": 40}}


class Runs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.results = self.folder / "runs.jsonl"
        for name, answer in (("before", BEFORE), ("after", AFTER)):
            program = self.folder / name
            program.write_text(f"#!/bin/sh\necho \"$@\" >> '{self.folder}/calls'\ncat <<'END'\n{json.dumps(answer)}\nEND\n")
            program.chmod(0o755)

    def run_script(self, *words):
        programs = [f"--program={name}={self.folder / name}" for name in ("before", "after")]
        return subprocess.run([sys.executable, SCRIPT, *programs, "--results", self.results, "--sweep", *words],
                              capture_output=True, text=True)

    def test_what_the_answers_claim_is_recorded_in_turns_and_only_once(self):
        first = self.run_script("--runs", "1", "--neighbors", "0,1")
        self.assertEqual(first.returncode, 0, first.stderr)
        records = [json.loads(line) for line in self.results.read_text().splitlines()]
        self.assertEqual([(of["program"], of["neighbors"]) for of in records],
                         [("before", 0), ("after", 0), ("before", 1), ("after", 1)])
        self.assertAlmostEqual(records[0]["claimed_gain"], 2.9)
        self.assertEqual(records[0]["claimed_by"], "examples_per_second")
        self.assertEqual(records[1]["claimed_gain"], 1.2)
        self.assertAlmostEqual(records[1]["clock_gain_of_2"], 2.9)
        self.assertEqual((records[1]["is_quiet"], records[1]["lost"]), (False, 0.25))
        calls = (self.folder / "calls").read_text().splitlines()
        self.assertTrue(all("--no-cache --json --sweep" in call for call in calls))
        again = self.run_script("--runs", "2")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(len(self.results.read_text().splitlines()), 6)
        row = next(line for line in again.stdout.splitlines() if line.startswith("| after |") and "| 0 | 2 |" in line)
        self.assertIn("| 1.20, 1.20 | processor_time | 2, 2 | 0.0, 0.0 % | 0 of 2 | 25.0 % |", row)

    def test_a_program_that_fails_ends_the_series_and_keeps_what_is_there(self):
        (self.folder / "after").write_text("#!/bin/sh\necho broken >&2\nexit 3\n")
        done = self.run_script("--runs", "1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("exit code 3", done.stderr)
        self.assertEqual(len(self.results.read_text().splitlines()), 1)


if __name__ == "__main__":
    unittest.main()
