"""What mkdocs can't do by itself for the site: pages of the project's root, folders in the nav, a page a class.

`api.md` lists the public names, a `::: name` each. On the site a name is a row of a table, and has a page of its own.
"""

from __future__ import annotations

import inspect
import re
from html import unescape
from importlib import import_module
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
OF_THE_ROOT = {
    "README.md": "index.md",
    "SECURITY.md": "security.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
API = "api.md"
PAGES_OF_API = "api/"
_NAME = re.compile(r"^::: ([\w.]+)$", re.M)
_MEANT = {"pyhudi.sql": "pyhudi.sql.duckdb_session.sql"}  # the package and the function have one name
_BLOCKS = re.compile(r"<(table|pre|code)\b.*?</\1>", re.S)
PAGE_CHARACTERS = 100_000  # of text: what is longer is split
SIGNATURE_CHARACTERS = 100


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
    for name in _NAME.findall((ROOT / "docs" / API).read_text()):
        files.append(File.generated(config, _page_of(name), content=_api_page(name)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: object) -> str:
    """Let links out of `docs` lead to the pages that came from there, and names of the API to their pages."""
    if page.file.src_uri == API:
        return _api_overview(markdown)
    for name, place in OF_THE_ROOT.items():
        markdown = re.sub(rf"\]\(((?:\.\./)*)\.\./{re.escape(name)}", rf"](\g<1>{place}", markdown)
    return markdown


def on_page_content(html: str, page: Any, **_: object) -> str:
    """Refuse a page that nobody reads to its end, and a signature in one long line."""
    if (length := len(text_of(html))) > PAGE_CHARACTERS:
        raise PluginError(
            f"{page.file.src_uri} has {length:,} characters, expected up to {PAGE_CHARACTERS:,}: split it."
        )
    if torn := re.search(r"^[^\S\n]*\|.*\|$", text_of(_BLOCKS.sub("", html)), re.M):
        raise PluginError(f"{page.file.src_uri} has a row of a table outside of it: {torn[0][:80]}")
    for signature in re.findall(r'<div class="[^"]*doc-signature[^"]*">(.*?)</div>', html, re.S):
        line = max(text_of(signature).splitlines(), key=len)
        if len(line) > SIGNATURE_CHARACTERS:
            raise PluginError(
                f"{page.file.src_uri} has a signature with a line of {len(line)} characters, expected up to "
                f"{SIGNATURE_CHARACTERS}: {line[:60]}... Is ruff installed? It comes with pip install pyhudi[docs]."
            )
    return html


def text_of(html: str) -> str:
    """The text of some HTML, as a reader sees it."""
    return unescape(re.sub(r"<[^>]+>", "", html))


def _opened(nav: list[Any]) -> list[Any]:
    opened: list[Any] = []
    for entry in nav:
        if entry == PAGES_OF_API:
            opened += _api_nav()
        elif isinstance(entry, str) and entry.endswith("/"):
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


# ---- the pages of the API


def _api_nav() -> list[Any]:
    """The headings of `api.md`, each with the pages of its names."""
    sections = re.split(r"^## (.+)$", (ROOT / "docs" / API).read_text(), flags=re.M)
    return [
        {title: [{_short(name): _page_of(name)} for name in _NAME.findall(text)]}
        for title, text in zip(sections[1::2], sections[2::2], strict=True)
    ]


def _api_overview(markdown: str) -> str:
    """`api.md` with a table in the place of each row of names."""
    blocks = re.compile(r"(?:^::: [\w.]+\n*)+", re.M)
    return blocks.sub(lambda block: _table(_NAME.findall(block[0])), markdown)


def _table(names: list[str]) -> str:
    rows = (f"| [`{_short(name)}`]({_page_of(name)}) | {_first_sentence(name)} |" for name in names)
    return "\n".join(["| name | what it is |", "|---|---|", *rows]) + "\n\n"


def _api_page(name: str) -> str:
    if name == "pyhudi.errors":
        return f"# Errors\n\n::: {name}\n    options:\n      show_root_heading: false\n"
    options = "heading_level: 1\n"
    if name.endswith("Arguments"):
        options += "      inherited_members: true\n"
    return f"---\ntitle: {_short(name)}\n---\n\n::: {_MEANT.get(name, name)}\n    options:\n      {options}"


def _page_of(name: str) -> str:
    return f"{PAGES_OF_API}{_short(name)}.md"


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def _first_sentence(name: str) -> str:
    """Of the docstring; that of a value class may begin with its fields, then all of the paragraph."""
    module, _, short = _MEANT.get(name, name).rpartition(".")
    value = getattr(import_module(module), short, None) or import_module(name)
    text = inspect.cleandoc(value.__doc__ or "").split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
    if text.startswith(f"{short}("):
        return ""  # made by `dataclass`
    sentence = re.match(r".*?[.:](?= |$)|.*", text)
    return sentence[0].removesuffix(":") if sentence else text
