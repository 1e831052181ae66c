"""The pages: links lead somewhere, modules that they name exist, nothing of a private machine is in the project."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.support.source import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "changes").glob("*.md")])
# A decision and a change speak of their own day.
PAGES_OF_TODAY = [
    page for page in PAGES if page.parent.name not in ("decisions", "changes") and page.name != "CHANGELOG.md"
]
# What the pages in docs/contributing tell one to write.
TO_BE_WRITTEN = (
    "pyhudi/formats/log/blocks/arrow_data.py",
    "pyhudi/index/tenant.py",
    "pyhudi/keygen/hashed.py",
    "pyhudi/listeners/reporters/statsd.py",
    "pyhudi/locks/sqlite.py",
    "pyhudi/services/trim.py",
)
_LINK = re.compile(r"\[[^\]]*\]\((?!https?:|#|mailto:)([^)#\s]+)")
_TARGET = re.compile(r"\]\([^)]*\)|<?https?:\S+|`tests/[^`]*::[^`]*`")
_MODULE_FILE = re.compile(r"`((?:pyhudi|pyspark_hudi|tests|demo|bench|docs|examples)/[\w./-]+)`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_of_a_page_lead_to_files(page: Path):
    broken = [target for target in _LINK.findall(page.read_text()) if not (page.parent / target).exists()]
    assert broken == []


@pytest.mark.parametrize("page", PAGES_OF_TODAY, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_files_that_a_page_names_exist(page: Path):
    named = [name for name in _MODULE_FILE.findall(page.read_text()) if name not in TO_BE_WRITTEN]
    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_lines_of_a_page_have_120_characters_at_most_but_for_tables_links_and_names_of_tests(page: Path):
    lines = page.read_text().splitlines()
    long = [number for number, line in enumerate(lines, 1) if len(_TARGET.sub("", line)) > 120 and line[:1] != "|"]
    assert long == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_has_no_marks_of_a_merge(page: Path):
    assert re.findall(r"^(?:<{7}|>{7}) .*$", page.read_text(), re.M) == []


def test_every_python_example_of_the_readme_is_python():
    text = (ROOT / "README.md").read_text()
    examples = re.findall(r"```python\n(.*?)```", text, re.S)
    assert examples
    for example in examples:
        compile(example, "README.md", "exec")


def test_no_tracked_file_speaks_of_a_private_folder():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    words = ["/" + "work" + "/", "/" + "root" + "/"]
    speaking = [
        name
        for name in listed.stdout.splitlines()
        if (ROOT / name).is_file() and any(word in (ROOT / name).read_text(errors="replace") for word in words)
    ]
    assert speaking == []
