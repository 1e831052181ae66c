"""Merge-on-read tables of real Hudi: a row that is written back unchanged changes nothing, nor does its rollback."""

from __future__ import annotations

import json
import warnings
import zipfile
from pathlib import Path

import pytest

from pyhudi.storage.local import LocalStorage
from tests.support.golden.folder import shared_folder
from tests.support.tables.merge_on_read import MergeOnRead
from tests.support.tables.small import TestTable

INDEX = ("hoodie.index.type", "hoodie.bucket.index.num.buckets")  # what a writer of Hudi must say itself


def tables() -> list[tuple[str, str]]:
    root = Path(__file__).resolve().parents[3] / "shared" / "golden"
    return [
        (path.parent.name, path.stem)
        for path in sorted(root.glob("*.*.*/*.zip"))
        if json.loads(path.with_suffix(".json").read_text()).get("type") == "mor"
    ]


@pytest.mark.parametrize(("version", "name"), tables() or [("", "")])
def test_a_row_written_back_changes_nothing(version: str, name: str, tmp_path: Path) -> None:
    archive_path = shared_folder() / "golden" / version / f"{name}.zip"
    with zipfile.ZipFile(archive_path) as archive:
        archive.extractall(tmp_path)
    options_of_hudi = json.loads(archive_path.with_suffix(".json").read_text()).get("options", {})
    table = MergeOnRead("9", LocalStorage(str(tmp_path / name)))
    before = TestTable.read(table)
    data = [c for c in before.column_names if not c.startswith("_hoodie_") or c == "_hoodie_is_deleted"]
    rows = sorted(map(repr, before.select(data).to_pylist()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = {"hoodie.compact.inline": "false"}
        if options_of_hudi.get("hoodie.index.bucket.engine") == "SIMPLE":
            options |= {key: text for key, text in options_of_hudi.items() if key in INDEX}
        table.write_as_is("upsert", before.select(data).slice(0, 1), options)
    assert sorted(map(repr, TestTable.read(table).select(data).to_pylist())) == rows

    table.roll_back_last()
    assert sorted(map(repr, TestTable.read(table).select(data).to_pylist())) == rows
