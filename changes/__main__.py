"""Writes CHANGELOG.md from the fragments next to this file: `make changelog`.

A fragment is `<topic>.md`, the topic in lower-case words with hyphens; each of its paragraphs is a change. The
fragments are the section of the version in pyproject.toml. Sections of earlier versions stay as they are; whoever
raises the version deletes the fragments of the one before.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

__all__ = ["changelog", "fragments", "section"]

_ROOT = Path(__file__).resolve().parents[1]
_HEAD = """# Changelog

Made by `make changelog` from the fragments in `changes/`, which hold what came since then.
"""
_TOPIC = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_VERSION = re.compile(r'^version = "([^"]+)"$', re.M)


def fragments(folder: Path) -> dict[str, str]:
    """Topic → text. Raises ValueError for a name that is none of a topic."""
    found = {file.stem: file.read_text().strip() for file in sorted(folder.glob("*.md"))}
    for topic in found:
        if not _TOPIC.fullmatch(topic):
            raise ValueError(f"{folder / topic}.md: expected lower-case words with hyphens: `merge-on-read.md`.")
    return found


def section(version: str, texts: Mapping[str, str]) -> str:
    """The section of one version, a heading for each topic. Links of fragments start one folder down."""
    topics = [f"### {topic.replace('-', ' ').capitalize()}\n\n{text}\n" for topic, text in texts.items()]
    return "\n".join([f"## {version}\n", *topics]).replace("](../", "](")


def changelog(before: str, version: str, texts: Mapping[str, str]) -> str:
    """The whole page. `before`: the page as it is, with the sections of earlier versions; may be empty."""
    sections = re.split(r"^(?=## )", before, flags=re.M)[1:]
    earlier = [text.strip() + "\n" for text in sections if text.splitlines()[0] != f"## {version}"]
    return "\n".join([_HEAD, section(version, texts), *earlier])


def main() -> None:
    """Writes the page of the checkout."""
    version = _VERSION.search((_ROOT / "pyproject.toml").read_text())
    assert version is not None
    page = _ROOT / "CHANGELOG.md"
    before = page.read_text() if page.exists() else ""
    page.write_text(changelog(before, version.group(1), fragments(_ROOT / "changes")))


if __name__ == "__main__":
    main()
