"""Runs contrib/slurm/train.sbatch with stand-ins for Slurm's commands: a run stopped by SIGTERM is put back into the queue.

tests/process/slurm_test.py does so under a real Slurm, where it is installed.
"""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "contrib/slurm/train.sbatch"


class TrainScript(unittest.TestCase):
    def run_script(self, exit_code, *arguments, state="RUNNING None"):
        """Returns the script's exit code and the commands of Slurm that it called. squeue prints `state`."""
        with tempfile.TemporaryDirectory() as name:
            directory = pathlib.Path(name)
            calls = directory / "calls"
            for tool, text, status in (("srun", "", exit_code), ("scontrol", "", 0), ("squeue", state, 0)):
                path = directory / tool
                lines = ["#!/bin/sh", f'echo {tool} "$@" >>"{calls}"', f"echo '{text}'", f"exit {status}"]
                path.write_text("\n".join(lines) + "\n", encoding="utf-8")
                path.chmod(0o755)
            environment = {"PATH": f"{directory}:/usr/bin:/bin", "SLURM_JOB_ID": "17"}
            ended = subprocess.run(["bash", str(SCRIPT), *arguments], env=environment, capture_output=True, check=False)
            text = calls.read_text(encoding="utf-8") if calls.exists() else ""
            return ended.returncode, text.splitlines()

    def test_a_stopped_run_is_put_back_into_the_queue(self):
        code, calls = self.run_script(143, "job.txtpb", "runs/a", "--quiet")
        self.assertEqual(code, 143)
        self.assertEqual(len(calls), 3)
        self.assertIn("arbalest train job.txtpb --output runs/a --resume=auto --quiet", calls[0])
        self.assertEqual(calls[1:], ["squeue --noheader --jobs=17 --format=%T %r", "scontrol requeue 17"])

    def test_a_run_that_saved_too_slowly_for_its_time_limit_is_too(self):
        calls = self.run_script(143, "job.txtpb", "runs/a", state="COMPLETING TimeLimit")[1]
        self.assertEqual(calls[-1], "scontrol requeue 17")

    def test_a_cancelled_run_is_not(self):
        for state in ("COMPLETING None", "CANCELLED None", ""):
            code, calls = self.run_script(143, "job.txtpb", "runs/a", state=state)
            self.assertEqual(code, 143)
            self.assertEqual([call for call in calls if call.startswith("scontrol")], [], state)

    def test_a_run_that_ended_or_failed_is_not(self):
        for code in (0, 3, 7, 137):
            self.assertEqual(self.run_script(code, "job.txtpb", "runs/a")[0], code)
            self.assertEqual(len(self.run_script(code, "job.txtpb", "runs/a")[1]), 1)

    def test_without_a_directory_it_says_how_it_is_used(self):
        self.assertEqual(self.run_script(0, "job.txtpb"), (2, []))

    @unittest.skipUnless(shutil.which("shellcheck"), "shellcheck is not installed")
    def test_shellcheck_finds_nothing(self):
        found = subprocess.run(["shellcheck", str(SCRIPT)], capture_output=True, text=True, check=False)
        self.assertEqual(found.stdout, "")
        self.assertEqual(found.returncode, 0)

    def test_it_asks_for_a_signal_before_the_limit(self):
        text = SCRIPT.read_text(encoding="utf-8")
        self.assertIn("#SBATCH --signal=TERM@120\n", text)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    unittest.main()
