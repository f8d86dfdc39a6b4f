"""Launches that cannot work, or that look as if: one clear error, the exit code of its kind, and never a hang.

    PYTHONPATH=tests/faults tests/process/wrong_launches_test.py PROGRAM
"""

import os
import random
import shutil
import stat
import subprocess
import unittest

import kill_runs
import processes
from process_case import PROGRAM, ProcessCase, main

JOB = """
model { zoo { matrix_factorization { width: 4 mean: 3.0 } } }
data { ratings { directory: "./ratings" sizes: [40, 30] } }
training { batch_size: 16 max_epochs: 2 }
optimizer { adamw {} }
learning_rate { base: 0.01 }
learners { per_device { fixed: 1 } }
"""


def is_missing(tool):
    return shutil.which(tool) is None


class WrongLaunches(ProcessCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        kill_runs.write_ratings(cls.root / "ratings", random.Random(1), rows=1000)
        cls.write_job(JOB)

    def script(self, name, text):
        path = self.root / name
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    def as_rank_1(self, name, command):
        """A program whose rank 1 is another command; "$@" are the arguments of both."""
        return self.script(name, f'[ "$OMPI_COMM_WORLD_RANK" = 1 ] && exec {command}\nexec {PROGRAM} "$@"')

    def train(self, program, output, *arguments, count=2, job="job.txtpb"):
        words = [job, "--quiet", "--output", output, *arguments]
        return processes.end(processes.launch(program, count, words, self.root))

    def call(self, *command):
        done = subprocess.run(
            [str(word) for word in command], env=processes.environment(), cwd=self.root, capture_output=True, text=True,
            check=False, timeout=processes.LIMIT,
        )
        return done.returncode, done.stderr

    def refused(self, result, code, part, count=1):
        self.assertEqual(result[0], code, result[1])
        self.assertEqual(result[1].count(part), count, result[1])
        self.assertFalse((self.root / "refused").exists())

    def test_other_arguments(self):
        (self.root / "other.txtpb").write_text(JOB, encoding="utf-8")
        for number, command in enumerate((
            f'{PROGRAM} "$@" --set training.seed=2',
            f'{PROGRAM} "$@" --resume=auto',
            f"{PROGRAM} train other.txtpb --quiet --output refused",
            f"{PROGRAM} train job.txtpb --quiet --output elsewhere",
        )):
            program = self.as_rank_1(f"arguments-{number}", command)
            self.refused(self.train(program, "refused"), 2, "was started with other arguments than rank 0")
        self.assertFalse((self.root / "elsewhere").exists())

    def test_steps_that_grow_with_the_learners_of_all_processes(self):
        (self.root / "growing.txtpb").write_text("""
model { zoo { lenet {} } }
data { digits {} }
training { batch_size: 32 max_epochs: 1 }
optimizer { sgd { momentum: 0.9 } }
learning_rate { base: 0.01 with_learners: LINEAR }
synchronization { async_sgd {} }
learners { per_device { fixed: 1 } }
""", encoding="utf-8")
        for count in (2, 4):  # each has one learner, which may begin alone
            result = self.train(PROGRAM, "refused", count=count, job="growing.txtpb")
            self.refused(result, 3, f"multiplies the learning rate of each of {count} learners by {count}")

    def test_only_rank_0_reads_the_job(self):
        program = self.as_rank_1("no-job", f'sh -c "mkdir -p away && cd away && ln -sf ../ratings . && exec {PROGRAM} \\"\\$@\\"" sh "$@"')
        code, errors = self.train(program, "read-once")
        self.assertEqual(code, 0, errors)
        self.assertEqual(self.summary("read-once")["learners"], 2)

    def test_another_version(self):
        version = subprocess.run([str(PROGRAM), "--version"], capture_output=True, text=True, check=True).stdout
        commit = version[version.index("(") + 1 : version.index(")")].encode()
        other = processes.copy_of_program(PROGRAM, self.root / "version", PROGRAM.parent / processes.MODULE)
        content = other.read_bytes()
        self.assertIn(commit + b"\0", content)
        other.write_bytes(content.replace(commit + b"\0", b"x" * len(commit) + b"\0"))
        program = self.as_rank_1("other-version", f'{other} "$@"')
        self.refused(self.train(program, "refused"), 2, "runs another version of the program than rank 0")

    def test_no_module(self):
        lonely = processes.copy_of_program(PROGRAM, self.root / "lonely")
        code, errors = self.train(lonely, "refused")
        self.assertEqual(code, 2, errors)
        self.assertIn(f"but Arbalest was built without MPI: there is no {processes.MODULE} in {lonely.parent}", errors)
        self.assertFalse((self.root / "refused").exists())
        self.refused(self.train(self.as_rank_1("one-lonely", f'{lonely} "$@"'), "refused"), 2, "was built without MPI")

    def test_a_device_that_only_one_rank_has(self):
        cores = sorted(os.sched_getaffinity(0))
        if len(cores) < 2 or is_missing("taskset"):
            self.skipTest("needs two cores and taskset")
        devices = f'devices: "cpu:{cores[0]}" devices: "cpu:{cores[1]}"'
        (self.root / "devices.txtpb").write_text(JOB + devices, encoding="utf-8")
        program = self.as_rank_1("one-core", f'taskset --cpu-list {cores[0]} {PROGRAM} "$@"')
        result = self.train(program, "refused", job="devices.txtpb")
        self.refused(result, 3, f"device 'cpu:{cores[1]}': this process has no core {cores[1]}")
        self.assertIn("rank 1 on host", result[1])

    def test_more_processes_than_mini_batches_in_an_epoch(self):
        result = self.train(PROGRAM, "refused", "--set", "training.batch_size=400", count=4)
        self.refused(result, 3, "a round of 4 learners with period 1 needs 4 mini-batches, but an epoch has 2")

    def test_a_mini_batch_that_is_larger_than_the_data(self):
        self.refused(self.train(PROGRAM, "refused", "--set", "training.batch_size=2000"), 3, "batch_size")

    def test_a_host_that_is_down(self):
        # The agent that starts processes on other hosts fails, as ssh does if a host does not answer.
        agent = self.script("agent", 'echo "ssh: connect to host $1: No route to host" >&2\nexit 255')
        (self.root / "hosts").write_text("localhost slots=1\nnode-that-is-down slots=1\n", encoding="ascii")
        code, errors = self.call(
            "mpirun", "--mca", "plm_rsh_agent", agent, "--hostfile", "hosts", "-np", 2, PROGRAM, "train", "job.txtpb", "-q",
            "--output", "refused",
        )
        self.assertNotEqual(code, 0, errors)
        self.assertIn("node-that-is-down", errors)
        self.assertFalse((self.root / "refused").exists())

    @unittest.skipIf(is_missing("mpiexec.mpich"), "MPICH is not installed")
    def test_launched_by_mpich_built_against_open_mpi(self):
        code, errors = self.call("mpiexec.mpich", "-n", 2, PROGRAM, "train", "job.txtpb", "-q", "--output", "refused")
        self.assertEqual(code, 2, errors)
        self.assertIn("mpiexec has started 2 processes, but MPI (Open MPI", errors)
        self.assertFalse((self.root / "refused").exists())

    @unittest.skipIf(is_missing("mpicxx.mpich"), "MPICH's compiler is not installed")
    def test_built_against_mpich(self):
        program = processes.copy_with_mpich(PROGRAM, self.root / "mpich")
        code, errors = self.train(program, "refused")
        self.assertEqual(code, 2, errors)
        self.assertIn("mpirun of Open MPI has started 2 processes, but MPI (MPICH", errors)
        self.assertFalse((self.root / "refused").exists())
        code, errors = self.call("mpiexec.mpich", "-n", 2, program, "train", "job.txtpb", "-q", "--output", "by-mpich")
        self.assertEqual(code, 0, errors)
        code, errors = self.train(PROGRAM, "by-open-mpi")
        self.assertEqual(code, 0, errors)
        self.assertEqual(self.summary("by-mpich")["model_sha256"], self.summary("by-open-mpi")["model_sha256"])


if __name__ == "__main__":
    main()
