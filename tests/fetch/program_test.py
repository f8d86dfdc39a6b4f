"""The command `arbalest data fetch`: real data if ARBALEST_DATA has them, signals, and wrong arguments."""

import os
import pathlib
import re
import signal
import subprocess
import time
import unittest

from servers import PROGRAM, FetchTest

MNIST = pathlib.Path(os.environ.get("ARBALEST_DATA", "none"), "mnist")


class Program(FetchTest):
    def run_program(self, *arguments):
        return subprocess.run(
            [PROGRAM, "data", "fetch", *arguments, "--data-root", str(self.root)],
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )

    @unittest.skipUnless(MNIST.is_dir(), "ARBALEST_DATA has no mnist/")
    def test_mnist_is_fetched_and_verified(self):
        done = self.run_program("mnist", "--from", str(MNIST))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count(", fetched"), 4)
        self.assertEqual(done.stderr.count(", 100 %"), 4)  # progress
        for name, content in self.files().items():
            self.assertEqual(content, (MNIST.parent / name).read_bytes())
        job = self.folder / "job.txtpb"
        job.write_text("model { zoo { lenet {} } } data { mnist {} } learning_rate { base: 0.01 }")
        subprocess.run(
            [PROGRAM, "data", "verify", str(job), "--data-root", str(self.root)], check=True, capture_output=True
        )
        again = self.run_program("mnist", "--quiet")
        self.assertEqual((again.returncode, again.stdout.count("was there already")), (0, 4))
        self.assertEqual(again.stderr, "")

    def test_a_run_without_its_data_names_the_command(self):
        for source in ("mnist", "fashion_mnist", "cifar10", "cifar100"):
            job = self.folder / "job.txtpb"
            job.write_text(
                f"model {{ zoo {{ mlp {{ hidden: 4 }} }} }} data {{ {source} {{}} }} learning_rate {{ base: 0.01 }}"
            )
            done = subprocess.run(
                [PROGRAM, "train", str(job), "--dry-run", "--data-root", str(self.root)],
                capture_output=True,
                text=True,
                check=False,
            )
            self.assertEqual(done.returncode, 4, done.stderr)
            name = re.search(r"get it with `arbalest data fetch (\S+)`", done.stderr)
            self.assertIsNotNone(name, done.stderr)
            fetched = self.run_program(name[1], "--from", str(self.folder))
            self.assertEqual(fetched.returncode, 4)  # such a dataset is known, but is not there

    def test_a_signal_keeps_what_has_come(self):
        server = self.serve()
        for sent, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            with subprocess.Popen(
                [PROGRAM, "data", "fetch", "mnist", "--from", server.url("slow"), "--data-root", str(self.root)],
                stderr=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                text=True,
            ) as program:
                part = self.root / "mnist" / "train-images-idx3-ubyte.gz.part"
                while not (part.exists() and part.stat().st_size > 0):
                    self.assertIsNone(program.poll())
                    time.sleep(0.01)
                program.send_signal(sent)
                _, errors = program.communicate(timeout=60)
            self.assertEqual(program.returncode, code)
            self.assertIn("fetch again to go on where it ended", errors)
            self.assertGreater(part.stat().st_size, 0)
            part.unlink()

    def test_arguments(self):
        for arguments, text in (
            (["imagenet"], "there is no dataset 'imagenet' to fetch; there are mnist, fashion_mnist, cifar10, cifar100"),
            (["mnist", "--from", "ftp://127.0.0.1/"], "no URL that begins with https:// or http://"),
            ([], "DATASET"),
        ):
            done = self.run_program(*arguments)
            self.assertEqual(done.returncode, 2)
            self.assertIn(text, done.stderr)
        self.assertEqual(self.files(), {})

    def test_a_data_root_that_cannot_be_made(self):
        (self.root / "file").write_text("")
        done = subprocess.run(
            [PROGRAM, "data", "fetch", "mnist", "--from", str(self.root), "--data-root", str(self.root / "file" / "x")],
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(done.returncode, 2)
        self.assertIn("cannot be made", done.stderr)


if __name__ == "__main__":
    unittest.main()
