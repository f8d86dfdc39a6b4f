#!/usr/bin/env python3
"""Writes the manual page of the program, made from its help: man_page.py PROGRAM > arbalest.1"""

import subprocess
import sys

import help_text


def escape(text):
    """Text as troff takes it literally."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    return "\\&" + text if text.startswith((".", "'")) else text


def entries(found):
    lines = []
    for entry in found:
        lines += [".TP", f"\\fB{escape(entry.name)}\\fR", escape(entry.text) or "\\&"]
    return lines


def literal(found):
    """Lines as they are, without those that are empty at both ends."""
    while found and not found[0].strip():
        found = found[1:]
    while found and not found[-1].strip():
        found = found[:-1]
    return [".nf", *(escape(line) if line.strip() else "" for line in found), ".fi"]


def paragraph(found):
    return [escape(line.strip()) if line.strip() else ".PP" for line in found]


def page(commands, version):
    own = commands[0]
    lines = [f'.TH ARBALEST 1 "" "{escape(version)}" "User Commands"', ".SH NAME"]
    lines += ["arbalest \\- train neural networks with many small\\-batch learners per device"]
    lines += [".SH SYNOPSIS"]
    for command in commands[1:]:
        lines += [f"\\fB{escape(command.name)}\\fR {escape(command.usage.removeprefix(command.name).strip())}", ".br"]
    lines += [".SH DESCRIPTION", escape(own.summary), ".SH OPTIONS", *entries(own.options), ".SH COMMANDS"]
    for command in commands[1:]:
        lines += [f".SS {escape(command.name)}", escape(command.summary), *entries(command.positionals + command.options)]
        if "Notes" in command.sections:
            lines += [".PP", *paragraph(command.sections["Notes"])]
        if "Examples" in command.sections:
            lines += [".PP", *literal(command.sections["Examples"])]
    lines += [".SH EXIT STATUS", *paragraph(own.sections["Exit codes"])]
    lines += [".SH EXAMPLES", *literal(own.sections["Examples"])]
    return "\n".join(lines) + "\n"


def main():
    program = sys.argv[1]
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    sys.stdout.write(page(help_text.read_program(program), version))


if __name__ == "__main__":
    main()
