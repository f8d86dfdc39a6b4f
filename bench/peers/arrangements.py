"""The ways in which a peer can use a machine. Those of TensorFlow and JAX are chosen in files of their own."""

import dataclasses
import itertools
import os
import pathlib
import shutil

from peers import huge_pages

SMALL_PAGES = ", small pages"


@dataclasses.dataclass(frozen=True)
class Arrangement:
    name: str
    device: str = "cpu"  # or "cuda"
    processes: int = 1
    threads: int = 1  # per process
    is_parallel: bool = False  # the processes train one model together (DistributedDataParallel), not one model each
    channels_last: bool = False
    compile_mode: str = None  # mode of torch.compile, or "XLA" of TensorFlow and JAX
    bfloat16: bool = False
    operators: int = 0  # of TensorFlow that run at a time; 0: it chooses
    is_graphed: bool = False  # forward, backward and update as one CUDA graph
    huge_pages: bool = True  # requests huge pages, like Arbalest

    @property
    def trains_one_model(self):
        """Whether one model is trained. Models that are trained separately do not reach an accuracy together, so their
        speed is an upper bound."""
        return self.processes == 1 or self.is_parallel

    @property
    def ranks(self):
        """The number of processes that share a mini-batch."""
        return self.processes if self.is_parallel else 1

    def described(self):
        """Describes the arrangement's resources for a page."""
        what = "ranks" if self.is_parallel else "processes"
        division = f"{self.processes} {what} x " if self.processes > 1 else ""
        at_a_time = ", one operator at a time" if self.operators == 1 else ""
        is_torch = self.compile_mode not in (None, "XLA")
        return {
            "division": f"{division}{self.threads} thread{'s' if self.threads > 1 else ''}{at_a_time}",
            "memory_format": "channels last" if self.channels_last else "contiguous",
            "compiler": f"torch.compile ({self.compile_mode})" if is_torch else self.compile_mode,
            "precision": "BF16" if self.bfloat16 else "FP32",
            "asks_for_huge_pages": self.huge_pages,
        }


def cores():
    return len(os.sched_getaffinity(0))


def reason_against_compiling():
    compiler = os.environ.get("CXX", "g++")
    if shutil.which(compiler) is None and shutil.which("clang++") is None:
        return f"there is no C++ compiler ({compiler})"
    return None


def reason_against_bfloat16():
    flags = pathlib.Path("/proc/cpuinfo").read_text()
    if "avx512_bf16" not in flags and "amx_bf16" not in flags:
        return "this CPU has neither avx512_bf16 nor amx_bf16"
    return None


def reason_against_cuda():
    import torch  # imported here, so that other functions work without PyTorch

    return None if torch.cuda.is_available() else "PyTorch finds no GPU"


def types_on_cpu(precision):
    """Returns ([whether in bfloat16], [(name, reason)]) for a job of this precision. None leaves the precision open."""
    if precision == "TF32":
        return [], [("TF32", "for GPUs only")]
    reason = reason_against_bfloat16() if precision != "FP32" else "the job says FP32"
    if reason:
        return [] if precision == "BF16" else [False], [("bfloat16", reason)]
    return [True] if precision == "BF16" else [False, True], []


def divisions(count):
    """Returns every division of the cores among ranks of one model, and one process with a separate model per core."""
    found = []
    for ranks in (n for n in range(1, count + 1) if count % n == 0):
        threads = count // ranks
        name = f"{threads} thread{'s' if threads > 1 else ''}"
        if ranks > 1:
            name = f"{ranks} ranks" + (f" x {name}" if threads > 1 else "")
        found.append(Arrangement(name, processes=ranks, threads=threads, is_parallel=ranks > 1))
    return found + ([Arrangement(f"{count} processes", processes=count)] if count > 1 else [])


def on_cpu(compiles, precision=None):
    """Returns (arrangements, [(name, reason)]): all arrangements, and why some are impossible."""
    modes, skipped = [None], []
    if not compiles:
        skipped.append(("compiled", "not asked for"))
    elif reason := reason_against_compiling():
        skipped.append(("compiled", reason))
    else:
        modes.append("default")
    types, reasons = types_on_cpu(precision)
    found = []
    for kind, channels_last, mode, bfloat16 in itertools.product(divisions(cores()), (False, True), modes, types):
        name = kind.name + (", channels last" if channels_last else "") + (", compiled" if mode else "")
        found.append(
            dataclasses.replace(
                kind,
                name=name + (", bfloat16" if bfloat16 else ""),
                channels_last=channels_last,
                compile_mode=mode,
                bfloat16=bfloat16,
            )
        )
    return found, skipped + reasons


def on_cuda(compiles, precision=None, processes=(2, 4, 8)):
    """Returns the same for one GPU, in FP32 unless the job says otherwise. `processes`: how many share the GPU."""
    if reason := reason_against_cuda():
        return [], [(name, reason) for name in ("eager", "CUDA graph", "compiled", "processes sharing the GPU")]
    kinds = [Arrangement("eager"), Arrangement("CUDA graph", is_graphed=True)]
    skipped = []
    if compiles:
        kinds.append(Arrangement("compiled", compile_mode="max-autotune"))
    else:
        skipped.append(("compiled", "not asked for"))
    found = []
    for kind, channels_last in itertools.product(kinds, (False, True)):
        name = kind.name + (", channels last" if channels_last else "")
        found.append(dataclasses.replace(kind, name=name, device="cuda", channels_last=channels_last))
    found += [Arrangement(f"shared by {m} processes, CUDA graph", "cuda", m, is_graphed=True) for m in processes]
    return [dataclasses.replace(one, bfloat16=precision == "BF16") for one in found], skipped


def arrangements(device, compiles=True, precision=None):
    return on_cpu(compiles, precision) if device == "cpu" else on_cuda(compiles, precision)


def with_other_pages(arrangement):
    """Returns the same arrangement with huge pages turned off, or on again."""
    name = arrangement.name.removesuffix(SMALL_PAGES) if not arrangement.huge_pages else arrangement.name + SMALL_PAGES
    return dataclasses.replace(arrangement, name=name, huge_pages=not arrangement.huge_pages)


def reason_against_other_pages(arrangement):
    if arrangement.device != "cpu":
        return "the arrangement's memory is the GPU's"
    return huge_pages.reason_against_choosing()


def named(found, name):
    """Returns the arrangement with this name, also one without huge pages, or None."""
    for one in found:
        for variant in (one, with_other_pages(one)):
            if variant.name == name:
                return variant
    return None
