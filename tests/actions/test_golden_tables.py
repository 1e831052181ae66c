"""Tables of real Hudi 0.15.0, 1.0.2 and 1.2.0: a row that is written back unchanged is found, and nothing else "
"changes."""

from __future__ import annotations

import warnings
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pyhudi.errors import ConfigError
from pyhudi.storage.local import LocalStorage
from tests.support.golden.folder import shared_folder
from tests.support.tables.small import TestTable

FAMILIES = ("keys_", "types_", "cow_", "evolution_", "state_", "index_", "upgrade_", "failed_write_", "mdt_all_cow")
# What a writer of Hudi must say itself: the properties don't hold it.
OPTIONS: dict[str, dict[str, str]] = {
    "index_bucket": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"},
    "keys_timestamp_number": {"hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS"},
    "keys_timestamp_text": {"hoodie.keygen.timebased.timestamp.type": "DATE_STRING"},
}
REFUSED = {"keys_auto": ConfigError}
# The row writer of bulk insert in Java gives rows of these types other keys than upsert does (docs/formats/keys.md,
# "Text of values").
OTHER_KEYS = {"keys_typed_bulk_insert"}
# Their time stamp settings are the writer's alone; the tests of key generators have them.
NOT_TOLD = {"keys_custom", "keys_custom_slashes"}


def tables() -> list[tuple[str, str]]:
    root = Path(__file__).resolve().parents[3] / "shared" / "golden"
    return [
        (version.name, path.stem)
        for version in sorted(root.glob("*.*.*"))
        for path in sorted(version.glob("*.zip"))
        if path.stem.startswith(FAMILIES) and path.stem not in OTHER_KEYS | NOT_TOLD
    ]


@pytest.mark.parametrize(("version", "name"), tables() or [("", "")])
def test_a_row_written_back_is_found_and_nothing_else_changes(version: str, name: str, tmp_path: Path) -> None:
    folder = shared_folder() / "golden" / version / f"{name}.zip"
    with zipfile.ZipFile(folder) as archive:
        archive.extractall(tmp_path)
    table = TestTable(LocalStorage(str(tmp_path / name)))
    if table.meta.config.is_merge_on_read:
        return
    before = table.read()
    meta = [
        column for column in before.column_names if column.startswith("_hoodie_") and column != "_hoodie_is_deleted"
    ]
    if before.num_rows == 0:
        return
    row = before.drop_columns(meta).slice(0, 1)
    if name in REFUSED:
        with pytest.raises(REFUSED[name]):
            table.write_as_is("upsert", row, OPTIONS.get(name))
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = table.write_as_is("upsert", row, OPTIONS.get(name))

    assert result.inserted == 0
    assert result.updated >= 1
    after = table.read()
    assert plain(after, meta) == plain(before, meta)


def plain(rows: Any, meta: list[str]) -> Counter[str]:
    return Counter(repr(row) for row in rows.drop_columns([c for c in rows.column_names if c in meta]).to_pylist())
