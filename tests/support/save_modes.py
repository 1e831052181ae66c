"""What a save mode does where there is a table, and where there is none: one list for every entry point."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pyhudi import HudiTable
from pyhudi.errors import ConfigError, HudiError, TableExists

__all__ = ["CASES", "PYTHON_CASES", "SPARK_CASES", "SaveModeCase"]
OPERATION = "hoodie.datasource.write.operation"


@dataclass(frozen=True)
class SaveModeCase:
    """`there`: ids in the table before, None: no table. `after`: ids after id 2 was written, None: no table.

    `is_same_table`: the commits from before are still on its timeline. `error`: what the write raises.
    """

    mode: str
    there: tuple[int, ...] | None
    after: tuple[int, ...] | None
    is_same_table: bool = True
    error: type[HudiError] | None = None
    options: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        what = "".join(f",{key.rpartition('.')[2]}={value}" for key, value in self.options)
        return f"{self.mode}{what},{'no_table' if self.there is None else 'table'}"


CASES = (
    SaveModeCase("append", None, (2,)),
    SaveModeCase("append", (1,), (1, 2)),
    SaveModeCase("Append", (1,), (1, 2)),
    SaveModeCase("overwrite", None, (2,)),
    SaveModeCase("overwrite", (1,), (2,), options=((OPERATION, "insert_overwrite_table"),)),
    SaveModeCase("overwrite", (1,), (2,), options=(("hoodie.datasource.overwrite.mode", "STATIC"),)),
    SaveModeCase("overwrite", (1,), (1,), error=ConfigError, options=((OPERATION, "delete"),)),
    SaveModeCase("ignore", None, (2,)),
    SaveModeCase("ignore", (1,), (1,)),
    SaveModeCase("ignore", (1,), (1,), options=(("hoodie.table.recordkey.fields", "other"),)),
    SaveModeCase("error", None, (2,)),
    SaveModeCase("error", (1,), (1,), error=TableExists),
    SaveModeCase("errorifexists", (1,), (1,), error=TableExists),
    SaveModeCase("default", (1,), (1,), error=TableExists),
    SaveModeCase("default", None, (2,)),
)
# What `df.write.format("hudi")` means, as Hudi does, and what `write_hudi` means.
SPARK_CASES = (
    SaveModeCase("overwrite", (1,), (2,), is_same_table=False),
    SaveModeCase("replace", None, None, error=ConfigError),
    SaveModeCase("replace", (1,), (1,), error=ConfigError),
)
PYTHON_CASES = (
    SaveModeCase("overwrite", (1,), (2,)),
    SaveModeCase("overwrite", (1,), (2,), options=((OPERATION, "bulk_insert"),)),
    SaveModeCase("overwrite", (1,), (1,), error=ConfigError, options=(("hoodie.table.recordkey.fields", "other"),)),
    SaveModeCase("replace", None, (2,)),
    SaveModeCase("replace", (1,), (2,), is_same_table=False),
    SaveModeCase("Replace", (1,), (2,), is_same_table=False, options=((OPERATION, "insert_overwrite_table"),)),
    SaveModeCase("replace", (1,), (1,), error=ConfigError, options=((OPERATION, "delete"),)),
    SaveModeCase("upend", (1,), (1,), error=ConfigError),
)
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
