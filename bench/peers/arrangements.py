"""The ways in which PyTorch can use a machine."""

import dataclasses
import itertools
import os
import pathlib
import shutil

import torch


@dataclasses.dataclass(frozen=True)
class Arrangement:
    name: str
    device: str = "cpu"  # or "cuda"
    processes: int = 1
    threads: int = 1  # of each process
    is_parallel: bool = False  # the processes train one model (DistributedDataParallel), and not one each
    channels_last: bool = False
    compile_mode: str = None  # of torch.compile
    bfloat16: bool = False
    is_graphed: bool = False  # forward, backward and update as one CUDA graph

    @property
    def trains_one_model(self):
        """Models that are trained apart from each other come to no accuracy together: their speed is an upper bound."""
        return self.processes == 1 or self.is_parallel


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
    return None if torch.cuda.is_available() else "PyTorch finds no GPU"


def on_cpu(compiles):
    """All of them, and why some cannot be: (arrangements, [(name, reason)])."""
    k = cores()
    kinds = (
        [
            Arrangement(f"{k} threads", threads=k),
            Arrangement(f"{k} ranks", processes=k, is_parallel=True),
            Arrangement(f"{k} processes", processes=k),
        ]
        if k > 1
        else [Arrangement("1 thread")]
    )
    skipped = []
    modes = [None]
    if not compiles:
        skipped.append(("compiled", "not asked for"))
    elif reason := reason_against_compiling():
        skipped.append(("compiled", reason))
    else:
        modes.append("default")
    types = [False]
    if reason := reason_against_bfloat16():
        skipped.append(("bfloat16", reason))
    else:
        types.append(True)
    found = []
    for kind, channels_last, mode, bfloat16 in itertools.product(kinds, (False, True), modes, types):
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
    return found, skipped


def on_cuda(compiles, processes=(2, 4, 8)):
    """The same for one GPU; `processes`: how many share it."""
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
    return found, skipped


def arrangements(device, compiles=True):
    return on_cpu(compiles) if device == "cpu" else on_cuda(compiles)
