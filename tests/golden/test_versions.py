"""Tables of real Hudi, taken to other versions: rows stay, at every moment, unless the merge mode changes."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

from pyhudi import HudiTable
from pyhudi.errors import HudiError, UnsupportedTable
from pyhudi.metadata.removal import MetadataTableRemoved
from pyhudi.model.table_config import TableConfig
from tests.support.golden.cases import given_up, golden_names
from tests.support.golden.folder import SHARED

PATHS = {6: (9, 6), 8: (6, 9), 9: (8, 6, 9)}
COMPLEX_KEYS = {"hoodie.write.complex.keygen.validation.enable": "false"}
# Why a table can't be moved, by a part of its name.
REFUSED = {
    "clustering_pending": "pending clustering",
    "multi_ordering": "one ordering field",
}
EVERY_CHANGE = (
    "evolution_schema_on_read",
    "g2_cdc",
    "g2_logs_parquet",
    "g2_bucket_consistent",
    "g2_savepoint",
    "history_",
    "cow_insert_overwrite",
    "keys_c",
)

Reads = dict[str | None, Any]


def tables() -> list[Any]:
    found = []
    for version, name in [*golden_names("cow"), *golden_names("mor")]:
        marks = () if name.startswith(EVERY_CHANGE) and version != "1.0.2" else (pytest.mark.slow,)
        found.append(pytest.param(version, name, marks=marks, id=f"{version}-{name}"))
    return found


def reads_of(table: HudiTable) -> Reads:
    """The snapshot (under None) and every time travel; a refusal by its name. Compactions change the files' names."""
    reads: Reads = {}
    for time in (None, *(instant.requested_time for instant in table.state().timeline.commits())):
        try:
            rows = table.scan(as_of=time).to_arrow()
            names = [name for name in rows.column_names if name != "_hoodie_file_name"]
            reads[time] = sorted(map(repr, rows.select(names).to_pylist()))
        except HudiError as error:
            reads[time] = type(error).__name__
    return reads


def merge_alike(before: TableConfig, after: TableConfig) -> bool:
    """Do log files mean the same? Payload classes are modes in one version and classes in another."""
    modes = {before.record_merge_mode, after.record_merge_mode}
    return not before.is_merge_on_read or (len(modes) == 1 and "CUSTOM" not in modes)


@pytest.mark.parametrize(("version", "name"), tables())
def test_rows_of_real_hudis_tables_stay(version: str, name: str, golden: Any) -> None:
    folder, _ = golden(version, name)
    try:
        table = HudiTable.open(folder)
    except UnsupportedTable:
        pytest.skip("PyHudi does not read it")
    before, config = reads_of(table), table.state().config
    alike = True
    for target in PATHS[config.table_version]:
        change = (
            table.maintenance.upgrade if target > table.state().config.table_version else table.maintenance.downgrade
        )
        refusal = next((text for part, text in REFUSED.items() if part in name), None)
        if refusal is not None:
            with pytest.raises(UnsupportedTable, match=refusal):
                change(target, options=COMPLEX_KEYS)
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MetadataTableRemoved)
            change(target, options={**COMPLEX_KEYS, **given_up(name)})
        alike = alike and merge_alike(config, table.state().config)
        after = reads_of(table)
        assert table.state().config.table_version == target
        assert after[None] == before[None]
        assert {time: after[time] for time in before if alike or time is None} == {
            time: rows for time, rows in before.items() if alike or time is None
        }
        assert {i.requested_time for i in table.state().timeline} >= {time for time in before if time is not None}
        assert Path(folder, ".hoodie", "hoodie.properties").is_file()


@pytest.mark.thorough
def test_the_collection_is_there() -> None:
    assert not SHARED.is_dir() or len(tables()) > 150
