#!/usr/bin/env python3
"""Files of CIFAR-10's form with random images, for measuring speed where the data set is absent: made_up_cifar10.py DIR."""

import pathlib
import random
import sys

FILES = [f"data_batch_{number}.bin" for number in range(1, 6)] + ["test_batch.bin"]
RECORDS = 10_000  # of a file: a label, then 3 x 32 x 32 bytes
PIXELS = 3 * 32 * 32


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    directory = pathlib.Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    numbers = random.Random(1)
    for name in FILES:
        images = numbers.randbytes(RECORDS * PIXELS)
        with open(directory / name, "wb") as file:
            for record in range(RECORDS):
                file.write(bytes([record % 10]) + images[record * PIXELS:(record + 1) * PIXELS])


if __name__ == "__main__":
    main()
