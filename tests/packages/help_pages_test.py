"""Tests the manual page and the completions that are made from the program's help."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ["ARBALEST_PROGRAM"]
HELP = ROOT / "packaging" / "help"
sys.path.insert(0, str(HELP))
import completion  # noqa: E402
import help_text  # noqa: E402


def made(script, *arguments):
    command = [sys.executable, "-B", HELP / script, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def completed(words):
    """What bash offers at the end of these words."""
    with tempfile.TemporaryDirectory() as directory:
        script = pathlib.Path(directory) / "arbalest.bash"
        script.write_text(made("completion.py", "bash", PROGRAM))
        (pathlib.Path(directory) / "job.txtpb").touch()
        run = (
            'source "$1"; shift; compopt() { :; }; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
            '_arbalest; printf "%s\\n" "${COMPREPLY[@]}"'
        )
        done = subprocess.run(
            ["bash", "-eu", "-c", run, "bash", script, "arbalest", *words],
            capture_output=True,
            text=True,
            check=True,
            cwd=directory,
        )
    return done.stdout.split()


class HelpText(unittest.TestCase):
    def test_every_command_of_the_help_is_read(self):
        names = [command.name for command in help_text.read_program(PROGRAM)]
        for name in ("arbalest", "arbalest train", "arbalest data", "arbalest data convert"):
            self.assertIn(name, names)

    def test_flags_values_and_notes(self):
        train = next(command for command in help_text.read_program(PROGRAM) if command.words == ["train"])
        quiet = next(option for option in train.options if "--quiet" in option.flags)
        self.assertEqual(["-q", "--quiet"], quiet.flags)
        self.assertEqual("", quiet.value)
        output = next(option for option in train.options if "--output" in option.flags)
        self.assertEqual("DIR", output.value)
        self.assertIn("SIGUSR1", " ".join(train.sections["Notes"]))
        self.assertIn("arbalest train", " ".join(train.sections["Examples"]))

    def test_a_single_example_is_no_note(self):
        validate = next(command for command in help_text.read_program(PROGRAM) if command.words == ["validate"])
        self.assertIn("arbalest validate", " ".join(validate.sections["Examples"]))
        self.assertNotIn("arbalest validate", " ".join(validate.sections["Notes"]))
        self.assertNotIn("\nExample:", made("man_page.py", PROGRAM))

    def test_a_text_that_is_no_help_is_an_error(self):
        with self.assertRaisesRegex(ValueError, "arbalest train"):
            help_text.parse(["train"], "Segmentation fault\n")


class ManPage(unittest.TestCase):
    def test_it_names_every_command_and_option(self):
        page = made("man_page.py", PROGRAM).replace("\\-", "-")
        for command in help_text.read_program(PROGRAM):
            self.assertIn(command.name, page)
            for flag in completion.flags_of(command):
                self.assertIn(flag, page)
        for section in ("NAME", "SYNOPSIS", "EXIT STATUS", "EXAMPLES"):
            self.assertIn(f".SH {section}\n", page)

    def test_groff_has_nothing_to_say(self):
        if not shutil.which("groff"):
            self.skipTest("groff is not installed")
        page = made("man_page.py", PROGRAM)
        done = subprocess.run(
            ["groff", "-man", "-Tutf8", "-ww", "-z"], input=page, capture_output=True, text=True, check=True
        )
        self.assertEqual("", done.stderr)


class Completion(unittest.TestCase):
    def test_commands_options_and_files(self):
        self.assertEqual(["train"], completed(["tr"]))
        self.assertEqual(["convert"], completed(["data", "c"]))
        self.assertEqual(["--resume"], completed(["train", "--re"]))
        self.assertIn("--images-per-shard", completed(["data", "convert", "--"]))
        self.assertNotIn("--images-per-shard", completed(["data", "verify", "--"]))
        self.assertIn("--version", completed(["--"]))
        self.assertEqual(["job.txtpb"], completed(["train", "jo"]))

    def test_other_shells_accept_their_files(self):
        for shell in ("zsh", "fish"):
            text = made("completion.py", shell, PROGRAM)
            self.assertIn("train", text)
            if shutil.which(shell):
                with tempfile.NamedTemporaryFile("w", suffix="." + shell) as file:
                    file.write(text)
                    file.flush()
                    subprocess.run([shell, "-n", file.name], check=True)


if __name__ == "__main__":
    unittest.main()
