"""The plots of the pages.

`python -m bench.plot > docs/benchmarks.svg` draws the table of docs/benchmarks.md. bench/scale_bench.py draws curves.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks.md"
_ROW = re.compile(r"^\| ([^|]+) \| [\d.]+ \| [\d.]+ \| ([\d.]+) \|$", re.M)
_LABELS, _BAR, _ROW_HEIGHT, _TOP = 220, 400, 34, 44
# Both schemes of a browser: grey text on no background, a bar that stands out from black and white alike.
_STYLE = (
    "text{font:14px sans-serif;fill:#767676}.n{font-weight:bold}.us{fill:#00897b}"
    ".hudi{stroke:#767676;stroke-dasharray:4}"
)
_PANEL, _PANEL_HEIGHT, _PANELS_IN_ROW, _INSET = 230, 190, 4, 20
_DRAWN, _DRAWN_HEIGHT = _PANEL - 2 * _INSET, 90


@dataclass(frozen=True)
class Growth:
    """A curve: seconds and peak memory at sizes, smallest first, and the exponents of both."""

    grows: str
    measure: str
    sizes: Sequence[float]
    seconds: Sequence[float]
    peaks_mb: Sequence[float]
    exponent: float
    memory_exponent: float


def plot(page: str) -> str:
    """An SVG with a bar for each row of the table.

    Args: page: the text of the page.
    """
    factors = [(name.strip(), float(factor)) for name, factor in _ROW.findall(page)]
    width_of_one = _BAR / max(factor for _, factor in factors)
    height = _TOP + _ROW_HEIGHT * len(factors) + 10
    hudi_x = _LABELS + width_of_one
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LABELS + _BAR + 60} {height}" role="img">',
        "<title>Times as fast as Apache Hudi 1.2.0</title>",
        f"<style>{_STYLE}</style>",
        f'<text x="{_LABELS}" y="20">times as fast as Apache Hudi 1.2.0 (dashed: 1)</text>',
    ]
    for number, (name, factor) in enumerate(factors):
        y, width = _TOP + _ROW_HEIGHT * number, width_of_one * factor
        parts += [
            f'<text x="{_LABELS - 10}" y="{y + 17}" text-anchor="end">{name}</text>',
            f'<rect class="us" x="{_LABELS}" y="{y}" width="{width:.1f}" height="24" rx="3"/>',
            f'<text class="n" x="{_LABELS + width + 8:.1f}" y="{y + 17}">{factor:g}</text>',
        ]
    parts.append(f'<line class="hudi" x1="{hudi_x:.1f}" x2="{hudi_x:.1f}" y1="32" y2="{height - 8}"/>')
    return "\n".join([*parts, "</svg>", ""])


def growth_curves(curves: Sequence[Growth]) -> str:
    """An SVG with a small panel for each curve: seconds over sizes, both as logarithms."""
    height = _PANEL_HEIGHT * math.ceil(len(curves) / _PANELS_IN_ROW)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_PANEL * _PANELS_IN_ROW} {height}" role="img">',
        "<title>Processor seconds as a table grows; dashed: linear</title>",
        f"<style>{_STYLE}text{{font-size:12px}}.line{{fill:none;stroke:#00897b;stroke-width:2}}</style>",
    ]
    for number, curve in enumerate(curves):
        x, y = number % _PANELS_IN_ROW * _PANEL, number // _PANELS_IN_ROW * _PANEL_HEIGHT
        parts += [f'<g transform="translate({x + _INSET} {y})">', *_panel(curve), "</g>"]
    return "\n".join([*parts, "</svg>", ""])


def _panel(curve: Growth) -> list[str]:
    """The curve, and a dashed line of exponent 1 through its last point. A decade is as wide as it is high."""
    first, last = math.log10(curve.sizes[0]), math.log10(curve.sizes[-1])
    highest = max(map(math.log10, curve.seconds))
    decade = min(_DRAWN / (last - first), _DRAWN_HEIGHT / max(1.0, highest - min(map(math.log10, curve.seconds))))
    bottom = 48 + _DRAWN_HEIGHT

    def at(size: float, seconds: float) -> tuple[float, float]:
        return (math.log10(size) - first) * decade, 48 + (highest - math.log10(seconds)) * decade

    dots = [at(size, seconds) for size, seconds in zip(curve.sizes, curve.seconds, strict=True)]
    begin_x = max(0.0, dots[-1][0] - (bottom - dots[-1][1]))
    begin_y = dots[-1][1] + dots[-1][0] - begin_x
    took = f"{curve.seconds[0]:.2g} to {curve.seconds[-1]:.3g} s"
    return [
        f'<text class="n" y="16">{curve.measure}</text>',
        f'<text y="32">{_short(curve.sizes[0])} to {_short(curve.sizes[-1])} {curve.grows}</text>',
        f'<line class="hudi" x1="{begin_x:.1f}" y1="{begin_y:.1f}" x2="{dots[-1][0]:.1f}" y2="{dots[-1][1]:.1f}"/>',
        f'<polyline class="line" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in dots)}"/>',
        *(f'<circle class="us" cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in dots),
        f'<text y="{bottom + 20}">{took}, exponent <tspan class="n">{curve.exponent:.2f}</tspan></text>',
    ]


def _short(number: float) -> str:
    """100000 as 100k, 3000000 as 3M."""
    for unit, letter in ((1e6, "M"), (1e3, "k")):
        if number >= unit:
            return f"{number / unit:g}{letter}"
    return f"{number:g}"


if __name__ == "__main__":
    print(plot(PAGE.read_text()), end="")
