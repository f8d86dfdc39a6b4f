#!/usr/bin/env python3
"""Trains an Arbalest job file with PyTorch, in its fastest arrangement.

    pytorch_peer.py pick --model lenet          images/s of every arrangement on 200 steps, the fastest several times
    pytorch_peer.py train --model lenet --arrangement "4 ranks" --target 0.99 --seed 1
    pytorch_peer.py train --model resnet20 --arrangement "2 ranks" --all-epochs     accuracies of every epoch
    pytorch_peer.py turns --model lenet         measures for as many seconds as each line of stdin says

Results are JSON objects on stdout, one a line; stderr is for reading. Exit codes: 0 done, 1 a process failed, 2 usage,
3 a job that the peer cannot train, 4 skipped (no PyTorch, GPU or data), 9 the target was not reached.
"""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from peers.command_line import SKIPPED, say  # noqa: E402

try:
    import torch
except ImportError as missing:
    say(f"skipped: {missing}")
    sys.exit(SKIPPED)

from peers.arrangements import arrangements  # noqa: E402
from peers.program import Framework, main  # noqa: E402
from peers.pytorch_worker import serve  # noqa: E402


def versions():
    one_dnn = re.search(r"MKL-DNN v(\S+)", torch.__config__.show())
    return {
        "pytorch": torch.__version__,
        "one_dnn": one_dnn.group(1) if one_dnn else None,
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else "",
    }


def add_options(parser):
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"), help="(cpu)")
    parser.add_argument("--tf32", action="store_true", help="GPU: TF32 instead of FP32 multiplications")


PYTORCH = Framework(
    "PyTorch",
    serve,
    lambda arguments, compiles, precision: arrangements(arguments.device, compiles, precision),
    versions,
    add_options,
    lambda arguments: {"tf32": arguments.tf32},
)

if __name__ == "__main__":
    main(PYTORCH, __doc__)
