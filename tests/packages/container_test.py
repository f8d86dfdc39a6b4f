"""Runs the program in a container: container_test.py IMAGE

CONTAINER_ENGINE is the command that runs containers, with its options: `podman` unless it is set.
"""

import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import time
import unittest

IMAGE = sys.argv.pop(1) if __name__ == "__main__" else None
ENGINE = shlex.split(os.environ.get("CONTAINER_ENGINE", "podman"))
JOB = "/opt/arbalest/configs/logistic-digits.txtpb"
ONE_EPOCH = ("--set", "devices=cpu", "--set", "learners.per_device.fixed=1", "--set", "training.max_epochs=1",
             "--set", "training.target_accuracy=1")


class Container(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.runs = pathlib.Path(directory.name)
        self.runs.chmod(0o777)  # the container's user is another one than ours, and its files are not ours
        self.addCleanup(self.run_in, "-c", "rm -rf /runs/*", options=("--entrypoint=sh",))

    def run_in(self, *arguments, options=()):
        return subprocess.run([*self.command(*options), *arguments], capture_output=True, text=True, timeout=300)

    def command(self, *options):
        begin = [*ENGINE, "run", "--rm", "--pull=never", "--network=none", f"--volume={self.runs}:/runs:Z"]
        return [*begin, *options, IMAGE]

    def assert_trained(self, done, processes):
        self.assertEqual(0, done.returncode, done.stderr)
        summary = json.loads((self.runs / "first" / "summary.json").read_text())
        self.assertEqual("completed", summary["status"], summary)
        self.assertEqual(processes, summary["learners"], summary)  # one for each process
        self.assertTrue((self.runs / "first" / "model.safetensors").is_file())

    def test_without_arguments_it_says_how_to_use_it(self):
        done = self.run_in()
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertIn("arbalest train", done.stdout)

    def test_it_trains_into_a_folder_of_the_host(self):
        self.assert_trained(self.run_in("train", JOB, "--output", "/runs/first", *ONE_EPOCH), 1)

    def test_two_processes_train_under_mpirun(self):
        processes = ("-np", "2", "--oversubscribe", "--bind-to", "none", "arbalest")
        training = ("train", JOB, "--output", "/runs/first", *ONE_EPOCH)
        self.assert_trained(self.run_in(*processes, *training, options=("--entrypoint=mpirun",)), 2)

    def test_it_does_not_run_as_root(self):
        done = self.run_in("-c", "id -u; command -v arbalest", options=("--entrypoint=sh",))
        self.assertEqual(0, done.returncode, done.stderr)
        user, program = done.stdout.split()
        self.assertNotEqual("0", user)
        self.assertEqual("/usr/local/bin/arbalest", program)

    def test_a_stop_lets_the_run_be_saved(self):
        name = f"arbalest-test-{os.getpid()}"
        training = ("train", JOB, "--output", "/runs/stopped", *ONE_EPOCH, "--set", "training.max_epochs=100000")
        started = subprocess.Popen([*self.command(f"--name={name}"), *training], stderr=subprocess.PIPE, text=True)
        metrics = self.runs / "stopped" / "metrics.jsonl"
        while started.poll() is None and not (metrics.exists() and '"epoch"' in metrics.read_text()):
            time.sleep(0.05)
        subprocess.run([*ENGINE, "stop", "--time=60", name], capture_output=True, check=True)
        said = started.communicate(timeout=60)[1]
        self.assertEqual(143, started.returncode, said)
        self.assertTrue(any((self.runs / "stopped").glob("checkpoints/*")), said)

    def test_a_wrong_job_has_the_programs_exit_code(self):
        done = self.run_in("train", "missing.txtpb")
        self.assertEqual(3, done.returncode, done.stderr)
        self.assertIn("missing.txtpb", done.stderr)


if __name__ == "__main__":
    unittest.main()
