"""Where and with what a comparison was made."""

import os
import pathlib
import re
import subprocess

from peers.command_line import machine


class NotArbalest(Exception):
    """A program that is not there, or another one."""


def environment(program):
    """What `arbalest env` says, as a dictionary of its lines."""
    try:
        out = subprocess.run([str(program), "env"], capture_output=True, text=True, check=True).stdout
    except OSError as error:
        raise NotArbalest(f"'{program}' cannot be run: {error.strerror}") from error
    except subprocess.CalledProcessError as error:
        raise NotArbalest(f"'{program} env' ended with exit code {error.returncode}") from error
    lines = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in out.splitlines())}
    if "arbalest" not in lines:
        raise NotArbalest(f"'{program} env' does not say what Arbalest says")
    return lines


def slug(text):
    return re.sub(r"[^a-z0-9.]+", "-", re.sub(r"\((r|tm)\)|@|cpu|processor", "", text.lower())).strip("-")


def name():
    """Of this machine, for a file: "intel-xeon-2.50ghz-4-cores"."""
    here = machine()
    return f"{slug(here['processor'])}-{here['cores']}-cores"


def find_python(directory):
    """Of an environment that peers/environment.sh has made, or None."""
    python = pathlib.Path(directory) / "bin" / "python"
    return str(python) if os.access(python, os.X_OK) else None


def has_module(python, module):
    script = f"import importlib.util, sys; sys.exit(importlib.util.find_spec('{module}') is None)"
    return subprocess.run([python, "-c", script], check=False).returncode == 0
