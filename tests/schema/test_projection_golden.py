"""Files of real Hudi, older than the table's schema, brought into it: rows equal to what Hudi returns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi.formats.avro.schema import arrow_from_avro, avro_from_arrow, without_meta
from pyhudi.meta_client import MetaClient
from pyhudi.schema.projection import project
from pyhudi.storage import open_storage
from tests.support.golden.rows import differences

TABLES = [
    (version, name)
    for version in ("0.15.0", "1.0.2", "1.2.0")
    for name in ("evolution_promotion", "evolution_add_columns", "types_insert", "types_bulk_insert")
] + [
    ("1.2.0", "types_null_elements"),
    ("1.2.0", "types_timestamp_ntz"),
    ("1.2.0", "evolution_drop_column"),
    ("1.2.0", "evolution_missing_columns"),
]


def read_as_of(folder: Path, instant_time: str, data_columns: pa.Schema) -> pa.Table:
    """The newest file of each group up to an instant, in the schema of that instant."""
    target = arrow_from_avro(avro_from_arrow(data_columns, "t", with_meta=True))
    newest: dict[str, tuple[str, Path]] = {}
    for path in folder.rglob("*.parquet"):
        file_id, _, written = path.stem.split("_")
        if written <= instant_time:
            newest[file_id] = max(newest.get(file_id, ("", path)), (written, path))
    tables = []
    for _, path in newest.values():
        with pq.ParquetFile(path) as file:
            tables.append(project(file.read(), target))
            tables[-1].validate(full=True)
    return pa.concat_tables(tables)


@pytest.mark.parametrize(("version", "name"), TABLES)
def test_rows_are_those_of_real_hudi_at_every_instant(golden: Any, version: str, name: str) -> None:
    folder, description = golden(version, name)
    # Where real Hudi fails on its own table there is nothing to compare with.
    answers = [description.get(key, {}) for key in ("expected", "expected_by_1.2.0")]
    meta = MetaClient.load(open_storage(folder))
    checked = 0
    for answer in answers:
        for instant_time, rows in {"9" * 17: answer.get("snapshot"), **answer.get("as_of", {})}.items():
            if not isinstance(rows, list):
                continue
            then = MetaClient(meta.storage, meta.config, meta.timeline.up_to(instant_time))
            found = read_as_of(folder, instant_time, without_meta(then.table_schema()))
            assert differences(rows, found) == [], instant_time
            checked += 1

    assert checked >= 1
