"""A write that says so takes the metadata table out first, in an order that survives crashes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pyhudi.metadata.removal import MetadataTableRemoved
from pyhudi.metadata.table import has_metadata_table
from pyhudi.storage.local import LocalStorage
from tests.support.tables.small import TestTable


@pytest.mark.parametrize("version", ["0.15.0", "1.0.2", "1.2.0"])
def test_a_write_with_the_metadata_table_off_takes_it_out_and_says_so(
    golden: Callable[[str, str], tuple[Path, dict[str, Any]]], version: str
) -> None:
    folder, _ = golden(version, "mdt_all_cow")
    table = TestTable(LocalStorage(str(folder)))
    before = table.meta
    definitions = folder / ".hoodie/.index_defs/index.json"
    index_json = definitions.read_bytes() if definitions.exists() else None
    assert has_metadata_table(before)
    rows = table.read()
    data = rows.drop_columns([name for name in rows.column_names if name.startswith("_hoodie_")]).slice(0, 1)
    with pytest.warns(MetadataTableRemoved, match="column_stats"):
        table.write_as_is("upsert", data, {"hoodie.metadata.enable": "false"})

    assert not (folder / ".hoodie/metadata").exists()
    properties = table.meta.config.properties
    # What Hudi 1.2.0 leaves with hoodie.metadata.enable=false (golden mdt_missing_results): the keys stay, empty.
    assert properties["hoodie.table.metadata.partitions"] == ""
    assert properties["hoodie.table.metadata.partitions.inflight"] == ""
    assert (definitions.read_bytes() if definitions.exists() else None) == index_json
    assert table.read().num_rows == rows.num_rows


def test_a_folder_without_properties_is_removed_without_a_word(recwarn: pytest.WarningsRecorder) -> None:
    table = TestTable()
    table.bulk_insert(("a", "x", 1, 10))
    table.storage.write(".hoodie/metadata/.hoodie/hoodie.properties", b"#\n")
    table.upsert(("a", "x", 2, 11))

    assert not list(table.storage.walk(".hoodie/metadata"))
    assert not [warning for warning in recwarn if warning.category is MetadataTableRemoved]


def test_a_table_that_is_made_without_a_metadata_table_gets_none_later() -> None:
    table = TestTable()
    table.bulk_insert(("a", "x", 1, 10), metadata_enable="false")
    table.upsert(("a", "x", 2, 11))

    assert not has_metadata_table(table.meta)
    assert not table.meta.config.metadata_to_build
