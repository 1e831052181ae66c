"""Row groups that PyHudi copied out of files of real Hudi: Hudi reads them, with filters too, and writes on."""

from __future__ import annotations

from typing import Any

import pytest

from pyhudi import HudiTable
from pyhudi.filegroup.write import base_file, merge
from tests.support.golden.folder import Golden
from tests.support.judge.real_hudi import Judge


@pytest.mark.parametrize("version", ["1.2.0", "0.15.0"])
def test_real_hudi_reads_its_own_row_groups_in_files_of_pyhudi(
    golden: Golden, judge: Judge, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    folder, _ = golden(version, "cow_operations")
    copied: list[int] = []
    real = base_file.NewBaseFile.copy_part

    def copy_part(file: base_file.NewBaseFile, part: int, rows: int) -> None:
        copied.append(rows)
        real(file, part, rows)

    monkeypatch.setattr(merge, "COPIED_FROM", 0.0)
    monkeypatch.setattr(base_file.NewBaseFile, "copy_part", copy_part)
    before = judge.rows(folder, version)
    table = HudiTable.open(folder)
    stored = table.scan().to_arrow()
    stored = stored.drop_columns([name for name in stored.column_names if name.startswith("_hoodie")])
    names = [f"new-{n}" for n in range(len(stored))]
    table.insert(stored.set_column(stored.schema.get_field_index("id"), stored.schema.field("id"), [names]))

    after = judge.rows(folder, version)

    assert sum(copied) == len(before)
    assert without_file(row for row in after if row["id"] not in names) == without_file(before)
    judge.check(folder, version, steps=["open", "read", "meta_columns", "footers", "upsert", "delete"])


def without_file(rows: Any) -> list[dict[str, Any]]:
    left = [{name: value for name, value in row.items() if name != "_hoodie_file_name"} for row in rows]
    return sorted(left, key=lambda row: row["_hoodie_record_key"])
