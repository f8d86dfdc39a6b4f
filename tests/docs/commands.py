"""Checks that the programs, options, settings and files of commands exist, without running the commands."""

import dataclasses
import json
import pathlib
import re
import shlex
import shutil
import subprocess

from markdown import PageError

INSTALLED = "arbalest-tree/"  # the pages install the program here, with files from the repository
SHELL_WORDS = {"cd", "echo", "export", "for", "do", "done", "if", "then", "fi", "test", "wait", "source"}
SEPARATORS = {"&&", "||", ";", "|", "&"}
REDIRECTION = re.compile(r"^\d?(>>?|<)&?")


@dataclasses.dataclass
class Command:
    place: str
    words: list


def split(block):
    """Returns the simple commands of a block, without assignments and redirections."""
    commands, words, pending, first = [], [], "", block.line
    for number, line in enumerate(block.text.splitlines(), block.line):
        first = number if not pending else first
        pending += line.rstrip("\\") if line.endswith("\\") else line
        if line.endswith("\\"):
            continue
        lexer = shlex.shlex(pending, posix=True, punctuation_chars="&|;")
        lexer.whitespace_split = True
        for word in [*lexer, ";"]:
            if word in SEPARATORS:
                if words:
                    commands.append(Command(f"{block.page}:{first}", words))
                words = []
            elif not (not words and re.match(r"^\w+=", word)) and not REDIRECTION.match(word):
                words.append(word)
        pending = ""
    return commands


def values_of(text):
    """Returns the values of --vary, which are separated by commas outside braces."""
    values, depth = [""], 0
    for character in text:
        depth += (character in "{[") - (character in "}]")
        if character == "," and depth == 0:
            values.append("")
        else:
            values[-1] += character
    return values


class Checker:
    """`root`: a directory that looks like the root of the repository; `program`: arbalest."""

    def __init__(self, root, program):
        self.root, self.program = pathlib.Path(root), program

    def check(self, block):
        syntax = subprocess.run(["bash", "-n"], input=block.text, capture_output=True, text=True, check=False)
        if syntax.returncode != 0:
            raise PageError(f"{block.place}: {syntax.stderr.strip()}")
        for command in split(block):
            self.check_command(command)

    def check_command(self, command):
        program = command.words[0]
        name = program.rsplit("/", 1)[-1]
        if name == "arbalest":
            self.check_arbalest(command)
        elif program == "make":
            self.run(command, ["make", "--dry-run", *command.words[1:]], cwd=self.root)
        elif program == "cmake" and "--preset" in command.words:
            self.check_preset(command)
        elif "/" in program:
            self.check_script(command)
        elif program not in SHELL_WORDS and shutil.which(program) is None:
            raise PageError(f"{command.place}: there is no program {program}")

    def run(self, command, words, **options):
        done = subprocess.run(words, capture_output=True, text=True, check=False, **options)
        if done.returncode != 0:
            raise PageError(f"{command.place}: {shlex.join(words)}: {(done.stderr or done.stdout).strip()}")
        return done.stdout

    def check_preset(self, command):
        presets = json.loads((self.root / "CMakePresets.json").read_text())
        names = {preset["name"] for kind in ("configurePresets", "buildPresets") for preset in presets[kind]}
        name = command.words[command.words.index("--preset") + 1]
        if name not in names:
            raise PageError(f"{command.place}: there is no preset {name}")

    def check_script(self, command):
        """Checks a script or a benchmark: its source must have the options. The benchmark need not be built."""
        program = re.sub(rf"^(\./|build/release/|{INSTALLED})", "", command.words[0])
        sources = [self.root / program, self.root / f"{program}.cc"]
        if not any(source.is_file() for source in sources):
            raise PageError(f"{command.place}: there is no {command.words[0]}")
        folder = self.root / program.split("/")[0]
        files = [path for path in sorted(folder.rglob("*")) if path.suffix in {".cc", ".py", ".sh"}]
        known = "".join(path.read_text(encoding="utf-8") for path in files)
        for word in command.words[1:]:
            if word.startswith("--") and word.split("=")[0] not in known:
                raise PageError(f"{command.place}: {program} has no option {word}")

    def check_arbalest(self, command):
        words = command.words[1:]
        subcommands = words[: 2 if words[:1] == ["data"] else 1]
        help_text = self.run(command, [self.program, *subcommands, "--help"])
        if f"Usage: arbalest {' '.join(subcommands)} " not in help_text:
            raise PageError(f"{command.place}: there is no command arbalest {' '.join(subcommands)}")
        options, positional, at = {"--set": [], "--vary": []}, [], len(subcommands)
        while at < len(words):
            word = words[at]
            if word.startswith("-"):
                row = re.search(rf"^\s+(?:\S+,)?{re.escape(word)}(?: ([A-Z][A-Z=]*\S*))?(?:\s|$)", help_text, re.M)
                if not row:
                    raise PageError(f"{command.place}: arbalest {' '.join(subcommands)} has no option {word}")
                if row[1]:
                    at += 1
                    options.setdefault(word, []).append(words[at] if at < len(words) else "")
            else:
                positional.append(word)
            at += 1
        settings = [["--set", setting] for setting in options["--set"]]
        for variation in options["--vary"]:
            path, _, values = variation.partition("=")
            settings += [["--set", f"{path}={value}"] for value in values_of(values) if value != "default"]
        jobs = [word.removeprefix(INSTALLED) for word in positional if word.endswith(".txtpb")]
        for job in jobs:
            fixed = [word for setting in settings[: len(options["--set"])] for word in setting]
            for varied in settings[len(options["--set"]) :] or [[]]:
                self.run(command, [self.program, "validate", job, *fixed, *varied], cwd=self.root)
