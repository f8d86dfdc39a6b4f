"""Installs a wheel into a fresh virtual environment and uses it: wheel_test.py WHEEL"""

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
MOST_BYTES = 40_000_000
JOB = 'arbalest.configs() / "logistic-digits.txtpb"'
ONE_EPOCH = '{"devices": "cpu", "training.max_epochs": 1, "training.target_accuracy": 1.0}'


class Environment:
    def __init__(self):
        self.directory = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.directory.name)
        venv.create(self.root / "venv", with_pip=True)
        self.python = self.root / "venv" / "bin" / "python"
        subprocess.run([self.python, "-m", "pip", "install", "--quiet", WHEEL], check=True)

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

    def test_it_is_small_and_for_every_python_3(self):
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

    def test_an_imported_model_has_no_metrics(self):
        (self.environment.root / "imported").mkdir()
        (self.environment.root / "imported" / "job.txtpb").write_text('name: "imported"')
        said = self.output('run = arbalest.load_run("imported")\nprint(run.metrics, run.events, run.summary, run.job)')
        self.assertEqual(["{}", "[]", "None", "name:", '"imported"'], said)

    def test_an_interrupted_training_is_saved_and_can_go_on(self):
        text = (
            "import arbalest\n"
            f'arbalest.train({JOB}, "runs/stopped", {{"devices": "cpu", "training.max_epochs": 100000,'
            ' "training.target_accuracy": 1.0})\n'
        )
        # A shell that starts this test in the background ignores Ctrl-C, and so would what it starts.
        started = subprocess.Popen(
            [self.environment.python, "-c", text], stderr=subprocess.PIPE, text=True, cwd=self.environment.root,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        metrics = self.environment.root / "runs" / "stopped" / "metrics.jsonl"
        while started.poll() is None and not (metrics.exists() and '"epoch"' in metrics.read_text()):
            time.sleep(0.05)
        started.send_signal(signal.SIGINT)
        said = started.communicate()[1]
        self.assertIn("KeyboardInterrupt", said)
        epochs = self.output(
            f'run = arbalest.train({JOB}, "runs/stopped", {{"devices": "cpu", "training.max_epochs": 100001,'
            ' "training.max_minutes": 0.001, "training.target_accuracy": 1.0}, resume="auto")\n'
            'print(sum(event["event"] == "resume" for event in run.events))\n'
        )
        self.assertEqual(["1"], epochs)


if __name__ == "__main__":
    unittest.main()
