"""`.hoodie/.index_defs/index.json`: as Hudi writes it, changed without a loss, and by strangers."""

from __future__ import annotations

import json

import pytest

from pyhudi.errors import CorruptFile
from pyhudi.metadata.index_definitions import (
    IndexDefinition,
    IndexDefinitions,
    column_stats_definition,
    read_index_definitions,
    write_index_definitions,
)
from pyhudi.model.filenames import INDEX_DEFINITIONS_PATH
from pyhudi.storage.local import LocalStorage
from pyhudi.storage.memory import MemoryStorage
from tests.support.golden.folder import Golden


@pytest.mark.parametrize(("hudi", "version"), [("1.0.2", 8), ("1.2.0", 9)])
def test_definitions_of_hudi_are_read_and_written_as_they_were(hudi: str, version: int, golden: Golden) -> None:
    path, _ = golden(hudi, "mdt_all_cow")
    before = (path / INDEX_DEFINITIONS_PATH).read_bytes()
    found = read_index_definitions(LocalStorage(str(path)))
    assert set(found.by_name) >= {"column_stats", "secondary_index_by_s", "expr_index_day"}
    stats = found.by_name["column_stats"]
    assert stats == column_stats_definition(version, stats.source_fields)
    assert dict(found.by_name["expr_index_day"].options) == {"expr": "from_unixtime", "format": "yyyy-MM-dd"}
    storage = MemoryStorage()
    write_index_definitions(storage, found)
    assert storage.read(INDEX_DEFINITIONS_PATH) == before


def _with(text: str) -> MemoryStorage:
    storage = MemoryStorage()
    storage.write(INDEX_DEFINITIONS_PATH, text.encode())
    return storage


def test_a_changed_definition_keeps_what_nobody_here_knows() -> None:
    body = {
        "indexDefinitions": {
            "column_stats": {"indexName": "column_stats", "indexType": "column_stats", "shape": {"deep": [1, None]}},
            "vector_index_v": {"indexName": "vector_index_v", "indexType": "vector"},
        },
        "epoch": 7,
    }
    storage = _with(json.dumps(body))
    found = read_index_definitions(storage)
    more = IndexDefinition("record_index", "record_index", options={"isPartitioned": "false"}, version="V1")
    changed = found.merged([column_stats_definition(9, ("a", "b")), more])
    write_index_definitions(storage, changed.without(["vector_index_v"]))
    stored = json.loads(storage.read(INDEX_DEFINITIONS_PATH))
    assert stored["epoch"] == 7
    assert list(stored["indexDefinitions"]) == ["column_stats", "record_index"]
    stats = stored["indexDefinitions"]["column_stats"]
    assert (stats["sourceFields"], stats["version"], stats["shape"]) == (["a", "b"], "V2", {"deep": [1, None]})
    assert read_index_definitions(storage) == changed.without(["vector_index_v"])


def test_a_table_without_the_file_has_no_definitions() -> None:
    storage = MemoryStorage()
    assert read_index_definitions(storage) == IndexDefinitions()
    write_index_definitions(storage, IndexDefinitions())
    assert storage.stat(INDEX_DEFINITIONS_PATH) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"indexDefinitions": []}',
        '{"indexDefinitions": {"a": 1}}',
        '{"indexDefinitions": {"a": {"indexName": "b"}}}',
        '{"indexDefinitions": {"a": {"sourceFields": "id"}}}',
        '{"indexDefinitions": {"a": {"sourceFields": [1]}}}',
        '{"indexDefinitions": {"a": {"indexOptions": {"k": {}}}}}',
        '{"indexDefinitions": {"a": {"version": 2}}}',
        '{"indexDefinitions": {"a": {"indexType": "\\ud800"}}}',
        "[" * 100_000,
    ],
)
def test_what_is_no_list_of_definitions_is_refused_and_not_overwritten(text: str) -> None:
    storage = _with(text)
    with pytest.raises(CorruptFile, match=r"index\.json"):
        read_index_definitions(storage)
    with pytest.raises(CorruptFile, match=r"index\.json"):
        write_index_definitions(storage, IndexDefinitions().merged([column_stats_definition(9, ("a",))]))
    assert storage.read(INDEX_DEFINITIONS_PATH) == text.encode()
