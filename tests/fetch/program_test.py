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

    def put_cifar100(self, change=lambda number, labels: labels):
        """The test images and lists of names of CIFAR-100, with black images. `change`: other labels for a record."""
        folder = self.root / "cifar-100"
        folder.mkdir(exist_ok=True)
        with open(folder / "test.bin", "wb") as file:
            file.truncate(10_000 * 3_074)
            for number in range(10_000):
                file.seek(number * 3_074)
                file.write(bytes(change(number, (number % 100 // 5, number % 100))))
        for name, count in (("fine", 100), ("coarse", 20)):
            lines = "".join(f"{name} {number}\n" for number in range(count))
            (folder / f"{name}_label_names.txt").write_text(lines + "\n")
        return folder

    def fetch_cifar100(self):
        """Nothing can be fetched from there, so files that are kept are followed by that error."""
        done = self.run_program("cifar100", "--from", str(self.folder))
        self.assertEqual(done.returncode, 4, done.stderr)
        return done.stderr

    def test_files_of_cifar100_that_are_there_are_checked(self):
        folder = self.put_cifar100()
        self.assertIn("cifar-100-binary.tar.gz cannot be fetched", self.fetch_cifar100())
        for change, problem in (
            (lambda number, labels: (0, 0), "has 10000 images of the class 0"),
            (lambda number, labels: (20, labels[1]) if number == 7 else labels, "record 7 has the superclass 20"),
            (lambda number, labels: (3, 100) if number == 9 else labels, "the class 100"),
            (lambda number, labels: (19, labels[1]) if number == 300 else labels, "record 300 puts the class 0"),
            (lambda number, labels: (labels[1] // 10, labels[1]), "its superclass 0 has 10 classes"),
        ):
            self.put_cifar100(change)
            said = self.fetch_cifar100()
            self.assertIn("test.bin' is not the published file", said)
            self.assertIn(problem, said)
        self.put_cifar100()
        names = folder / "fine_label_names.txt"
        good = names.read_text()
        for text, problem in (
            ("", "it has 0 names, and not 100"),
            (good + "one more\n", "line 101 is empty"),
            (good.replace("fine 7\n", "fine 8\n"), "the name 'fine 8' repeats"),
            (good.replace("fine 7\n", ""), "it has 99 names"),
        ):
            names.write_text(text)
            self.assertIn(problem, self.fetch_cifar100())
            self.assertEqual(names.read_text(), text)

    def test_a_data_root_that_cannot_be_made_is_a_wrong_argument(self):
        for root in ("/proc/no-such-folder", "/dev/null/folder"):
            done = subprocess.run([PROGRAM, "data", "fetch", "mnist", "--data-root", root, "--from", str(self.folder)],
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("name another --data-root", done.stderr)

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
