"""JAX's arrangements on a machine: one process with all threads, and one process with a separate model per core."""

import dataclasses
import itertools

from peers.arrangements import cores, divisions, types_on_cpu


def arrangements(compiles=True, precision=None):
    """Returns (arrangements, [(name, reason)]): all arrangements, and why some are impossible."""
    types, skipped = types_on_cpu(precision)
    if not compiles:
        return [], [*skipped, ("jit", "not asked for")]
    kinds = [one for one in divisions(cores()) if not one.is_parallel]
    found = []
    for kind, bfloat16 in itertools.product(kinds, types):
        name = kind.name + (", bfloat16" if bfloat16 else "")
        how = {"compile_mode": "XLA", "channels_last": True, "bfloat16": bfloat16}
        found.append(dataclasses.replace(kind, name=name, **how))
    return found, skipped
