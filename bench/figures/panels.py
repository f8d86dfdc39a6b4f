"""Draws a chart with a row for each case and a column of bars for each of its figures."""

import dataclasses

from figures.chart import LIGHT, TOP, WIDTH, document, label, line

NAMES = 180  # width of the names
PITCH = 26
GAP = 62  # of a column, for the figure behind a bar


@dataclasses.dataclass
class Column:
    """Figures in the order of the rows; None: there is none."""

    title: str
    values: list
    form: str
    from_zero: bool = True  # else the column is a row of dots from the least figure to the largest

    def share(self, value):
        """Returns the position of a figure in [0, 1]."""
        there = [each for each in self.values if each is not None]
        low = 0.0 if self.from_zero else min(there)
        return (value - low) / (max(there) - low) if max(there) > low else 0.5


def cell(column, color, value, left, width, y):
    if value is None:
        return [label(left, y + 5, "-", "start")]
    at = left + max(2.0, (width - GAP) * column.share(value))
    fill = f'class="dot s{color}" fill="{LIGHT[color]}"'
    if column.from_zero:
        mark = f'<rect {fill} fill-opacity=".7" x="{left:.1f}" y="{y - 7}" width="{at - left:.1f}" height="14"/>'
    else:
        rail = f'<path class="grid" d="M{left:.1f} {y}H{left + width - GAP:.1f}" {line("#888")} stroke-opacity=".25"/>'
        mark = f'{rail}<circle {fill} cx="{at:.1f}" cy="{y}" r="4"/>'
    return [mark, label(at + 7, y + 5, column.form.format(value), "start")]


def panels(title, names, columns):
    """Returns an SVG. `names`: of the rows."""
    width = (WIDTH - NAMES) / len(columns)
    content = []
    for number, column in enumerate(columns):
        left = NAMES + width * number
        content.append(label(left, TOP + 10, column.title, "start"))
        for row, value in enumerate(column.values):
            content += cell(column, number, value, left, width, TOP + PITCH * (row + 1) + 6)
    content += [label(16, TOP + PITCH * (row + 1) + 11, name, "start") for row, name in enumerate(names)]
    return document(title, content, TOP + PITCH * (len(names) + 1) + 6)
