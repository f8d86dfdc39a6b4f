"""Tests bench/all_schemes.py: what it makes of recorded runs, and that it trains only what the file lacks."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "bench" / "all_schemes.py"
sys.path.insert(0, str(ROOT / "bench"))
import all_schemes  # noqa: E402

EPOCHS = 4


def options(**changed):
    values = {"job": "configs/lenet-mnist.txtpb", "learners": 4, "epochs": EPOCHS, "target": 0.985, "settings": [],
              "rate": (0.01, 32), **changed}
    return type("Options", (), values)


def row(scheme, seed, accuracy, rates, staleness=None, diverged=False, **others):
    return {**all_schemes.key_of(scheme, seed, options()), "accuracy": accuracy, "images_per_second": rates,
            "learning_rate": 0.02, "staleness": staleness or {}, "diverged": diverged, "train_seconds": 1.0, **others}


ROWS = [
    row("sma", 1, [0.97, 0.986, 0.987, 0.989], [100.0, 900.0, 1000.0, 1100.0]),
    row("sma", 2, [0.96, 0.97, 0.98, 0.984], [100.0, 1200.0, 1300.0, 1400.0]),
    row("async_sgd_4", 1, [0.98, 0.984, 0.986, 0.987], [800.0, 1500.0, 1600.0, 1700.0], {"0": 10, "3": 30, "12": 10}),
    row("diloco", 1, [0.5], [700.0], diverged=True),
    row("hogwild", 1, [0.9, 0.9, 0.9, 0.9], [700.0, 700.0, 700.0, 700.0]),
    row("hogwild", 2, [0.9, 0.9, 0.9, 0.9], [100.0, 100.0, 100.0, 100.0]),
]


class Report(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.results = self.folder / "runs.jsonl"
        self.results.write_text("".join(json.dumps(each) + "\n" for each in ROWS))

    def report(self, *words):
        command = [sys.executable, SCRIPT, "--results", self.results, "--table", "--epochs", str(EPOCHS), *words]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)

    def test_the_table_has_medians_over_seeds_and_epochs_after_the_first(self):
        lines = self.report("--seeds", "1,2").stdout.splitlines()
        self.assertEqual(len(lines), 6)  # schemes without a run have no line
        cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
        self.assertEqual(cells[2], ["`sma {}`", "SQRT", "0.02", "the job's", "2", "1,150", "3, -",
                                    "98.65 (98.40 to 98.90)", "-"])
        self.assertEqual(cells[3][:5], ["`diloco { period: 100 }`", "KEEP", "0.02", "the job's", "1, 1 diverged"])
        self.assertEqual(cells[3][5:], ["-", "-", "-", "-"])
        # (10 * 0 + 30 * 3 + 10 * 12) / 50 pushes; the lower median of four accuracies first reaches the target never.
        self.assertEqual(cells[4][5:], ["1,600", "-", "98.70", "4.20, 12"])

    def test_the_table_says_which_schemes_train_without_momentum(self):
        cells = self.report("--schemes", "async_sgd_4").stdout.splitlines()[2].split(" | ")
        self.assertEqual(cells[3], "0")

    def test_a_setting_of_the_user_takes_the_place_of_the_scheme_s_own(self):
        changed = row("async_sgd_4", 1, [0.9, 0.9, 0.9, 0.9], [1.0, 2.0])
        place = changed["settings"].index("learning_rate.with_learners=KEEP")
        changed["settings"][place] = "learning_rate.with_learners=SQRT"
        self.results.write_text(json.dumps(changed) + "\n")
        done = self.report("--schemes", "async_sgd_4", "--set", "learning_rate.with_learners=SQRT")
        self.assertEqual(done.stdout.splitlines()[2].split(" | ")[1], "SQRT")
        self.assertEqual(self.report("--schemes", "async_sgd_4").returncode, 1)

    def test_images_per_second_may_come_from_other_runs_of_the_scheme(self):
        quiet = self.folder / "quiet.jsonl"
        rows = [{**row("hogwild", 3, [0.8, 0.8], [1.0, 5000.0]), "settings": ["of another rate"]},
                row("sma", 3, [0.8, 0.8], [1.0, 6000.0]),
                {**row("hogwild", 3, [0.8, 0.8], [1.0, 7000.0]), "learners": 2}]
        quiet.write_text("".join(json.dumps(each) + "\n" for each in rows))
        cells = self.report("--schemes", "hogwild", "--seeds", "1,2", "--speeds", quiet).stdout.splitlines()[2]
        self.assertEqual(cells.split(" | ")[4:8], ["2", "5,000", "-, -", "90.00 (90.00 to 90.00)"])
        cells = self.report("--schemes", "hogwild", "--seeds", "1,2").stdout.splitlines()[2]
        self.assertEqual(cells.split(" | ")[4:6], ["2", "400"])

    def test_the_chart_has_a_row_for_each_scheme_and_a_column_for_each_figure(self):
        chart = self.folder / "chart.svg"
        self.assertEqual(self.report("--seeds", "1,2", "--chart", chart).returncode, 0)
        texts = [text.text for text in xml.etree.ElementTree.parse(chart).iter("{http://www.w3.org/2000/svg}text")]
        for text in ("sma", "async_sgd_4", "diloco", "images/s", "epochs to 98.5 %", "accuracy, %", "mean staleness",
                     "1,150", "98.65", "4.20"):
            self.assertIn(text, texts)
        self.assertEqual(texts.count("-"), 8)  # of sma 1, of async_sgd_4 1, of hogwild 2, of diloco all

    def test_runs_of_other_settings_do_not_count(self):
        done = self.report("--learners", "2")
        self.assertEqual(done.returncode, 1)
        self.assertIn("has no run of this job", done.stderr)

    def test_wrong_usage(self):
        self.assertIn("unknown schemes: smo; there are sma", self.report("--schemes", "sma,smo").stderr)
        self.assertIn("--epochs must be at least 2", self.report("--epochs", "1").stderr)


class Training(unittest.TestCase):
    def test_it_trains_what_the_file_lacks_and_nothing_twice(self):
        with tempfile.TemporaryDirectory() as folder:
            results = pathlib.Path(folder) / "runs.jsonl"
            command = [sys.executable, SCRIPT, "--program", os.environ["ARBALEST_PROGRAM"], "--results", results,
                       "--learners", "2", "--job", "configs/logistic-digits.txtpb", "--epochs", "2", "--target", "0.5"]
            first = subprocess.run([*command, "--schemes", "s_sgd,async_sgd_unbounded"], cwd=ROOT, capture_output=True,
                                   text=True)
            self.assertEqual(first.returncode, 0, first.stderr)
            rows = [json.loads(line) for line in results.read_text().splitlines()]
            self.assertEqual([each["scheme"] for each in rows], ["s_sgd", "async_sgd_unbounded"])
            self.assertEqual(rows[0]["staleness"], {})
            self.assertGreater(sum(rows[1]["staleness"].values()), 0)
            self.assertEqual(len(rows[1]["accuracy"]), 2)
            self.assertIn("optimizer.sgd.momentum=0", rows[1]["settings"])
            self.assertTrue(rows[1]["commit"].startswith("arbalest "))
            again = subprocess.run([*command, "--schemes", "s_sgd,async_sgd_unbounded"], cwd=ROOT, capture_output=True,
                                   text=True)
            self.assertEqual(again.stdout, first.stdout)
            self.assertEqual(len(results.read_text().splitlines()), 2)
            self.check_that_it_chooses_on_a_validation_set([*command, "--schemes", "s_sgd"], results)
            failed = subprocess.run([*command, "--schemes", "s_sgd", "--set", "nonsense=1"], cwd=ROOT,
                                    capture_output=True, text=True)
            self.assertEqual(failed.returncode, 1)
            self.assertIn("exit 2", failed.stderr)

    def check_that_it_chooses_on_a_validation_set(self, command, results):
        count = 70  # of the accuracies on 5,000 test digits only multiples of 0.1 are multiples of 1 / 70
        done = subprocess.run([*command, "--set", f"data.validation.fraction={count / 20000}"], cwd=ROOT,
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        row = json.loads(results.read_text().splitlines()[-1])
        for accuracy in row["accuracy"]:
            self.assertGreater(accuracy, 0.0)
            self.assertAlmostEqual(accuracy * count, round(accuracy * count), places=2)


if __name__ == "__main__":
    unittest.main()
