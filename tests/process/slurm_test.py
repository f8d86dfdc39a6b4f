"""`srun arbalest train` and contrib/slurm/train.sbatch under a real Slurm, which this test starts and ends.

    PYTHONPATH=tests/faults tests/process/slurm_test.py PROGRAM MPI_PROGRAM
"""

import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time
import unittest

import kill_runs
import namespaces
import processes
import slurm_cluster
from process_case import PROGRAM, ProcessCase, main

MPI_PROGRAM = pathlib.Path(sys.argv[2]).resolve()
SCRIPT = processes.SOURCES / "contrib/slurm/train.sbatch"
LIMIT = 180  # seconds after which a step or job that takes a few hangs

JOB = """
name: "slurm"
model { zoo { lenet {} } }
data { npy { directory: "./images28" classes: 10 channels: 1 height: 28 width: 28 } }
training { batch_size: 8 max_epochs: 6 }
optimizer { sgd { momentum: 0.9 } }
learning_rate { base: 0.003 }
learners { per_device { fixed: 1 } }
processes { peer_timeout_seconds: 5 }
"""


def srun(root, tasks, *words, options=()):
    command = ["srun", "--ntasks", str(tasks), "--overcommit", *options, *map(str, words)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False, timeout=LIMIT)
    return done.returncode, done.stdout, done.stderr


def tasks_of(output):
    """The process ids of the tasks that train into a directory."""
    found = {}
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "cmdline").read_bytes().split(b"\0")
            variables = (path / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0] != str(PROGRAM).encode() or str(output).encode() not in words:
            continue
        for variable in variables:
            if variable.startswith(b"SLURM_PROCID="):
                found[int(variable.split(b"=")[1])] = int(path.name)
    return found


