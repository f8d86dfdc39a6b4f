"""Checkpoints of `arbalest train` in several processes, whose hosts see the run's directory or not, and polite stops.

The hosts are parts of this machine: a mount namespace sees other files, and a UTS namespace has another name.
"""

import json
import os
import pathlib
import random
import resource
import signal
import subprocess
import time

import kill_runs
import processes
from process_case import PROGRAM, ProcessCase, main

JOB = """
model { zoo { lenet {} } }
data { npy { directory: "./images28" classes: 10 channels: 1 height: 28 width: 28 } }
training { batch_size: 8 max_epochs: 2 }
optimizer { sgd { momentum: 0.9 } }
learning_rate { base: 0.003 }
learners { per_device { fixed: 1 } }
checkpoint { every_batches: 40 keep_last: 9 }
"""

BATCHES_PER_EPOCH = 80  # 640 images in mini-batches of 8

NOTHING = "mount -t tmpfs none runs"
READ_ONLY = "mount --bind runs runs && mount -o remount,ro,bind runs"


def with_mount(mount, after="true"):
    """A command that starts the program where `runs` is something else, and does something at the end."""
    script = f'{mount} && "$@"; code=$?; {after}; exit $code'
    return ["unshare", "-m", "sh", "-c", script, "sh"]


class SaveOverProcesses(ProcessCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        kill_runs.write_images(cls.root / "images28", 28, 1, 640, random.Random(1))
        cls.write_job(JOB)
        (cls.root / "runs").mkdir()
        cls.has_namespaces = processes.can("unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt")
        cls.wholes = {}

    def launch(self, count, output, *arguments, **others):
        words = ["job.txtpb", "--quiet", "--output", f"runs/{output}", *arguments]
        return processes.launch(PROGRAM, count, words, self.root, **others)

    def train(self, count, output, *arguments, **others):
        code, errors = processes.end(self.launch(count, output, *arguments, **others))
        self.assertEqual(code, 0, errors)
        return errors

    def model(self, output):
        summary = json.loads((self.root / "runs" / output / "summary.json").read_text(encoding="utf-8"))
        return summary["model_sha256"]

    def whole(self, count, epochs=2):
        """The model of a run that nothing has disturbed."""
        if (count, epochs) not in self.wholes:
            output = f"whole-{count}-{epochs}"
            self.train(count, output, "--set", f"training.max_epochs={epochs}")
            self.wholes[count, epochs] = self.model(output)
        return self.wholes[count, epochs]

    def go_on(self, count, output, *settings):
        """Resumes a run to the end of an epoch that it has not reached, and compares it with an undisturbed one."""
        batches = max(int(name) for name in self.checkpoints(output) if name.isdigit())
        epochs = batches // BATCHES_PER_EPOCH + 1
        self.train(count, output, *settings, "--set", f"training.max_epochs={epochs}", "--resume=auto")
        self.assertEqual(self.model(output), self.whole(count, epochs))

    def checkpoints(self, output):
        return sorted(path.name for path in (self.root / "runs" / output / "checkpoints").iterdir())

    def check_nothing_left(self, output):
        """No process trains into the directory any more."""
        self.assertEqual(processes.left_over(f"runs/{output}"), [])

    def needs_namespaces(self):
        if not self.has_namespaces:
            self.skipTest("this system lets no process mount a file system of its own")

    def test_a_host_that_does_not_see_the_directory_sends_its_learners(self):
        self.needs_namespaces()
        blind = {1: with_mount(NOTHING, after="ls -A runs > listed")}
        errors = self.train(2, "blind", "--set", "training.max_epochs=1", wrappers=blind)
        self.assertNotIn("does not see", errors)
        self.assertEqual((self.root / "listed").read_text(encoding="utf-8"), "")
        self.assertEqual(len(self.checkpoints("blind")), 2)
        learners = list((self.root / "runs/blind/checkpoints").glob("*/learner-0001.safetensors"))
        self.assertEqual(len(learners), len(self.checkpoints("blind")))
        # Rank 0 sends the learner back. Then all see the directory.
        self.train(2, "blind", "--resume=auto", "--set", "training.max_epochs=2", wrappers=blind)
        self.assertEqual(self.model("blind"), self.whole(2))
        self.train(2, "blind", "--resume=auto", "--set", "training.max_epochs=3")
        self.train(2, "three", "--set", "training.max_epochs=3")
        self.assertEqual(self.model("blind"), self.model("three"))

    def test_a_host_that_cannot_write_to_the_directory_is_named_and_sends_its_learners(self):
        self.needs_namespaces()
        errors = self.train(2, "read-only", wrappers={1: with_mount(READ_ONLY)})
        self.assertRegex(errors, "rank 1 on host .* sees the directory .*, but cannot write there: .*Read-only")
        self.assertEqual(self.model("read-only"), self.whole(2))
        self.assertIn("000000000160", self.checkpoints("read-only"))

    def test_a_rank_whose_writes_fail_is_named_and_the_run_goes_on(self):
        process = self.launch(2, "full", "--set", "training.max_epochs=1000")
        self.wait_for_log(process, "runs/full", '"checkpoint"')
        resource.prlimit(processes.ranks_of(process)[1], resource.RLIMIT_FSIZE, (100_000, 100_000))
        self.wait_for_log(process, "runs/full", "was not saved: rank 1 on host")
        before = self.checkpoints("full")
        self.wait_for_log(process, "runs/full", '"epoch":2')
        os.kill(processes.ranks_of(process)[0], signal.SIGTERM)
        code, errors = processes.end(process)
        self.assertEqual(code, 6, errors)
        self.assertRegex(errors, "its state was not saved: rank 1 on host .*learner-0001.*File too large")
        saved = [name for name in before if not name.startswith(".")]
        self.assertEqual(self.checkpoints("full"), saved)
        self.go_on(2, "full")

    def test_a_rank_that_is_killed_while_it_saves_leaves_the_checkpoint_of_before(self):
        if not processes.can("strace", "-V"):
            self.skipTest("there is no strace")
        three = ["--set", "learners.per_device.fixed=3"]
        self.train(2, "killed", *three, "--set", "training.max_epochs=1")
        before = self.checkpoints("killed")
        # strace counts by thread. The main thread makes two of these calls at the start, and that of a save three.
        trace = self.root / "killed.trace"
        wrapper = ["strace", "-f", "-qq", "-o", str(trace), "-e", "trace=fsync"]
        wrapper += ["-e", "inject=fsync:signal=SIGKILL:when=3"]
        code, errors = processes.end(self.launch(2, "killed", *three, "--resume=auto", wrappers={1: wrapper}))
        self.assertNotEqual(code, 0, errors)
        self.assertIn("killed by SIGKILL", trace.read_text(encoding="utf-8"))
        self.check_nothing_left("killed")
        self.assertEqual([name for name in self.checkpoints("killed") if not name.startswith(".")], before)
        self.train(2, "killed", *three, "--resume=auto")
        self.train(2, "never-killed", *three)
        self.assertEqual(self.model("killed"), self.model("never-killed"))
        self.assertEqual([name for name in self.checkpoints("killed") if name.startswith(".")], [])

    def test_hosts_with_unequal_devices_train_repeatably_and_go_on_as_if_never_stopped(self):
        if not processes.can("unshare", "--uts", "hostname", "other"):
            self.skipTest("this system gives no process a host name of its own")
        cores = sorted(os.sched_getaffinity(0))
        if len(cores) < 2:
            self.skipTest("it takes two cores")
        # One process of the first host has both of its devices, and two processes of the second host have one each.
        options = processes.hosts(self.root, {"first": 1, "second": 2})
        devices = ["--set", f'devices=["cpu:{cores[0]}", "cpu:{cores[1]}"]']
        models = []
        for output in ("unequal", "again"):
            self.train(3, output, *devices, options=options)
            models.append(self.model(output))
        self.assertEqual(models[0], models[1])
        summary = json.loads((self.root / "runs/unequal/summary.json").read_text(encoding="utf-8"))
        self.assertEqual(summary["learners"], 4)
        for epochs in (1, 2):
            more = ["--resume=auto", "--set", f"training.max_epochs={epochs}"]
            self.train(3, "in-parts", *devices, *more, options=options)
        self.assertEqual(self.model("in-parts"), models[0])

    def test_a_stop_that_a_rank_does_not_hear_of_ends_the_run_at_once(self):
        for number, code_of in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
            output = f"stopped-{code_of}"
            process = self.launch(3, output, "--set", "training.max_epochs=1000")
            self.wait_for_log(process, f"runs/{output}", '"checkpoint"')
            ranks = processes.ranks_of(process)
            os.kill(ranks[2], signal.SIGSTOP)
            os.kill(ranks[0], number)
            code, errors = processes.end(process)
            self.assertEqual(code, code_of, errors)
            self.assertRegex(errors, "a signal asks for a stop, but rank 2 on host .* has not answered within 1 s")
            self.check_nothing_left(output)
            self.go_on(3, output)

    def test_a_rank_that_hangs_ends_a_stop_by_its_name(self):
        if not processes.can("strace", "-V"):
            self.skipTest("there is no strace")
        patience = ["--set", "processes.peer_timeout_seconds=2"]
        process = self.launch(2, "hangs", *patience, "--set", "training.max_epochs=1000")
        self.wait_for_log(process, "runs/hangs", '"checkpoint"')
        ranks = processes.ranks_of(process)
        # The main thread sleeps before its next system call. The communication thread goes on.
        hang = ["strace", "-qq", "-o", os.devnull, "-p", str(ranks[1]), "-e", "inject=all:delay_enter=600000000"]
        with subprocess.Popen(hang, stderr=subprocess.DEVNULL) as strace:
            while "TracerPid:\t0" in pathlib.Path(f"/proc/{ranks[1]}/status").read_text(encoding="ascii"):
                self.assertIsNone(strace.poll())
                time.sleep(0.005)
            os.kill(ranks[0], signal.SIGTERM)
            code, errors = processes.end(process)
            strace.kill()
        self.assertEqual(code, 143, errors)
        self.assertRegex(errors, "rank 1 on host .* hangs: .*, and a signal asks for a stop; the model was not saved")
        self.check_nothing_left("hangs")
        self.go_on(2, "hangs", *patience)


if __name__ == "__main__":
    main()
