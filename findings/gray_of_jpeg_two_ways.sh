#!/usr/bin/env bash
# OpenCV 5.0.0 (opencv-python-headless 5.0.0.93) and Pillow 13.0.0: one JPEG file has two kinds of gray pixels.
#
# cv2.imdecode(..., IMREAD_GRAYSCALE), and Pillow after draft("L"), give the Y that the file stores. Pillow's convert("L"),
# and OpenCV's cvtColor of the colors, give the luma of the decoded colors, which were clamped to 0 ... 255 before. Where
# strong colors lie side by side these differ, in photographs by up to 18 levels. Nothing says which one a data set was
# read with, so a network that has learned on one of them sees other pixels on the other.
#
# The program makes a JPEG of 64 x 64 pixels whose samples are 0 or 255. Seen: the largest differences, in levels, of
#   IMREAD_GRAYSCALE and draft("L")       0
#   cvtColor of the colors, convert("L")  1
#   IMREAD_GRAYSCALE and convert("L")     more than 20
#
# Exit codes: 0 this is what happens, 1 it is not, or the packages cannot be installed.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check \
  numpy==2.4.6 opencv-python-headless==5.0.0.93 pillow==13.0.0
cat > "$folder/gray.py" <<'PYTHON'
import io

import cv2
import numpy as np
from PIL import Image

samples = 255 * np.random.default_rng(1).integers(0, 2, (64, 64, 3), np.uint8)
stream = io.BytesIO()
Image.fromarray(samples).save(stream, "JPEG", quality=75)
coded = np.frombuffer(stream.getvalue(), np.uint8)


def opened():
    return Image.open(io.BytesIO(stream.getvalue()))


draft = opened()
draft.draft("L", draft.size)
grays = {
    "IMREAD_GRAYSCALE": cv2.imdecode(coded, cv2.IMREAD_GRAYSCALE),
    'draft("L")': np.asarray(draft),
    "cvtColor": cv2.cvtColor(cv2.imdecode(coded, cv2.IMREAD_COLOR), cv2.COLOR_BGR2GRAY),
    'convert("L")': np.asarray(opened().convert("L")),
}


def largest(a, b):
    return int(np.abs(grays[a].astype(int) - grays[b].astype(int)).max())


stored = largest("IMREAD_GRAYSCALE", 'draft("L")')
colors = largest("cvtColor", 'convert("L")')
both = largest("IMREAD_GRAYSCALE", 'convert("L")')
print(f"stored Y: {stored}, luma of colors: {colors}, between them: {both}")
assert stored == 0 and colors <= 1 and both > 20
PYTHON
"$folder/venv/bin/python" "$folder/gray.py"
