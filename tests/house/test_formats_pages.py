"""The pages in docs/formats: the tests that they name exist, and so do the sections that docstrings cite."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.support.source import ROOT, modules

PAGES = sorted((ROOT / "docs" / "formats").glob("*.md"))
WITH_ANCHORS = [*PAGES, ROOT / "docs" / "glossary.md"]
LINE_WIDTH = 120

_TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
_LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")
_CITED = re.compile(r"((?:docs/)?[\w./-]+\.md)((?:,? (?:and )?\"[^\"]+\")*)")
# A text that only its authors had: "spec, timeline 3.4", "(spec 4.2)", "house 3.5", "design, decision 1".
_PRIVATE = re.compile(
    r"\bspec(?:, (?:files|timeline|metadata)| \d)|\b(?:files and records|metadata and indexes)"
    r" (?:part )?\d|\bhouse(?:, | \d)|\bdesign(?: research)?, |\b(?:merge|spark) lab\b|\bseed document\b"
)


@cache
def headings(page: Path) -> frozenset[str]:
    return frozenset(re.findall(r"^#+ (.+)$", page.read_text(), re.M))


def anchor(heading: str) -> str:
    """The name by which a link finds a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@cache
def names_of_tests(path: str) -> frozenset[str]:
    """The test functions of a file; none when there is no such file."""
    tree = ast.parse((ROOT / path).read_text() if (ROOT / path).exists() else "")
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def prose_of(path: str) -> Iterator[str]:
    """Docstrings and comments of a module; line ends inside of them are blanks."""
    text = (ROOT / path).read_text()
    for node in ast.walk(modules()[path]):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield re.sub(r"\s+", " ", ast.get_docstring(node, clean=False) or "")
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tests_that_a_page_names_exist(page: Path) -> None:
    named = _TEST.findall(page.read_text())

    missing = [f"{path}::{name}" for path, name in named if name not in names_of_tests(path)]

    assert missing == []


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "README.md"], ids=lambda page: page.name)
def test_every_section_names_a_test_that_proves_it(page: Path) -> None:
    sections = re.split(r"^## ", page.read_text(), flags=re.M)[1:]

    assert sections
    assert [text.partition("\n")[0] for text in sections if not _TEST.search(text)] == []


@pytest.mark.parametrize("page", WITH_ANCHORS, ids=lambda page: page.name)
def test_links_lead_to_sections(page: Path) -> None:
    broken = []
    for target, section in _LINK.findall(page.read_text()):
        file = (page.parent / target).resolve() if target else page
        if not file.exists() or (section and section not in {anchor(heading) for heading in headings(file)}):
            broken.append(f"{target}#{section}")

    assert broken == []


@pytest.mark.parametrize("page", WITH_ANCHORS, ids=lambda page: page.name)
def test_lines_are_short_but_for_tables_and_names_of_tests(page: Path) -> None:
    lines = page.read_text().splitlines()

    assert [line for line in lines if len(line) > LINE_WIDTH and not line.startswith("|") and "::" not in line] == []


def test_the_index_has_every_page() -> None:
    index = (ROOT / "docs" / "formats" / "README.md").read_text()

    assert [page.name for page in PAGES if page.name != "README.md" and f"({page.name})" not in index] == []


def test_pages_and_sections_that_docstrings_cite_exist() -> None:
    cited, broken = 0, []
    for path in modules():
        for prose in prose_of(path):
            for name, sections in _CITED.findall(prose):
                page = ROOT / name
                for section in re.findall(r'"([^"]+)"', sections) or [None]:
                    cited += name.startswith("docs/formats/")
                    if not page.exists() or (section is not None and section not in headings(page)):
                        broken.append(f"{path}: {name}, {section}")

    assert broken == []
    assert cited > 150


def test_docstrings_cite_texts_that_everybody_can_open() -> None:
    private = [
        f"{path}: {found.group()}"
        for path in modules()
        for prose in prose_of(path)
        for found in _PRIVATE.finditer(prose)
    ]

    assert private == []
