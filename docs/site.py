"""What mkdocs can't do by itself for the site: pages of the project's root, and folders in the nav."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
OF_THE_ROOT = {
    "README.md": "index.md",
    "SECURITY.md": "security.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages of a folder in the place of its name in the nav."""
    config.nav = _opened(config.nav or [])
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that lie in the project's root."""
    for name, place in OF_THE_ROOT.items():
        text = re.sub(r"\]\(docs/", "](", (ROOT / name).read_text())
        for other, there in OF_THE_ROOT.items():
            text = text.replace(f"]({other}", f"]({there}")
        files.append(File.generated(config, place, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: object) -> str:
    """Let links out of `docs` lead to the pages that came from there."""
    for name, place in OF_THE_ROOT.items():
        markdown = re.sub(rf"\]\(((?:\.\./)*)\.\./{re.escape(name)}", rf"](\g<1>{place}", markdown)
    return markdown


def _opened(nav: list[Any]) -> list[Any]:
    opened: list[Any] = []
    for entry in nav:
        if isinstance(entry, str) and entry.endswith("/"):
            opened += _pages(entry)
        elif isinstance(entry, dict):
            opened.append(
                {title: _opened(pages) if isinstance(pages, list) else pages for title, pages in entry.items()}
            )
        else:
            opened.append(entry)
    return opened


def _pages(folder: str) -> list[str]:
    names = sorted(page.name for page in (ROOT / "docs" / folder).glob("*.md"))
    return [folder + name for name in sorted(names, key=lambda name: name != "README.md")]
