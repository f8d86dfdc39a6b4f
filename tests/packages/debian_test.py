"""Looks into a Debian package and runs what is in it: debian_test.py PACKAGE"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

PACKAGE = pathlib.Path(sys.argv.pop(1)).resolve() if __name__ == "__main__" else None
FILES = (
    "usr/bin/arbalest",
    "usr/share/arbalest/configs/lenet-digits.txtpb",
    "usr/share/bash-completion/completions/arbalest",
    "usr/share/doc/arbalest/copyright",
    "usr/share/man/man1/arbalest.1.gz",
)


def output(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=True, **options).stdout


class Package(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.root = pathlib.Path(self.directory.name)
        subprocess.run(["dpkg-deb", "--extract", PACKAGE, self.root / "system"], check=True)

    def test_it_holds_the_program_and_what_belongs_to_it(self):
        for file in FILES:
            self.assertTrue((self.root / "system" / file).is_file(), file)

    def test_it_brings_no_library_and_depends_on_debians(self):
        libraries = [path.name for path in (self.root / "system").rglob("*.so*")]
        self.assertIn(libraries, ([], ["libarbalest_mpi.so"]))
        needed = output("dpkg-deb", "--field", PACKAGE, "Depends")
        for package in ("libdnnl2", "libprotobuf32", "libtbb12"):
            self.assertIn(package, needed)

    def test_the_program_runs(self):
        program = self.root / "system" / "usr/bin/arbalest"
        job = self.root / "system" / "usr/share/arbalest/configs/logistic-digits.txtpb"
        self.assertIn("name: cpu", output(program, "devices"))
        options = ("--set", "devices=cpu", "--set", "training.max_epochs=1", "--output", self.root / "run", "--quiet")
        output(program, "train", job, *options)
        self.assertTrue((self.root / "run" / "model.safetensors").is_file())

    def test_lintian_finds_nothing(self):
        if not shutil.which("lintian"):
            self.skipTest("lintian is not installed")
        done = subprocess.run(
            ["lintian", "--allow-root", "--fail-on", "error,warning", PACKAGE], capture_output=True, text=True
        )
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
