"""The common part of tests of scripts that report rows of results."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest


class ReportCase(unittest.TestCase):
    script = None  # a subclass names it

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def report(self, rows, *words, exit_code=0):
        """Returns the script's output, or its errors if it must fail."""
        path = self.folder / "rows.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        command = [sys.executable, str(self.script), str(path), *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, exit_code, done.stderr)
        return done.stdout if exit_code == 0 else done.stderr