class Slurm(ProcessCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.cluster = slurm_cluster.Cluster(cls.root / "slurm")
        cls.addClassCleanup(cls.cluster.stop)
        reason = cls.cluster.start()
        if reason:
            print(f"skipped: {reason}", flush=True)
            raise unittest.SkipTest(reason)
        kill_runs.write_images(cls.root / "images28", 28, 1, 640, random.Random(1))
        cls.write_job(JOB)
        cls.expected = cls.train_with_mpirun("mpirun")

    @classmethod
    def train_with_mpirun(cls, output, *settings):
        words = ["job.txtpb", "--quiet", "--output", output, *settings]
        code, errors = processes.end(processes.launch(PROGRAM, 2, words, cls.root))
        if code != 0:
            raise AssertionError(errors)
        return cls.summary(output)

    def wait_until(self, condition, what):
        until = time.monotonic() + LIMIT
        while not condition():
            self.assertLess(time.monotonic(), until, f"{what}: {self.state()}")
            time.sleep(0.05)

    def state(self):
        return subprocess.run(["scontrol", "show", "job"], capture_output=True, text=True, check=False).stdout

    def log_of(self, output):
        path = self.root / output / "metrics.jsonl"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def test_mpi_knows_as_many_processes_as_slurm(self):
        shell = 'echo "tasks: $SLURM_NTASKS"; exec "$0" "$@"'
        code, text, errors = srun(self.root, 3, "sh", "-c", shell, MPI_PROGRAM, PROGRAM.parent, "check")
        self.assertEqual(code, 0, errors)
        self.assertEqual(text.count("tasks: 3\n"), 3, text)
        for rank in range(3):
            self.assertIn(f"rank {rank} of 3, local {rank} of 3: right\n", text)

    def test_the_bytes_are_those_of_mpirun(self):
        code, _, errors = srun(self.root, 2, PROGRAM, "train", "job.txtpb", "--quiet", "--output", "srun")
        self.assertEqual(code, 0, errors)
        summary = self.summary("srun")
        self.assertEqual(summary["learners"], 2)
        self.assertEqual(summary["model_sha256"], self.expected["model_sha256"])

    def test_without_pmix_srun_is_refused(self):
        words = [PROGRAM, "train", "job.txtpb", "--quiet", "--output", "lonely"]
        code, _, errors = srun(self.root, 2, *words, options=["--mpi=none"])
        self.assertEqual(code, 2, errors)
        self.assertEqual(errors.count("arbalest: error: srun has started 2 processes without MPI"), 1, errors)
        self.assertFalse((self.root / "lonely").exists())

    @unittest.skipIf(shutil.which("mpicxx.mpich") is None, "MPICH's compiler is not installed")
    def test_mpich_needs_pmi2(self):
        program = processes.copy_with_mpich(PROGRAM, self.root / "with-mpich")
        words = [program, "train", "job.txtpb", "--quiet", "--output"]
        code, _, errors = srun(self.root, 2, *words, "by-pmix", options=["--mpi=pmix"])
        self.assertEqual(code, 2, errors)
        self.assertIn("srun has started 2 processes, but MPI (MPICH", errors)
        self.assertFalse((self.root / "by-pmix").exists())
        code, _, errors = srun(self.root, 2, *words, "by-pmi2", options=["--mpi=pmi2"])
        self.assertEqual(code, 0, errors)
        self.assertEqual(self.summary("by-pmi2")["model_sha256"], self.expected["model_sha256"])

    def test_survivors_name_a_rank_that_slurm_does_not_miss(self):
        words = ["train", "job.txtpb", "--quiet", "--output", "stopped", "--set", "training.max_epochs=1000"]
        command = ["srun", "--ntasks=3", "--overcommit", str(PROGRAM), *words]
        process = subprocess.Popen(command, cwd=self.root, stderr=subprocess.PIPE, text=True)
        self.wait_for(process, "stopped", "epoch")
        stopped = tasks_of("stopped")[1]
        os.kill(stopped, signal.SIGSTOP)
        errors = process.communicate(timeout=LIMIT)[1]
        self.assertEqual(process.returncode, 8, errors)
        self.assertRegex(errors, r"rank [02] on host .*: rank 1 on host .* is dead, stopped or cut off")

    def submit(self, name, *options):
        """Submits a job that trains until it is stopped, and waits for its first epoch. Returns its number.

        A start of the job waits for the file `go`, so that the job file can be changed between two starts.
        """
        (self.root / f"{name}.txtpb").write_text(JOB.replace("max_epochs: 6", "max_epochs: 1000000"), encoding="utf-8")
        program = self.root / f"{name}.sh"
        program.write_text(f'#!/bin/sh\nuntil [ -e {name}.go ]; do sleep 0.1; done\nexec {PROGRAM} "$@"\n', encoding="utf-8")
        program.chmod(0o755)
        (self.root / f"{name}.go").touch()
        words = ["sbatch", "--parsable", "--ntasks=2", "--cpus-per-task=1", "--overcommit", *options]
        words += [f"--output={self.root}/{name}.log", str(SCRIPT), f"{name}.txtpb", name, "--quiet"]
        environment = {**os.environ, "ARBALEST": str(program)}
        done = subprocess.run(words, cwd=self.root, env=environment, capture_output=True, text=True, check=True)
        self.wait_until(lambda: '"epoch"' in self.log_of(name), "no epoch")
        (self.root / f"{name}.go").unlink()
        return done.stdout.strip()

    def expect_requeue(self, job, name):
        """The job must save, come back, and end with the bytes of a run that was never stopped."""
        self.wait_until(lambda: "queue" in self.text_of(name), "the script does not end")
        self.assertEqual(self.text_of(name).count("back into the queue"), 1, self.text_of(name))
        epochs = self.log_of(name).count('"event":"epoch"') + 2
        (self.root / f"{name}.txtpb").write_text(JOB.replace("max_epochs: 6", f"max_epochs: {epochs}"), encoding="utf-8")
        (self.root / f"{name}.go").touch()
        self.wait_until(lambda: self.field(job, "JobState") in ("COMPLETED", "FAILED"), "the job does not end")
        self.assertEqual(self.field(job, "JobState"), "COMPLETED", self.text_of(name))
        self.assertEqual(self.field(job, "Restarts"), "1")
        self.assertEqual(self.log_of(name).count('"event":"resume"'), 1, self.text_of(name))
        self.assertEqual(self.summary(name)["status"], "completed")
        expected = self.train_with_mpirun(f"{name}-expected", "--set", f"training.max_epochs={epochs}")
        self.assertEqual(self.summary(name)["model_sha256"], expected["model_sha256"])

    def test_a_job_that_gets_a_signal_is_put_back_into_the_queue_and_goes_on(self):
        job = self.submit("signaled", "--time=10")
        subprocess.run(["scancel", "--signal=TERM", job], check=True)
        self.expect_requeue(job, "signaled")

    def test_a_job_near_its_time_limit_is_put_back_into_the_queue_and_goes_on(self):
        job = self.submit("limited", "--time=2", "--signal=TERM@90")
        self.expect_requeue(job, "limited")

    def test_a_cancelled_job_saves_and_does_not_come_back(self):
        job = self.submit("cancelled", "--time=10")
        subprocess.run(["scancel", job], check=True)
        self.wait_until(lambda: "queue" in self.text_of("cancelled"), "the script does not end")
        # A job that was put back is PENDING for some seconds, and then RUNNING.
        self.wait_until(lambda: self.field(job, "JobState") != "COMPLETING", "the job does not end")
        self.assertEqual(self.field(job, "JobState"), "CANCELLED", self.text_of("cancelled"))
        self.assertEqual(self.field(job, "Restarts"), "0")
        self.assertIn("stays out of the queue", self.text_of("cancelled"))
        self.assertEqual(self.summary("cancelled")["status"], "stopped")
        self.assertTrue(list((self.root / "cancelled/checkpoints").glob("0*")))

    def text_of(self, name):
        path = self.root / f"{name}.log"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def field(self, job, name):
        shown = subprocess.run(["scontrol", "show", "job", job], capture_output=True, text=True, check=True).stdout
        return dict(word.split("=", 1) for word in shown.split() if "=" in word)[name]


if __name__ == "__main__":
    why_not = slurm_cluster.missing() or namespaces.missing()
    if not why_not and not processes.missing(PROGRAM):
        namespaces.enter()
    main(why_not)
