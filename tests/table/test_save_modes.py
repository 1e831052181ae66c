"""Save modes by Arrow rows; tests/spark/test_save_modes.py does the same by DataFrames."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable, write_hudi
from tests.table.save_mode_cases import CASES, SaveModeCase

OPTIONS = {"hoodie.datasource.write.recordkey.field": "id", "hoodie.table.name": "t"}


def ids(path: Path) -> tuple[int, ...] | None:
    if not HudiTable.exists(path):
        return None
    return tuple(sorted(HudiTable.open(path).scan(columns=["id"]).to_arrow().column("id").to_pylist()))


def check_case(case: SaveModeCase, path: Path, write: Any) -> None:
    """`write(id, mode, options)` writes one row to the table at the path."""
    for number in case.there or ():
        write(number, "append", OPTIONS)
    before = HudiTable.open(path).history() if case.there else []
    with pytest.raises(case.error) if case.error else nullcontext():
        write(2, case.mode, {**OPTIONS, **dict(case.options)})
    assert ids(path) == case.after
    if before:
        first = before[-1].instant_time
        assert (first in [entry.instant_time for entry in HudiTable.open(path).history()]) is case.is_same_table


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_save_mode_does_what_the_list_says_with_arrow_rows(case: SaveModeCase, tmp_path: Path):
    path = tmp_path / "t"

    def write(number: int, mode: str, options: dict[str, str]) -> None:
        write_hudi(path, pa.table({"id": [number]}), mode=mode, options=options)

    check_case(case, path, write)
