"""Tests bench/scheme_defaults.py: what it calls good, that it goes on, and every scheme on the cheapest job."""

import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "bench" / "scheme_defaults.py"
sys.path.insert(0, str(ROOT / "bench"))
import scheme_defaults  # noqa: E402

# The demo's model on a mini-batch that makes an epoch short: 78 steps, of which the warm start of async_sgd is one epoch.
QUICK = ["--jobs", "configs/lenet-digits.txtpb", "--epochs", "2", "--set", "training.batch_size=64",
         "--set", "learning_rate.for_batch_size=64", "--set", "data.validation.fraction=0.5"]


def run(*words):
    return subprocess.run([sys.executable, SCRIPT, "--program", os.environ["ARBALEST_PROGRAM"], *words], cwd=ROOT,
                          capture_output=True, text=True)


class Verdicts(unittest.TestCase):
    def test_a_run_is_good_if_it_ends_below_guessing(self):
        self.assertEqual(scheme_defaults.verdict(0, [3.0, 2.2]), "good")
        self.assertEqual(scheme_defaults.verdict(0, [0.1, 2.4]), "bad")  # ln(10) = 2.303
        self.assertEqual(scheme_defaults.verdict(0, [0.1, None]), "bad")
        self.assertEqual(scheme_defaults.verdict(0, [math.inf, 0.1]), "bad")
        self.assertEqual(scheme_defaults.verdict(7, [0.1]), "bad")
        self.assertEqual(scheme_defaults.verdict(3, []), "refused")

    def test_the_epochs_of_a_switch_are_half_of_the_run(self):
        options = type("Options", (), {"whole": False, "epochs": 3, "settings": ["a=1"]})
        settings = scheme_defaults.settings_of("s_sgd {} switch { at_epoch: {half} swap {} }", 4, 2, options)
        self.assertIn("synchronization={s_sgd {} switch { at_epoch: 1.5 swap {} }}", settings)
        self.assertIn("learners.per_device.fixed=4", settings)
        self.assertEqual(settings[-1], "a=1")


class Defaults(unittest.TestCase):
    def test_every_scheme_trains_with_its_defaults_or_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            results = pathlib.Path(folder) / "runs.jsonl"
            done = run("--results", results, *QUICK, "--learners", "4")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            rows = [json.loads(line) for line in results.read_text().splitlines()]
            self.assertEqual(len(rows), len(scheme_defaults.SCHEMES))
            for row in rows:
                self.assertIn(row["verdict"], ("good", "refused"), row)
                if row["verdict"] == "refused":
                    self.assertRegex(row["message"], "; (set|use|begin) ", row)
            # What it has it does not train again.
            again = run("--results", results, *QUICK, "--learners", "4")
            self.assertEqual(again.stdout, done.stdout)
            self.assertEqual(len(results.read_text().splitlines()), len(rows))

    def test_what_is_refused_trains_with_the_setting_that_the_error_names(self):
        with tempfile.TemporaryDirectory() as folder:
            results = pathlib.Path(folder) / "runs.jsonl"
            schemes = ["bmuf {}", "slow_mo {}", "ea_sgd {}", "swap {}", "hogwild {}", "async_sgd {}",
                       "async_sgd { staleness: 2 }", "diloco { period: 20 momentum: 0.65 }"]
            done = run("--results", results, *QUICK, "--learners", "2", "--schemes", ",".join(schemes),
                       "--set", "learning_rate.with_learners=KEEP")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            verdicts = [json.loads(line)["verdict"] for line in results.read_text().splitlines()]
            self.assertEqual(verdicts, ["good"] * len(schemes))


if __name__ == "__main__":
    unittest.main()
