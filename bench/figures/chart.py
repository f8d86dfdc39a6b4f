"""Draws charts as SVG files, readable on light and dark background; they look like those of `arbalest bench`.

`arbalest bench` draws its own runs (study/svg_chart.h). This module draws figures of several benches, and needs no
build.
"""

import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 760, 420
LEFT, RIGHT, TOP, BOTTOM = 80, 580, 40, 360
KEY_WIDTH = 36  # of a curve in the legend

# Colors that can be distinguished with any color vision (Okabe and Ito 2008). They are lighter on dark background.
LIGHT = ("#0072b2", "#b84a00", "#007a5a", "#a8457f", "#8a6d00", "#666", "#6b4fa3", "#2b7fb8")
DARK = ("#5ab4f0", "#f08a3c", "#2fc79a", "#e08bbd", "#e6c229", "#aaa", "#b39ddb", "#8fd0f5")
DASHES = ("", "9 4", "2 4", "9 4 2 4", "18 4")  # distinguish curves without color


def style():
    light = "".join(f".s{i}{{--c:{color}}}" for i, color in enumerate(LIGHT))
    dark = "".join(f".s{i}{{--c:{color}}}" for i, color in enumerate(DARK))
    return (
        f"svg{{color-scheme:light dark;background:Canvas}}text{{fill:CanvasText}}{light}"
        f"@media(prefers-color-scheme:dark){{{dark}}}.axis{{stroke:GrayText;fill:none}}"
        ".grid{stroke:GrayText;stroke-opacity:.25}"
        ".curve{fill:none;stroke:var(--c);stroke-width:2;stroke-linejoin:round}.dot{fill:var(--c)}"
    )


def tick_text(value):
    """ "1,234", "12.5", "0.05" """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.6g}"


class Axis:
    """An axis from zero, or (`doubling`) a logarithmic one with ticks at powers of two."""

    def __init__(self, title, values, doubling=False):
        self.title, self.doubling = title, doubling
        if doubling:
            first, last = math.floor(math.log2(min(values))), math.ceil(math.log2(max(values)))
            self.ticks = [2.0**i for i in range(first, max(last, first + 1) + 1)]
        else:
            self.ticks = linear_ticks(max(values))
        self.low, self.high = self.ticks[0], self.ticks[-1]

    def share(self, value):
        """Returns the position of a value on an axis of length 1."""
        if self.doubling:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


def linear_ticks(high):
    """Returns about five ticks from zero, 1, 2 or 5 times a power of ten apart. The last one is not below `high`."""
    unit = 10.0 ** math.floor(math.log10(high / 5.0))
    step = next(factor * unit for factor in (1, 2, 5, 10) if high / 5.0 <= factor * unit * 1.001)
    return [round(i * step, 12) for i in range(math.ceil(high / step - 1e-9) + 1)]


def document(title, content, height=HEIGHT):
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" '
        f'font-size="13" role="img">\n<title>{escape(title)}</title>\n<style>{style()}</style>\n'
        f'<text x="16" y="22" font-weight="bold">{escape(title)}</text>\n' + "\n".join(content) + "\n</svg>\n"
    )


def label(x, y, text, anchor="middle"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def axes(x, y):
    content = []
    for tick in y.ticks:
        at = BOTTOM - (BOTTOM - TOP) * y.share(tick)
        content.append(f'<path class="grid" d="M{LEFT} {at:.1f}H{RIGHT}" {line("#888")} stroke-opacity=".25"/>')
        content.append(label(LEFT - 8, at + 4, tick_text(tick), "end"))
    content += [label(LEFT + (RIGHT - LEFT) * x.share(tick), BOTTOM + 20, tick_text(tick)) for tick in x.ticks]
    content.append(f'<path class="axis" d="M{LEFT} {TOP}V{BOTTOM}H{RIGHT}" {line("#888")}/>')
    content.append(label((LEFT + RIGHT) / 2, BOTTOM + 44, x.title))
    middle = (TOP + BOTTOM) / 2
    content.append(
        f'<text transform="translate(18 {middle}) rotate(-90)" text-anchor="middle">{escape(y.title)}</text>'
    )
    return content


def line(color, width=1):
    """Attributes for viewers without CSS variables; the style sheet overrides them in browsers."""
    return f'fill="none" stroke="{color}" stroke-width="{width}"'


def curve(color, path):
    dashes = DASHES[color % len(DASHES)]
    dashes = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'<path class="curve s{color}"{dashes} d="{path}" {line(LIGHT[color], 2)}/>'


def dot(color, x, y):
    return f'<circle class="dot s{color}" cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{LIGHT[color]}"/>'


def line_chart(title, x, y, series, notes=()):
    """`series`: {name: [(x, y), ...]}. `notes`: lines of text below the chart."""
    content = axes(x, y)
    content += [label(16, HEIGHT + 18 * (line + 1), note, "start") for line, note in enumerate(notes)]

    def place(point):
        return LEFT + (RIGHT - LEFT) * x.share(point[0]), BOTTOM - (BOTTOM - TOP) * y.share(point[1])

    for number, (name, points) in enumerate(series.items()):
        places = [place(point) for point in points]
        color, middle = number % len(LIGHT), TOP + 20 * number + 5
        content.append(curve(color, "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in places)))
        content.append(curve(color, f"M{RIGHT + 16} {middle}h{KEY_WIDTH}"))
        content += [dot(color, a, b) for a, b in places]
        content.append(label(RIGHT + 16 + KEY_WIDTH + 8, middle + 5, name, "start"))
    return document(title, content, HEIGHT + (18 * len(notes) + 10 if notes else 0))
