"""The page of a table: a template, a script, a style and the facts in one HTML file.

The facts are gzipped JSON in base64, so that no text in them can break out of the element; the script inserts them as
text, never as HTML. The name, the path and the first figures are escaped HTML, visible without the script. A policy on
the page forbids network access.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from typing import cast

from pyhudi.formats.hfile.block import gzipped
from pyhudi.report.facts import Facts

__all__ = ["Report", "report_html"]


@dataclass(frozen=True, slots=True)
class Report:
    """A page that a notebook displays. `html`: the whole page."""

    html: str = field(repr=False)

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{escape(self.html)}" sandbox="allow-scripts" '
            'style="width:100%;height:720px;border:0" title="Hudi table"></iframe>'
        )


def report_html(facts: Facts) -> str:
    """Return the page as text."""
    text = json.dumps(facts, ensure_ascii=True, separators=(",", ":"))
    data = base64.b64encode(gzipped(text.encode())).decode("ascii")
    page = files("pyhudi.report").joinpath("page")
    parts = {name: page.joinpath(name).read_text("utf-8") for name in ("uplot.min.js", "uplot.min.css")}
    own = {name: page.joinpath(name).read_text("utf-8") for name in ("page.js", "page.css")}
    template = page.joinpath("page.html").read_text("utf-8")
    values = {
        "style": parts["uplot.min.css"] + own["page.css"],
        "script": parts["uplot.min.js"] + "\n" + own["page.js"],
        "title": escape(str(facts["name"])),
        "path": escape(str(facts["path"])),
        "figures": _figures(cast("Sequence[Sequence[str]]", facts.get("figures", ()))),
        "data": data,
    }
    return _fill(template, values)


def _fill(template: str, values: Mapping[str, str]) -> str:
    """Return the template with its placeholders filled. Placeholders inside values stay text."""
    return re.sub(r"@(\w+)@", lambda mark: values[mark[1]], template)


def _figures(figures: Sequence[Sequence[str]]) -> str:
    return "".join(
        f'<div class="card"><dt>{escape(name)}</dt><dd class="{escape(state)}">{escape(value)}</dd>'
        + (f"<dd><small>{escape(more)}</small></dd>" if more else "")
        + "</div>"
        for name, value, more, state in figures
    )
