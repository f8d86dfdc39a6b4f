"""TensorFlow's arrangements on a machine: one process with all threads, in several variants."""

import dataclasses
import itertools

from peers.arrangements import cores, types_on_cpu


@dataclasses.dataclass(frozen=True)
class Arrangement:
    name: str
    threads: int  # per operator
    operators: int = 0  # concurrent operators; 0: TensorFlow chooses
    is_compiled: bool = False  # XLA compiles forward, backward and update
    bfloat16: bool = False  # Keras's mixed_bfloat16
    huge_pages: bool = True  # requests huge pages, like Arbalest

    processes = ranks = 1
    trains_one_model = True

    def described(self):
        """Describes the arrangement's resources for a page."""
        at_a_time = ", one operator at a time" if self.operators == 1 else ""
        return {
            "division": f"{self.threads} thread{'s' if self.threads > 1 else ''}{at_a_time}",
            "memory_format": "channels last",
            "compiler": "XLA" if self.is_compiled else None,
            "precision": "BF16" if self.bfloat16 else "FP32",
            "asks_for_huge_pages": self.huge_pages,
        }


def arrangements(compiles=True, precision=None):
    """Returns (arrangements, [(name, reason)]): all arrangements, and why some are impossible."""
    types, skipped = types_on_cpu(precision)
    if not compiles:
        skipped.append(("XLA", "not asked for"))
    found = []
    for operators, is_compiled, bfloat16 in itertools.product((0, 1), (False, True) if compiles else (False,), types):
        name = f"{cores()} thread{'s' if cores() > 1 else ''}" + (", one operator at a time" if operators else "")
        name += (", XLA" if is_compiled else "") + (", bfloat16" if bfloat16 else "")
        found.append(Arrangement(name, cores(), operators, is_compiled, bfloat16))
    return found, skipped
