"""Installs a wheel into a fresh virtual environment and uses it: wheel_test.py WHEEL [EXTRA]

EXTRA is `cuda` for a wheel that was built with ARBALEST_CUDA=ON. pip then installs CUDA's libraries, too.
"""

import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import venv
import zipfile

WHEEL = pathlib.Path(sys.argv.pop(1)).resolve() if __name__ == "__main__" else None
EXTRA = sys.argv.pop(1) if sys.argv[1:2] == ["cuda"] else None
MOST_BYTES = 40_000_000
JOB = 'arbalest.configs() / "logistic-digits.txtpb"'
ONE_EPOCH = '{"devices": "cpu", "training.max_epochs": 1, "training.target_accuracy": 1.0}'


class Environment:
    def __init__(self):
        self.directory = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.directory.name)
        venv.create(self.root / "venv", with_pip=True)
        self.python = self.root / "venv" / "bin" / "python"
        package = f"{WHEEL}[{EXTRA}]" if EXTRA else WHEEL
        subprocess.run([self.python, "-m", "pip", "install", "--quiet", package], check=True)

    def run(self, text):
        """Runs a script that begins with `import arbalest`, in a folder of its own."""
        return subprocess.run(
            [self.python, "-c", "import arbalest\n" + text], capture_output=True, text=True, cwd=self.root
        )


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.environment = Environment()

    @classmethod
    def tearDownClass(cls):
        cls.environment.directory.cleanup()

    def output(self, text):
        done = self.environment.run(text)
        self.assertEqual(0, done.returncode, done.stderr)
        return done.stdout.split()

    def long_training(self, run, *, before="", progress=False):
        """Starts a Python process that trains for two minutes at most, and returns it after its first epoch."""
        text = (
            f"import arbalest\n{before}\n"
            f'arbalest.train({JOB}, "runs/{run}", {{"devices": "cpu", "training.max_epochs": 100000,'
            f' "training.max_minutes": 2, "training.target_accuracy": 1.0}}, progress={progress})\n'
        )
        # A shell that starts this test in the background ignores Ctrl-C, and so would what it starts.
        started = subprocess.Popen(
            [self.environment.python, "-c", text], stderr=subprocess.PIPE, text=True, cwd=self.environment.root,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        metrics = self.environment.root / "runs" / run / "metrics.jsonl"
        while started.poll() is None and not (metrics.exists() and '"epoch"' in metrics.read_text()):
            time.sleep(0.05)
        return started

    def assert_saved(self, run):
        self.assertTrue((self.environment.root / "runs" / run / "model.safetensors").is_file())

    def test_it_is_small_and_for_every_python_3(self):
        if not EXTRA:
            self.assertLess(WHEEL.stat().st_size, MOST_BYTES)
        self.assertRegex(WHEEL.name, r"^arbalest_train-[0-9.]+-py3-none-\w+_x86_64\.whl$")

    def test_no_library_is_in_it_twice(self):
        with zipfile.ZipFile(WHEEL) as archive:
            libraries = [i for i in archive.infolist() if "/tree/lib/" in i.filename and ".so" in i.filename]
        self.assertTrue(libraries)
        checksums = [library.CRC for library in libraries]
        self.assertEqual(len(set(checksums)), len(checksums))

    def test_the_program_is_on_the_path_of_the_environment(self):
        program = self.environment.root / "venv" / "bin" / "arbalest"
        done = subprocess.run([program, "devices"], capture_output=True, text=True, check=True)
        self.assertIn("name: cpu", done.stdout)
        wrong = subprocess.run([program, "train", "missing.txtpb"], capture_output=True, text=True)
        self.assertEqual(3, wrong.returncode, wrong.stderr)

    def test_train_and_load_a_run(self):
        said = self.output(
            f'run = arbalest.train({JOB}, "runs/first", {ONE_EPOCH})\n'
            'again = arbalest.load_run("runs/first")\n'
            'print(run.summary["status"], len(run.metrics["test_accuracy"]))\n'
            'print(run.metrics["test_accuracy"][-1] == again.summary["test_accuracy"])\n'
            'print(*sorted((name, *values.shape) for name, values in run.weights().items())[0])\n'
        )
        self.assertEqual(["completed", "1", "True"], said[:3])
        self.assertEqual(2, len(said[3:]), said)  # a name and one extent: the bias comes first

    def test_a_refused_job_is_an_exception_with_the_message(self):
        said = self.output(
            "try:\n"
            f'    arbalest.train({JOB}, "runs/wrong", {{"training.batch_size": 0}})\n'
            "except arbalest.ProgramError as error:\n"
            '    print(error.exit_code, "training.batch_size" in str(error))\n'
        )
        self.assertEqual(["2", "True"], said)

    def test_a_directory_without_a_run_is_an_exception(self):
        said = self.output(
            'try:\n    arbalest.load_run(".")\nexcept FileNotFoundError as error:\n    print("metrics" in str(error))\n'
        )
        self.assertEqual(["True"], said)

    def test_epochs_that_a_rollback_undid_are_left_out(self):
        rows = [{"event": "epoch", "epoch": epoch, "batch": 10 * epoch, "train_loss": loss}
                for epoch, loss in ((1, 0.5), (2, 0.4), (3, 9.0), (2, 0.3))]
        rows.insert(3, {"event": "rollback", "batch": 34, "to_batch": 15, "to_epoch": 1.5})
        run = self.environment.root / "rolled-back"
        run.mkdir()
        (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        said = self.output('print(*arbalest.load_run("rolled-back").metrics["train_loss"])')
        self.assertEqual(["0.5", "0.3"], said)

    def test_a_field_that_is_a_list_in_one_epoch_is_no_metric(self):
        rows = [{"event": "epoch", "batch": 10, "learners_per_device": 2, "test_accuracy": None},
                {"event": "epoch", "batch": 20, "learners_per_device": [2, 1], "test_accuracy": 0.5}]
        run = self.environment.root / "uneven"
        run.mkdir()
        (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        said = self.output(
            'run = arbalest.load_run("uneven")\n'
            'print(*run.metrics, *run.metrics["test_accuracy"], run.events[1]["learners_per_device"])\n'
        )
        self.assertEqual(["batch", "test_accuracy", "nan", "0.5", "[2,", "1]"], said)

    def test_an_imported_model_has_no_metrics(self):
        (self.environment.root / "imported").mkdir()
        (self.environment.root / "imported" / "job.txtpb").write_text('name: "imported"')
        said = self.output('run = arbalest.load_run("imported")\nprint(run.metrics, run.events, run.summary, run.job)')
        self.assertEqual(["{}", "[]", "None", "name:", '"imported"'], said)

    def test_an_interrupted_training_is_saved_and_can_go_on(self):
        started = self.long_training("stopped")
        started.send_signal(signal.SIGINT)
        said = started.communicate()[1]
        self.assertIn("KeyboardInterrupt", said)
        epochs = self.output(
            f'run = arbalest.train({JOB}, "runs/stopped", {{"devices": "cpu", "training.max_epochs": 100001,'
            ' "training.max_minutes": 0.001, "training.target_accuracy": 1.0}, resume="auto")\n'
            'print(sum(event["event"] == "resume" for event in run.events))\n'
        )
        self.assertEqual(["1"], epochs)

    def test_a_training_is_saved_and_ends_when_its_python_process_is_killed(self):
        for number in (signal.SIGTERM, signal.SIGKILL):
            with self.subTest(number.name):
                started = self.long_training(number.name, progress=True)
                started.send_signal(number)
                # The program writes its progress to the same pipe, so the pipe ends when both have ended.
                started.communicate(timeout=60)
                self.assertEqual(-number, started.returncode)
                self.assert_saved(number.name)

    def test_a_training_is_saved_and_ends_before_an_exception_goes_on(self):
        before = 'import signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit("told to stop"))'
        started = self.long_training("exception", before=before)
        started.send_signal(signal.SIGTERM)
        said = started.communicate(timeout=60)[1]
        self.assertEqual((1, "told to stop\n"), (started.returncode, said))
        self.assert_saved("exception")

    if EXTRA == "cuda":

        def test_it_runs_and_trains_without_a_gpu(self):
            said = self.output(
                "import os, subprocess\n"
                'os.environ["CUDA_VISIBLE_DEVICES"] = ""  # as on a machine without a GPU\n'
                f'print(arbalest.train({JOB}, "runs/no-gpu", {ONE_EPOCH}).summary["status"], flush=True)\n'
                'subprocess.run(["venv/bin/arbalest", "devices"], check=True)\n'
            )
            self.assertEqual("completed", said[0])
            self.assertIn("name: cpu", " ".join(said))


if __name__ == "__main__":
    unittest.main()
