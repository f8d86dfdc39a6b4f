"""Runs `arbalest train` in several processes under mpirun."""

import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

SKIPPED = 4  # the exit code of a skipped test (tests/support/skip.h)
LIMIT = 300  # seconds after which a run that takes a few hangs


def missing(program):
    """Why several processes cannot run here; "" if they can."""
    if shutil.which("mpirun") is None:
        return "there is no mpirun"
    version = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, check=False).stdout
    if "Open MPI" not in version and "OpenRTE" not in version:
        return "mpirun is not that of Open MPI"
    if not (program.parent / "libarbalest_mpi.so").exists():
        return "Arbalest was built without MPI"
    return ""


def environment():
    return {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def launch(program, count, arguments, cwd, variables=None, stdout=subprocess.DEVNULL, options=()):
    """Starts mpirun with `count` processes. `variables`: by rank, of the environment, for ranks that differ. `options`:
    of mpirun."""
    command = ["mpirun", "--oversubscribe", "--bind-to", "none", *options]
    words = [str(program), "train", *map(str, arguments)]
    if variables is None:
        command += ["-np", str(count), *words]
    else:
        for rank in range(count):
            differing = [f"{name}={value}" for name, value in variables.get(rank, {}).items()]
            command += ([":"] if rank > 0 else []) + ["-np", "1", "env", *differing, *words]
    return subprocess.Popen(
        command, env=environment(), cwd=cwd, stdout=stdout, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def end(process):
    """Waits for mpirun; returns its exit code and what the processes wrote to stderr. Throws if it hangs."""
    try:
        errors = process.communicate(timeout=LIMIT)[1]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
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


def scratch():
    return tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
