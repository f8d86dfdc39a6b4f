"""Runs `arbalest train` in several processes under mpirun."""

import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

SKIPPED = 4  # the exit code of a skipped test (tests/support/skip.h)
MODULE = "libarbalest_mpi.so"
SOURCES = pathlib.Path(__file__).resolve().parents[2]
LIMIT = 300  # seconds after which a run that takes a few hangs
KILLED_ENDS = 10  # seconds in which the system must have ended a killed process


def missing(program):
    """Why several processes cannot run here; "" if they can."""
    if shutil.which("mpirun") is None:
        return "there is no mpirun"
    version = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, check=False).stdout
    if "Open MPI" not in version and "OpenRTE" not in version:
        return "mpirun is not that of Open MPI"
    if not (program.parent / MODULE).exists():
        return "Arbalest was built without MPI"
    return ""


def copy_of_program(program, directory, module=None):
    """A copy of the program in a new directory, with this module beside it, if any."""
    directory.mkdir()
    shutil.copy(program, directory / "arbalest")
    if module is not None:
        shutil.copy(module, directory / MODULE)
    return directory / "arbalest"


def copy_with_mpich(program, directory):
    """A copy of the program whose module is built with MPICH."""
    copy = copy_of_program(program, directory)
    command = ["mpicxx.mpich", "-std=c++20", "-O2", "-shared", "-fPIC", f"-I{SOURCES}", SOURCES / "engine/process/mpi/module.cc"]
    subprocess.run([*command, "-o", directory / MODULE], check=True)
    return copy


def environment():
    return {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def launch(program, count, arguments, cwd, variables=None, wrappers=None, options=(), stdout=subprocess.DEVNULL):
    """Starts mpirun with `count` processes, and with more options.

    `variables`, `wrappers`: by rank, for ranks that differ: variables of the environment, and a command that starts the
    program.
    """
    command = ["mpirun", "--oversubscribe", "--bind-to", "none", *options]
    words = [str(program), "train", *map(str, arguments)]
    if variables is None and wrappers is None:
        command += ["-np", str(count), *words]
    else:
        for rank in range(count):
            differing = [f"{name}={value}" for name, value in (variables or {}).get(rank, {}).items()]
            start = ["env", *differing, *(wrappers or {}).get(rank, [])]
            command += ([":"] if rank > 0 else []) + ["-np", "1", *start, *words]
    return subprocess.Popen(
        command, env=environment(), cwd=cwd, stdout=stdout, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def end(process):
    """Waits for mpirun; returns its exit code and what the processes wrote to stderr. Throws if it hangs."""
    try:
        errors = process.communicate(timeout=LIMIT)[1]
    except subprocess.TimeoutExpired as error:
        os.killpg(process.pid, signal.SIGKILL)
        raise AssertionError(f"{error}; the processes wrote: {process.communicate()[1]}") from error
    return process.returncode, errors


def ranks_of(process):
    """The process ids of the ranks of a running mpirun, by rank, of those that have started."""
    found = {}
    for path in pathlib.Path("/proc").iterdir():
        if not path.name.isdigit():
            continue
        try:
            parent = int((path / "stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[1])
            if parent != process.pid:
                continue
            variables = (path / "environ").read_bytes().split(b"\0")
        except (OSError, ValueError, IndexError):
            continue
        for variable in variables:
            if variable.startswith(b"OMPI_COMM_WORLD_RANK="):
                found[int(variable.split(b"=")[1])] = int(path.name)
    return found


def with_argument(word):
    """The process ids of the programs that have this argument."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if word.encode() in (path / "cmdline").read_bytes().split(b"\0"):
                found.append(int(path.name))
        except OSError:
            continue  # it has just ended
    return found


def left_over(word):
    """The programs with this argument that mpirun has left. Those that it has just killed get time to end."""
    deadline = time.monotonic() + KILLED_ENDS
    while (found := with_argument(word)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


HOST_AGENT = """#!/bin/sh
# Starts Open MPI's daemon of a host: a namespace of this machine that has a name of its own.
host=$1
shift
exec unshare --uts sh -c "hostname $host; $*"
"""


def hosts(directory, processes_of):
    """Options of mpirun for hosts of these names and numbers of processes, which are parts of this machine."""
    agent = pathlib.Path(directory) / "host-agent"
    agent.write_text(HOST_AGENT, encoding="utf-8")
    agent.chmod(0o755)
    names = ",".join(f"{name}:{count}" for name, count in processes_of.items())
    network = ["--mca", "btl", "self,vader,tcp", "--mca", "btl_tcp_if_include", "lo", "--mca", "oob_tcp_if_include", "lo"]
    return ["--host", names, "--mca", "plm_rsh_agent", str(agent), *network]


def can(*command):
    """Whether this command works here."""
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def scratch():
    return tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
