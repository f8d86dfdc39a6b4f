"""Requests huge pages for a peer's memory, like Arbalest with madvise (engine/cpu/device/device.cc).

glibc requests them when malloc gets memory from the system, PyTorch when it makes a large tensor. Both read the
environment when a process starts. A process's smaps_rollup tells how much it has got.
"""

import contextlib
import os
import pathlib

SETTING = pathlib.Path("/sys/kernel/mm/transparent_hugepage/enabled")
TUNABLE = "glibc.malloc.hugetlb"  # glibc 2.35 and later; 1: madvise
FIRST_GLIBC = (2, 35)


def environment(before, asked_for):
    """Returns {name: value} of environment variables for a process that requests huge pages, or does not. None: the
    variable must not be set. `before`: the environment, whose other settings are kept."""
    tunables = [one for one in before.get("GLIBC_TUNABLES", "").split(":") if one and not one.startswith(f"{TUNABLE}=")]
    if asked_for:
        tunables.append(f"{TUNABLE}=1")
    return {"GLIBC_TUNABLES": ":".join(tunables) or None, "THP_MEM_ALLOC_ENABLE": "1" if asked_for else None}


@contextlib.contextmanager
def asked_for_by_children(asked_for):
    """In this context, new processes request huge pages if `asked_for`, or do not."""
    changes = environment(os.environ, asked_for)
    before = {name: os.environ.get(name) for name in changes}
    set_all(changes)
    try:
        yield
    finally:
        set_all(before)


def set_all(values):
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def mode(text):
    """Returns the value in brackets of a setting such as "always [madvise] never"."""
    return text.partition("[")[2].partition("]")[0]


def system_mode():
    try:
        return mode(SETTING.read_text())
    except OSError:
        return "never"


def reason_against_choosing(current=None, glibc=None):
    """Returns the reason why processes with and without huge pages cannot be compared here, or None if they can."""
    current = current or system_mode()
    if current == "never":
        return f"the system gives nobody huge pages ({SETTING})"
    if current == "always":
        return f"the system gives everybody huge pages ({SETTING})"
    glibc = glibc or os.confstr("CS_GNU_LIBC_VERSION") or ""
    numbers = glibc.rpartition(" ")[2].split(".")[:2]
    if not all(one.isdigit() for one in numbers) or tuple(map(int, numbers)) < FIRST_GLIBC:
        return f"{glibc or 'this C library'} asks for none; glibc does from 2.35 on"
    return None


def resident_bytes(process="self"):
    """Returns the bytes of a process's memory in huge pages."""
    for line in pathlib.Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
        if line.startswith("AnonHugePages:"):
            return 1024 * int(line.split()[1])
    return 0
