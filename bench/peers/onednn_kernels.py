"""Reads which kernels of oneDNN a peer runs, from what oneDNN prints about each."""

import contextlib
import os
import sys
import tempfile

LEAST_SHARE = 0.01  # of the time of all kernels, below which a reference kernel does not matter


def kernels_in(text):
    """Returns (kind, implementation, pass, milliseconds) of each kernel that ran, as oneDNN 2 and 3 print it."""
    found = []
    for line in text.splitlines():
        words = line.split(",")
        if words[0] != "onednn_verbose" or "exec" not in words[1:4]:
            continue
        kind, implementation, which = words[words.index("exec") + 2 :][:3]
        found.append((kind, implementation, which, float(words[-1])))
    return found


def is_reference(implementation):
    """Whether it is a plain loop, which oneDNN takes if it has no kernel for the processor: "ref:any"."""
    return any(part.startswith("ref") for part in implementation.split(":"))


def reference_shares(text):
    """Returns {kernel: share of the time of all kernels} for the reference kernels that matter, the largest first."""
    ran = kernels_in(text)
    total = sum(milliseconds for *_, milliseconds in ran)
    shares = {}
    for kind, implementation, which, milliseconds in ran:
        if is_reference(implementation) and total > 0.0:
            name = kind if which == "undef" else f"{kind} {which}"
            shares[name] = shares.get(name, 0.0) + milliseconds / total
    mattering = {name: share for name, share in shares.items() if share >= LEAST_SHARE}
    return dict(sorted(mattering.items(), key=lambda item: -item[1]))


def told(shares):
    """Returns "convolution backward_weights (63 %)", or "-" if there is none. `shares`: None if they are not known."""
    return ", ".join(f"{name} ({100 * share:.0f} %)" for name, share in (shares or {}).items()) or "-"


@contextlib.contextmanager
def said_to_stdout():
    """Collects what the process, with its libraries, writes to stdout in this context: yields a function that returns it
    afterwards."""
    with tempfile.TemporaryFile() as file:
        sys.stdout.flush()
        before = os.dup(1)
        os.dup2(file.fileno(), 1)
        try:
            yield lambda: text
        finally:
            os.dup2(before, 1)
            os.close(before)
            file.seek(0)
            text = file.read().decode(errors="replace")
