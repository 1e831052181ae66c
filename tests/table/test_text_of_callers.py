"""Text of callers that no file can hold is refused, whatever it names, and nothing is written."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from pyhudi import HudiTable, write_hudi
from pyhudi.errors import ConfigError, HudiError, SchemaMismatch

HALF = "x\ud800"  # half of a UTF-16 pair
ROW = {"id": "a", "p": "x", "n": 1}
KEYS = {"record_key": "id", "partition_by": "p"}


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    write_hudi(tmp_path / "t", [ROW], **KEYS)
    return HudiTable.open(tmp_path / "t")


def files(folder: str) -> list[str]:
    return sorted(os.path.join(where, name) for where, _, names in os.walk(folder) for name in names)


CALLS: dict[str, Callable[[HudiTable], object]] = {
    "key": lambda table: table.upsert([{**ROW, "id": HALF}]),
    "partition": lambda table: table.upsert([{**ROW, "p": HALF}]),
    "column": lambda table: table.upsert([{**ROW, HALF: 1}]),
    "inner value": lambda table: table.upsert([{**ROW, "s": [{"k": HALF}]}]),
    "pandas": lambda table: table.upsert(pd.DataFrame({"id": [HALF], "p": ["x"], "n": [1]})),
    "keys to delete": lambda table: table.delete([{"id": HALF, "p": "x"}]),
    "source of a merge": lambda table: table.merge([{**ROW, "id": HALF}]).when_matched_update_all().execute(),
    "columns of a merge": lambda table: table.merge([ROW], on=[HALF]).when_matched_update_all().execute(),
    "column to set": lambda table: table.update(set={HALF: 1}),
    "value to set": lambda table: table.update(values={"n": HALF}),
    "SQL of a value to set": lambda table: table.update(set={"n": HALF}),
    "partitions": lambda table: table.insert_overwrite([ROW], partitions=[HALF]),
    "option": lambda table: table.upsert([ROW], options={"hoodie.table.name": HALF}),
    "key of an option": lambda table: table.upsert([ROW], options={f"hoodie.keygen.user.{HALF}": "x"}),
    "metadata": lambda table: table.upsert(
        [ROW], options={"hoodie.datasource.write.commitmeta.key.prefix": "_", "_note": HALF}
    ),
    "no key of an option": lambda table: table.upsert([ROW], options={7: "x"}),  # type: ignore[dict-item]
    "user": lambda table: table.savepoints.create(user=HALF),
    "comment": lambda table: table.savepoints.create(comment=HALF),
    "no comment": lambda table: table.savepoints.create(comment=b"x"),  # type: ignore[arg-type]
    "instant": lambda table: table.savepoints.create(HALF),
    "write to undo": lambda table: table.rollback(HALF),
    "selected column": lambda table: table.scan([HALF]).to_arrow(),
    "moment": lambda table: table.scan(as_of=HALF).to_arrow(),
    "option of a read": lambda table: table.scan(options={"as.of.instant": HALF}).to_arrow(),
    "large number": lambda table: table.upsert([{**ROW, "n": 2**70}]),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_text_that_no_file_can_hold_is_refused(call: Callable[[HudiTable], object], table: HudiTable) -> None:
    before = files(table.path)

    with pytest.raises(HudiError) as caught:
        call(table)

    assert str(caught.value).encode()
    assert files(table.path) == before


@pytest.mark.parametrize("name", ["record_key", "partition_by", "ordering", "table_name"])
def test_a_new_table_is_not_named_by_such_text(name: str, tmp_path: Path) -> None:
    given: dict[str, Any] = {**KEYS, name: HALF}
    with pytest.raises(ConfigError):
        write_hudi(tmp_path / "t", [ROW], **given)
    with pytest.raises(ConfigError):
        HudiTable.create(tmp_path / "t", pa.schema([("id", pa.string()), ("p", pa.string())]), **given)
    assert not (tmp_path / "t").exists()


def test_rows_in_rows_without_end_are_refused(table: HudiTable) -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(SchemaMismatch):
        table.upsert([{**ROW, "n": endless}])
