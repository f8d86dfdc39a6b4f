"""Reads the help of the program: its commands, their options and the other sections."""

import dataclasses
import re
import subprocess

_HEADING = re.compile(r"(?P<title>[A-Z][A-Za-z ]*):(?P<rest>.*)")
_SECTIONS = {"Example": "Examples", "Examples": "Examples", "Exit codes": "Exit codes"}  # heading -> title
_ENTRY = re.compile(r"  (?P<name>\S.*?)(?:\s{2,}(?P<text>\S.*))?")


@dataclasses.dataclass
class Entry:
    name: str  # "-q,--quiet", "--set PATH=VALUE", "JOB TEXT REQUIRED", "train"
    text: str

    @property
    def flags(self):
        """["-q", "--quiet"]"""
        return [flag for flag in self.name.split(" ")[0].split(",") if flag.startswith("-")]

    @property
    def value(self):
        """What follows the flags, such as "FILE"; "" for an option without a value."""
        return self.name.partition(" ")[2]


@dataclasses.dataclass
class Command:
    words: list  # ["data", "convert"]; [] for the program itself
    summary: str = ""
    usage: str = ""
    positionals: list = dataclasses.field(default_factory=list)
    options: list = dataclasses.field(default_factory=list)
    subcommands: list = dataclasses.field(default_factory=list)
    sections: dict = dataclasses.field(default_factory=dict)  # title -> lines, such as Examples, Exit codes, Notes

    @property
    def name(self):
        return " ".join(["arbalest", *self.words])


def read_program(program):
    """Returns the program's own command and all its commands, in the order of the help."""
    commands = [_read(program, [])]
    for command in commands:  # grows while it is walked
        commands.extend(_read(program, [*command.words, entry.name]) for entry in command.subcommands)
    return commands


def _read(program, words):
    done = subprocess.run([program, *words, "--help"], capture_output=True, text=True, check=True)
    return parse(words, done.stdout)


def parse(words, text):
    """Returns the command with this help. Text between the sections goes to the section "Notes"."""
    command = Command(words)
    blocks = {"Positionals": command.positionals, "Options": command.options, "Subcommands": command.subcommands}
    title = None
    for line in text.splitlines():
        heading = _HEADING.fullmatch(line)
        if heading and heading["title"] == "Usage":
            command.usage = heading["rest"].strip()
            title = None
        elif heading and heading["title"] in blocks:
            title = heading["title"]
        elif heading and heading["title"] in _SECTIONS:
            title = _SECTIONS[heading["title"]]
            command.sections[title] = [heading["rest"].strip()] if heading["rest"].strip() else []
        elif title in blocks and (entry := _ENTRY.fullmatch(line)):
            blocks[title].append(Entry(entry["name"], entry["text"] or ""))
        elif title and (line.startswith(" ") or (not line and title not in blocks)):
            command.sections.setdefault(title, []).append(line)
        elif line and not command.summary:
            command.summary = line
        elif line:
            title = "Notes"
            command.sections.setdefault(title, []).append(line)
        else:
            title = title if title not in blocks else None
    if not command.usage or not command.options:
        raise ValueError(f"the help of '{command.name}' has no usage or no options")
    return command
