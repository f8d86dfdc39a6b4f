"""Runs tests/fuzz/run.sh and campaign.py with stand-ins for the fuzz targets: a crash fails them, and nothing is skipped."""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

FUZZ = pathlib.Path(__file__).resolve().parents[1] / "fuzz"
TARGETS = sorted(path.name[: -len("_fuzz.cc")] for path in FUZZ.glob("*_fuzz.cc"))
GOOD = "#!/bin/sh\necho \"$@\" >\"$0.arguments\"\necho 'stat::number_of_executed_units: 17'\n"
CRASH = "#!/bin/sh\necho 'ERROR: AddressSanitizer: heap-buffer-overflow'\nexit 77\n"
SILENT = "#!/bin/sh\nexit 0\n"


class FuzzScripts(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.build = pathlib.Path(self.directory.name)
        (self.build / "tests/fuzz").mkdir(parents=True)
        for target in TARGETS:
            self.write(target, GOOD)

    def write(self, target, text):
        path = self.build / f"tests/fuzz/fuzz_{target}"
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)

    def run_script(self, *arguments, script="run.sh"):
        command = [str(FUZZ / script), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, env={"PATH": os.environ["PATH"]})

    def test_all_targets_run_with_a_fixed_seed(self):
        done = self.run_script(str(self.build), "default")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(re.findall(r"fuzz: (\w+): 17 executions", done.stdout)), TARGETS)
        for target in TARGETS:
            self.assertIn("-seed=1 ", (self.build / f"tests/fuzz/fuzz_{target}.arguments").read_text(encoding="utf-8"))

    def test_a_crash_of_any_target_fails_the_run(self):
        for target in TARGETS:
            self.write(target, CRASH)
            done = self.run_script(str(self.build), "10")
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"fuzz: {target} found something", done.stderr)
            self.assertIn("heap-buffer-overflow", done.stderr)
            self.write(target, GOOD)

    def test_a_target_that_is_missing_or_says_nothing_fails_the_run(self):
        self.write("job", SILENT)
        self.assertEqual(self.run_script(str(self.build), "10").returncode, 1)
        (self.build / "tests/fuzz/fuzz_job").unlink()
        done = self.run_script(str(self.build), "10")
        self.assertEqual(done.returncode, 1)
        self.assertIn("there is no", done.stderr)

    def test_a_campaign_goes_on_after_its_last_line_and_ends_at_its_number(self):
        results = self.build / "results.jsonl"
        arguments = ["--build", str(self.build), "--results", str(results), "--targets", "job", "idx", "--executions"]
        self.assertEqual(self.run_script(*arguments, "30", script="campaign.py").returncode, 0)
        self.assertEqual(len(results.read_text(encoding="utf-8").splitlines()), 4)  # 17 and 17, twice
        done = self.run_script(*arguments, "40", script="campaign.py")
        self.assertIn("job: 51 executions, no finding", done.stdout)
        rows = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
        self.assertEqual(len({row["seed"] for row in rows}), 6)
        self.write("idx", CRASH)
        self.assertEqual(self.run_script(*arguments, "1000", script="campaign.py").returncode, 1)
        last = json.loads(results.read_text(encoding="utf-8").splitlines()[-1])
        self.assertTrue(last["finding"])


if __name__ == "__main__":
    unittest.main()
