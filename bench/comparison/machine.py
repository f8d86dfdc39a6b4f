"""Describes the machine and the software of a comparison."""

import json
import os
import pathlib
import re
import subprocess
import time

from peers.command_line import machine


QUIET = 0.1  # fraction of the cores' time that other programs may use


class NotArbalest(Exception):
    """The program is missing, or is not Arbalest."""


def environment(program):
    """Returns the lines of `arbalest env` as a dictionary."""
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


def precisions(program):
    """Returns the precisions that `arbalest devices` lists for the CPU."""
    out = subprocess.run([str(program), "devices", "--json"], capture_output=True, text=True, check=True).stdout
    return next(device["precisions"] for device in json.loads(out) if device["name"] == "cpu")


def core_ticks(line=None):
    """Returns (busy, all) ticks of all cores. `line`: the first one of /proc/stat; None: read now. Time that a virtual
    machine's host takes is busy; waiting for a disk is idle."""
    line = line or pathlib.Path("/proc/stat").read_text().splitlines()[0]
    ticks = [int(word) for word in line.split()[1:9]]
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)


def busy_between(before, after):
    """Returns the busy fraction of the cores' time between two results of core_ticks."""
    busy, spent = (now - then for then, now in zip(before, after))
    return busy / spent


def busy_share(seconds=1.0):
    """Waits, and returns the busy fraction of this machine's cores in the meantime."""
    before = core_ticks()
    time.sleep(seconds)
    return busy_between(before, core_ticks())


def slug(text):
    return re.sub(r"[^a-z0-9.]+", "-", re.sub(r"\((r|tm)\)|@|cpu|processor", "", text.lower())).strip("-")


def name():
    """Returns a file name for this machine, such as "intel-xeon-2.50ghz-4-cores"."""
    here = machine()
    return f"{slug(here['processor'])}-{here['cores']}-cores"


def find_python(directory):
    """Returns the Python of an environment that peers/environment.sh created, or None."""
    python = pathlib.Path(directory) / "bin" / "python"
    return str(python) if os.access(python, os.X_OK) else None


def has_module(python, module):
    script = f"import importlib.util, sys; sys.exit(importlib.util.find_spec('{module}') is None)"
    return subprocess.run([python, "-c", script], check=False).returncode == 0
