"""Runs contrib/slurm/train.sbatch with stand-ins for Slurm's commands: a run stopped by SIGTERM is put back into the queue."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "contrib/slurm/train.sbatch"


class TrainScript(unittest.TestCase):
    def run_script(self, exit_code, *arguments):
        """Returns the script's exit code and the commands of Slurm that it called."""
        with tempfile.TemporaryDirectory() as name:
            directory = pathlib.Path(name)
            calls = directory / "calls"
            for tool, status in (("srun", exit_code), ("scontrol", 0)):
                path = directory / tool
                path.write_text(f'#!/bin/sh\necho {tool} "$@" >>"{calls}"\nexit {status}\n', encoding="utf-8")
                path.chmod(0o755)
            environment = {"PATH": f"{directory}:/usr/bin:/bin", "SLURM_JOB_ID": "17"}
            ended = subprocess.run(["bash", str(SCRIPT), *arguments], env=environment, capture_output=True, check=False)
            text = calls.read_text(encoding="utf-8") if calls.exists() else ""
            return ended.returncode, text.splitlines()

    def test_a_stopped_run_is_put_back_into_the_queue(self):
        code, calls = self.run_script(143, "job.txtpb", "runs/a", "--quiet")
        self.assertEqual(code, 143)
        self.assertEqual(len(calls), 2)
        self.assertIn("arbalest train job.txtpb --output runs/a --resume=auto --quiet", calls[0])
        self.assertEqual(calls[1], "scontrol requeue 17")

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
