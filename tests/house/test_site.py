"""Pages and pictures that are made from code, or from other pages."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

import pyhudi
from bench.plot import plot
from docs.notebook import notebook
from pyhudi import errors
from pyhudi.cli.page import cli_page
from pyhudi.model.options.__main__ import options_page, streamer_options_page
from pyhudi.sql.procedures.page import procedures_page
from tests.support.source import ROOT

DOCS = ROOT / "docs"
GENERATED: dict[str, Callable[[], str]] = {
    "benchmarks.svg": lambda: plot((DOCS / "benchmarks.md").read_text()),
    "cli.md": cli_page,
    "first_hour.ipynb": lambda: notebook((DOCS / "tutorial.md").read_text()),
    "options.md": options_page,
    "procedures.md": procedures_page,
    "streamer-options.md": streamer_options_page,
}


@pytest.mark.parametrize("name", GENERATED)
def test_a_generated_file_is_what_its_source_makes_of_it(name: str) -> None:
    assert (DOCS / name).read_text() == GENERATED[name](), "run `make docs`"


def test_every_argument_of_every_command_has_its_meaning() -> None:
    rows = [line for line in cli_page().splitlines() if line.startswith("| `")]

    assert rows
    assert [row for row in rows if row.endswith("|  |")] == []


def test_the_page_of_commands_says_once_what_many_commands_have() -> None:
    lines = cli_page().splitlines()
    rows = [line for line in lines if line.startswith("| `")]

    assert rows.count("| `TABLE` | Path of the table; with --catalog its name. |") == 1
    assert rows.count("| `--dry-run` | Only show what would be done. |") == 1
    assert max(map(rows.count, rows)) == 1
    text = " ".join(lines[lines.index("### clean") : lines.index("### archive")])
    assert "In Python: `HudiTable.clean`. Also: `--schedule`, `--run`, `--dry-run`, `--yes`, `-y`." in text
    assert len(lines) < 640


def test_the_page_of_options_begins_with_what_most_users_set_and_says_nothing_to_maintainers() -> None:
    page = options_page()
    first = page.partition("\n## ")[0]
    rows = re.findall(r"^\| \[`(.*?)`\]\(#(.*?)\) \| (.*?) \| (.*?) \| (.*?) \|$", first, re.M)

    assert [row[2] for row in rows[:4]] == ["`record_key`", "`partition_by`", "`ordering`", "`table_type`"]
    assert 10 <= len(rows) <= 14
    assert rows[0][0] == "hoodie.datasource.write.recordkey.field"
    assert rows[3][3] == "`COPY_ON_WRITE`"
    assert max(len(row[4]) for row in rows) <= 95
    anchors = {heading.lower().replace("'", "").replace(" ", "-") for heading in re.findall(r"^## (.*)$", page, re.M)}
    assert {row[1] for row in rows} <= anchors
    assert [words for words in ("make docs", "pyhudi/model") if words in page] == []


def test_the_page_of_the_api_has_every_public_name() -> None:
    listed = re.findall(r"^::: pyhudi\.(\w+)$", (DOCS / "api.md").read_text(), re.M)

    assert "errors" in listed
    assert {name for name in pyhudi.__all__ if not hasattr(errors, name)} - {"__version__"} == {*listed} - {"errors"}


def test_the_page_of_the_api_is_a_table_of_names_and_each_name_has_a_page() -> None:
    pytest.importorskip("mkdocs")
    from docs import site

    page = SimpleNamespace(file=SimpleNamespace(src_uri="api.md"))
    overview = site.on_page_markdown((DOCS / "api.md").read_text(), page)

    assert "| [`HudiTable`](api/HudiTable.md) | One Hudi table. |" in overview
    assert (
        "| [`write_hudi`](api/write_hudi.md) | Write rows to a table, which is created if it does not exist. |"
        in overview
    )
    assert "| [`sql`](api/sql.md) | " in overview
    assert ":::" not in overview
    linked = set(re.findall(r"\]\((api/\w+\.md)\)", overview))
    in_nav = {
        page for section in site._api_nav() for pages in section.values() for one in pages for page in one.values()
    }
    assert linked == in_nav
    assert len(linked) > 60


def test_a_page_that_is_too_long_or_has_a_torn_table_or_a_signature_in_one_line_is_refused() -> None:
    pytest.importorskip("mkdocs")
    from mkdocs.exceptions import PluginError

    from docs import site

    page = SimpleNamespace(file=SimpleNamespace(src_uri="long.md"))
    fits = "<p>" + "a" * site.PAGE_CHARACTERS + "</p>"
    assert site.on_page_content(fits, page) == fits
    with pytest.raises(PluginError, match=r"long.md has 100,001 characters, expected up to 100,000: split it"):
        site.on_page_content(f"{fits}b", page)
    with pytest.raises(PluginError, match=r"long.md has a row of a table outside of it: \| all \| of it \|"):
        site.on_page_content("<table><td>| a |</td></table>\n<p></p>\n| all | of it |\n", page)
    with pytest.raises(PluginError, match=r"long.md has a signature with a line of 101 characters.*Is ruff installed"):
        site.on_page_content(f'<div class="doc-signature highlight"><pre>{"a" * 101}</pre></div>', page)


@pytest.mark.thorough
def test_the_site_has_a_page_a_class_lines_of_a_width_to_read_and_pages_of_a_length_to_read(tmp_path: Path) -> None:
    for module in ("material", "mkdocstrings", "ruff"):
        pytest.importorskip(module)
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=300)

    from docs.site import text_of

    (article,) = re.findall(r"<article.*</article>", (tmp_path / "api" / "HudiTable.html").read_text(), re.S)
    upsert = re.search(r'id="pyhudi.HudiTable.upsert".*?<pre>(.*?)</pre>', article, re.S)
    assert upsert is not None
    assert text_of(upsert[1]).splitlines() == [
        "upsert(",
        "    data: TableInput,",
        "    *,",
        "    schema_mode: SchemaMode | None = None,",
        "    options: Options | None = None,",
        ") -> WriteResult",
    ]
    assert 'href="WriteResult.html' in upsert[1]
    widths = re.findall(r"max-width: (\w+);", (tmp_path / "site.css").read_text())
    assert "80ch" in widths
    home = (tmp_path / "index.html").read_text()
    tabs = re.findall(r'class="md-tabs__link">\s*(.*?)\s*<', home)
    assert tabs == ["Home", "Guide", "Reference", "For maintainers"]
