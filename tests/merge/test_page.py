"""docs/merging.md says what the code does."""

from __future__ import annotations

import re
import sys
import types

import numpy as np
import pyarrow as pa
import pytest

from pyhudi.merge.base import Place
from pyhudi.merge.pairs import pair_merger
from pyhudi.merge.rules import MergeRules
from pyhudi.merge.versions import Versions
from pyhudi.model.keys import RECORD_KEY
from pyhudi.model.merge_mode import DEPRECATED_PAYLOADS
from tests.support.source import ROOT

PAGE = (ROOT / "docs" / "merging.md").read_text()
SCHEMA = pa.schema([(RECORD_KEY, pa.string()), ("seq", pa.int64()), ("price", pa.int64()), ("state", pa.string())])


@pytest.fixture
def page_module(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """The classes of the page as a module."""
    module = types.ModuleType("classes_of_the_page")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for text in re.findall(r"```python\n(.*?)```", PAGE, re.S):
        if "class " in text:
            exec(compile(text, "docs/merging.md", "exec"), module.__dict__)
    return module


def versions(*rows: tuple[int, int | None, str]) -> Versions:
    table = pa.Table.from_pylist([dict(zip(SCHEMA.names, ("k", *row), strict=True)) for row in rows], SCHEMA)
    return Versions(table, np.zeros(len(rows), np.bool_), (table.column("seq").combine_chunks(),))


@pytest.mark.parametrize("name", ["HighestPrice", "HighestPriceByRow"])
def test_the_mergers_of_the_page_merge(page_module: types.ModuleType, name: str) -> None:
    rules = MergeRules("EVENT_TIME_ORDERING", ("seq",), merger=f"{page_module.__name__}:{name}")
    older, newer = versions((1, 5, "a"), (4, 5, "a"), (1, None, "a")), versions((2, 9, "b"), (2, 3, "b"), (2, 1, "b"))

    merged = pair_merger(rules).merge(older, newer, Place.SLICE)

    assert merged.rows.select(["seq", "price", "state"]).to_pylist() == [
        {"seq": 2, "price": 9, "state": "b"},
        {"seq": 4, "price": 5, "state": "a"},
        {"seq": 2, "price": 1, "state": "b"},
    ]
    assert merged.ordering[0].to_pylist() == [2, 4, 2]


def test_the_merger_of_rows_deletes_what_is_void(page_module: types.ModuleType) -> None:
    rules = MergeRules("EVENT_TIME_ORDERING", ("seq",), merger=f"{page_module.__name__}:HighestPriceByRow")

    merged = pair_merger(rules).merge(versions((1, 5, "a")), versions((2, 5, "void")), Place.SLICE)

    assert merged.is_delete.tolist() == [True]


def test_the_table_of_payload_classes_is_that_of_the_code() -> None:
    for name, (mode, properties) in DEPRECATED_PAYLOADS.items():
        row = next(
            line for line in PAGE.splitlines() if f"| `{name.removeprefix('org.apache.hudi.common.model.')}`" in line
        )
        stored = row.split("|")[4]
        assert f"`{mode}`" in stored
        for value in (properties.get("hoodie.table.partial.update.mode"),):
            assert (f"`{value}`" in stored) == (value is not None)
