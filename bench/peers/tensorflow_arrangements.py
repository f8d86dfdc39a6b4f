"""TensorFlow's arrangements on a machine: one process with all threads, in several variants."""

import itertools

from peers.arrangements import Arrangement, cores, types_on_cpu


def arrangements(compiles=True, precision=None):
    """Returns (arrangements, [(name, reason)]): all arrangements, and why some are impossible."""
    types, skipped = types_on_cpu(precision)
    if not compiles:
        skipped.append(("XLA", "not asked for"))
    found = []
    for operators, mode, bfloat16 in itertools.product((0, 1), (None, "XLA") if compiles else (None,), types):
        name = f"{cores()} thread{'s' if cores() > 1 else ''}" + (", one operator at a time" if operators else "")
        name += (", XLA" if mode else "") + (", bfloat16" if bfloat16 else "")
        how = {"compile_mode": mode, "bfloat16": bfloat16, "operators": operators}
        found.append(Arrangement(name, threads=cores(), channels_last=True, **how))
    return found, skipped
