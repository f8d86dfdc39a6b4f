"""Common parts of the tests that run `arbalest train` in several processes.

    PYTHONPATH=tests/faults python3 SOME_test.py PROGRAM ...
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

import processes

PROGRAM = pathlib.Path(sys.argv[1]).resolve()


def settings_of(*settings):
    """The arguments --set of a command."""
    return [word for setting in settings for word in ("--set", setting)]


def settings(learners, *others):
    return settings_of(f"learners.per_device.fixed={learners}", *others)


class ProcessCase(unittest.TestCase):
    """Its tests share a directory with the job and the runs."""

    @classmethod
    def setUpClass(cls):
        directory = processes.scratch()
        cls.addClassCleanup(directory.cleanup)
        cls.root = pathlib.Path(directory.name)

    @classmethod
    def write_job(cls, text, name="job.txtpb"):
        (cls.root / name).write_text(text, encoding="utf-8")

    @classmethod
    def summary(cls, output):
        return json.loads((cls.root / output / "summary.json").read_text(encoding="utf-8"))

    @classmethod
    def rows(cls, output, event):
        """The lines of a run's metrics.jsonl that tell of this kind of event."""
        lines = (cls.root / output / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        return [row for row in map(json.loads, lines) if row["event"] == event]

    @classmethod
    def alone(cls, *words):
        """Runs the program in one process. Returns its stdout."""
        done = subprocess.run([str(PROGRAM), *words], cwd=cls.root, check=False, capture_output=True, text=True,
                              timeout=processes.LIMIT)
        if done.returncode != 0:
            raise AssertionError(f"exit code {done.returncode}: {done.stderr}")
        return done.stdout

    def wait_for_log(self, process, output, text):
        """Waits until a run's metrics.jsonl has this text. Fails if the launcher ends before."""
        log = self.root / output / "metrics.jsonl"
        while not log.exists() or text not in log.read_text(encoding="utf-8"):
            if process.poll() is not None:
                self.fail(f"the run ended with exit code {process.returncode}: {process.stderr.read()}")
            time.sleep(0.01)

    def wait_for(self, process, output, event):
        self.wait_for_log(process, output, f'"event":"{event}"')

    def stop_rank(self, process, output, rank):
        """Sends SIGTERM to a rank after an epoch. All ranks end politely, with exit code 143."""
        self.wait_for(process, output, "epoch")
        os.kill(processes.ranks_of(process)[rank], signal.SIGTERM)
        code, errors = processes.end(process)
        self.assertEqual(code, 143, errors)

    def hidden(self, rank):
        """Wrappers (processes.launch) that hide the end of a rank from the launcher, which sees this shell only."""
        shell = self.root / "shell"
        shell.write_text('#!/bin/sh\n"$@"\nsleep 600\n', encoding="utf-8")
        shell.chmod(0o755)
        return {rank: [str(shell)]}

    def kill_hidden(self, process, rank):
        """Kills a rank. Its silence tells the others, which end with exit code 8 and name it. Returns their messages."""
        shell = processes.ranks_of(process)[rank]
        child = pathlib.Path(f"/proc/{shell}/task/{shell}/children").read_text(encoding="ascii").split()[0]
        os.kill(int(child), signal.SIGKILL)
        code, errors = processes.end(process)
        self.assertEqual(code, 8, errors)
        self.assertRegex(errors, rf"rank 0 on host .*: rank {rank} on host .* is dead, stopped or cut off")
        return errors


def main(why_not=""):
    """Runs the tests of the program, unless they cannot run here: then they are skipped, and it says why."""
    reason = processes.missing(PROGRAM) or why_not
    if reason:
        print(f"skipped: {reason}")
        sys.exit(processes.SKIPPED)
    result = unittest.main(argv=sys.argv[:1], exit=False).result
    sys.exit(1 if not result.wasSuccessful() else processes.SKIPPED if result.skipped and not result.testsRun else 0)
