"""SECURITY.md names every limit there is, and says of each what the code says."""

from __future__ import annotations

import ast
import re

import pytest

from tests.support.source import ROOT, modules

_ROW = re.compile(
    r"\| (?P<what>[^|]+) \| `(?P<name>\w+)` \| `(?P<file>[\w/]+\.py)` \| `(?P<value>[^`]+)` \| (?P<why>[^|]+) \|"
)
# Bounds of something else: of a format, of a choice between two ways, of a number's type.
NOT_LIMITS = {
    "pyhudi/actions/concurrency.py": {"_PAUSE_MAX_S"},
    "pyhudi/sql/duckdb_session.py": {"MAX_PARTS"},
    "pyhudi/filegroup/read/log_blocks.py": {"_LOGS_HERE_MAX"},
    "pyhudi/formats/log/roaring.py": {"_MAX_VALUES"},
    "pyhudi/formats/timeline/bodies.py": {"LONG_MAX"},
    "pyhudi/locks/dynamodb.py": {"_LEASE_DIGITS_MAX"},
    "pyhudi/storage/hive_metastore.py": {"_PORT_DIGITS_MAX"},
    "pyhudi/locks/storage_based.py": {"_MS_MAX"},
    "pyhudi/engine/sorted_ranges.py": {"_RANGES_MAX"},
    "pyhudi/filegroup/rewrite/curves.py": {"_BITS_MAX"},
    "pyhudi/formats/hash_ring.py": {"MAX_HASH"},
    "pyhudi/index/key_lookup.py": {"_KEYS_COMPARED_MAX"},
    "pyhudi/keygen/timestamp.py": {"_MAX_LONG"},
    "pyhudi/metadata/staged_index.py": {"_PIECES_MAX"},
    "pyhudi/spark/merged.py": {"_LOG_BYTES_MAX", "_ROWS_MAX"},
    "pyhudi/spark/reader.py": {"_BRANCHES_MAX"},
    "pyhudi/timeline/lsm_history.py": {"_MAX_LEVEL"},
}

Limit = tuple[str, str]  # file, constant


def named() -> dict[Limit, str]:
    """Limits that the page names → their values as it gives them."""
    rows = _ROW.finditer((ROOT / "SECURITY.md").read_text())
    return {(row["file"], row["name"]): row["value"] for row in rows if row["why"].strip()}


def constants() -> dict[Limit, str]:
    """Numbers that modules call MAX_something or something_MAX → the code of their values."""
    return {
        (path, target.id): ast.unparse(value)
        for path, tree in modules().items()
        for node in tree.body
        for target, value in _assigned(node)
        if target.id.isupper() and "MAX" in target.id.split("_") and not _is_text(value)
    }


def _is_text(value: ast.expr) -> bool:
    return isinstance(value, ast.JoinedStr) or (isinstance(value, ast.Constant) and isinstance(value.value, str))


def _assigned(node: ast.stmt) -> list[tuple[ast.Name, ast.expr]]:
    if isinstance(node, ast.Assign):
        return [(target, node.value) for target in node.targets if isinstance(target, ast.Name)]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
        return [(node.target, node.value)]
    return []


def limits() -> dict[Limit, str]:
    return {limit: value for limit, value in constants().items() if limit[1] not in NOT_LIMITS.get(limit[0], ())}


def test_every_limit_is_on_the_page() -> None:
    rows = [
        f"| what | `{name}` | `{path}` | `{value}` | reason |"
        for (path, name), value in limits().items()
        if (path, name) not in named()
    ]

    assert rows == [], "rows for SECURITY.md, or names for NOT_LIMITS"


def test_every_limit_on_the_page_is_in_the_code_with_this_value() -> None:
    assert len(named()) > 15
    assert {limit: limits().get(limit) for limit in named()} == named()


def test_what_is_no_limit_is_still_there() -> None:
    known = constants()

    assert [
        (path, name) for path, names in NOT_LIMITS.items() for name in sorted(names) if (path, name) not in known
    ] == []


@pytest.mark.parametrize("name", ["SECURITY.md", "docs/contributing/fuzzing.md"])
def test_the_page_names_files_that_exist(name: str) -> None:
    text = (ROOT / name).read_text()
    paths = re.findall(r"`((?:pyhudi|tests|fuzz|docs)/[\w/]+\.(?:py|md))`|\]\(([\w/.]+\.md)\)", text)

    assert [path for pair in paths for path in pair if path and not (ROOT / path).is_file()] == []
