"""Runs a test in namespaces of its own: network, processes and mounts. The kernel ends all of it with the test."""

import os
import shutil
import subprocess
import sys

INSIDE = "ARBALEST_TEST_INSIDE"  # set for the test that runs in the namespaces
ENTER = ["unshare", "--net", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc"]
SCRATCH = "/dev/shm"  # where MPI has its shared memory


def missing():
    """Why this system gives no namespaces; "" if it does."""
    for program in ("ip", "unshare", "mount"):
        if shutil.which(program) is None:
            return f"there is no {program} (Debian: iproute2, util-linux, mount)"
    needed = f"ip link set lo up && mount -t tmpfs none {SCRATCH}"
    tried = subprocess.run([*ENTER, "sh", "-c", needed], capture_output=True, text=True, check=False)
    return "" if tried.returncode == 0 else f"no namespaces: {tried.stderr.strip()}"


def enter():
    """Begins this script again in namespaces of its own. Returns there.

    MPI names its files by host and process id, which two such tests share. So each has a file system of its own for them.
    """
    if not os.environ.get(INSIDE):
        os.execvpe(ENTER[0], [*ENTER, sys.executable, "-B", *sys.argv], {**os.environ, INSIDE: "1"})
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "none", SCRATCH], check=True)
    os.environ["TMPDIR"] = SCRATCH
