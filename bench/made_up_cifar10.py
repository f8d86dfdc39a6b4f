#!/usr/bin/env python3
"""Writes random images in CIFAR-10's format, to measure speed without the dataset: made_up_cifar10.py DIR [RECORDS].

RECORDS is the number of images in each of the six files. The real files have 10,000."""

import pathlib
import random
import sys

FILES = [f"data_batch_{number}.bin" for number in range(1, 6)] + ["test_batch.bin"]
PIXELS = 3 * 32 * 32  # per record, after one byte of label


def main():
    if len(sys.argv) not in (2, 3) or not all(number.isdigit() and int(number) > 0 for number in sys.argv[2:]):
        sys.exit(__doc__)
    directory = pathlib.Path(sys.argv[1])
    records = int(sys.argv[2]) if len(sys.argv) == 3 else 10_000
    directory.mkdir(parents=True, exist_ok=True)
    numbers = random.Random(1)
    for name in FILES:
        images = numbers.randbytes(records * PIXELS)
        with open(directory / name, "wb") as file:
            for record in range(records):
                file.write(bytes([record % 10]) + images[record * PIXELS:(record + 1) * PIXELS])


if __name__ == "__main__":
    main()
