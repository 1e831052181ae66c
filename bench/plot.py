"""The plot of docs/benchmarks.md, made from the table of that page: `python -m bench.plot > docs/benchmarks.svg`."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks.md"
_ROW = re.compile(r"^\| ([^|]+) \| [\d.]+ \| [\d.]+ \| ([\d.]+) \|$", re.M)
_LABELS, _BAR, _ROW_HEIGHT, _TOP = 220, 400, 34, 44
# Both schemes of a browser: grey text on no background, a bar that stands out from black and white alike.
_STYLE = (
    "text{font:14px sans-serif;fill:#767676}.n{font-weight:bold}.us{fill:#00897b}"
    ".hudi{stroke:#767676;stroke-dasharray:4}"
)


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


if __name__ == "__main__":
    print(plot(PAGE.read_text()), end="")
