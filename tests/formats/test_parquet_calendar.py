"""Dates and times that Spark wrote by Java's old calendar are read as Spark reads them, or refused."""

from __future__ import annotations

from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi import HudiTable, bootstrap, write_hudi
from pyhudi.cli.main import main
from pyhudi.errors import UnsupportedTable
from pyhudi.formats.base.base import open_file
from pyhudi.formats.base.parquet_calendar import old_calendar
from pyhudi.formats.column_stats import range_of_values
from pyhudi.formats.log.blocks.parquet_data import decode
from pyhudi.storage.local import LocalStorage

LEGACY = {
    "org.apache.spark.version": "4.0.1",
    "org.apache.spark.legacyDateTime": "",
    "org.apache.spark.timeZone": "UTC",
}
# The day of the file, read as Gregorian; and what Spark reads.
DAYS = [
    (date(1, 1, 1), date(1, 1, 3)),
    (date(1500, 3, 9), date(1500, 2, 28)),
    (date(1500, 3, 10), date(1500, 3, 1)),  # 29 February 1500, which the Gregorian calendar does not have
    (date(1500, 3, 11), date(1500, 3, 1)),
    (date(1500, 6, 11), date(1500, 6, 1)),
    (date(1582, 10, 14), date(1582, 10, 4)),
    (date(1582, 10, 15), date(1582, 10, 15)),
    (date(1800, 1, 1), date(1800, 1, 1)),
    (date(2024, 2, 29), date(2024, 2, 29)),
]
FILE_DAYS, SPARK_DAYS = zip(*DAYS, strict=True)


def moments(days: Any) -> pa.Array:
    return pa.array(
        [datetime(d.year, d.month, d.day, 3, 4, 5, 6, timezone.utc) for d in days], pa.timestamp("us", "UTC")
    )


def old_rows(days: Any) -> pa.Table:
    count = len(days)
    offsets = pa.array([*range(count), count], pa.int32())
    dates = pa.array(days, pa.date32())
    return pa.table(
        {
            "id": list(range(count)),
            "d": dates,
            "t": moments(days),
            "local": moments(days).cast(pa.timestamp("us")),
            "s": pa.StructArray.from_arrays([dates, moments(days)], ["d", "t"]),
            "l": pa.ListArray.from_arrays(offsets, dates),
            "m": pa.MapArray.from_arrays(offsets, dates, moments(days)),
        }
    )


def save(path: Path, rows: pa.Table, footer: dict[str, str], **how: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(file_of(rows, footer, **how))
    return path


def file_of(rows: pa.Table, footer: dict[str, str], row_group_size: int | None = None, **how: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, rows.schema, store_schema=False, **how) as writer:
        writer.write_table(rows, row_group_size)
        writer.add_key_value_metadata(footer)
    return sink.getvalue().to_pybytes()


def read(path: Path, columns: list[str] | None = None) -> pa.Table:
    with open_file(LocalStorage(str(path.parent)), path.name) as reader:
        return pa.Table.from_batches(list(reader.batches(columns)))


BY_SPARK_2 = {"org.apache.spark.version": "2.4.8", "org.apache.spark.timeZone": "UTC"}


@pytest.mark.parametrize("footer", [LEGACY, {**LEGACY, "org.apache.spark.version": "3.5.6"}, BY_SPARK_2], ids=str)
def test_a_file_of_the_old_calendar_is_read_as_spark_reads_it(footer: dict[str, str], tmp_path: Path) -> None:
    rows = read(save(tmp_path / "a.parquet", old_rows(FILE_DAYS), footer))

    expected = old_rows(SPARK_DAYS).set_column(3, "local", old_rows(FILE_DAYS).column("local"))
    assert rows.to_pydict() == expected.to_pydict(), "only times with a zone are moments"


@pytest.mark.parametrize(
    "footer", [{}, {"org.apache.spark.version": "3.0.0"}, {"org.apache.spark.version": "4.0.1"}], ids=str
)
def test_other_files_are_gregorian(footer: dict[str, str], tmp_path: Path) -> None:
    rows = read(save(tmp_path / "a.parquet", old_rows(FILE_DAYS), footer))
    assert rows.to_pydict() == old_rows(FILE_DAYS).to_pydict()


@pytest.mark.parametrize(("version", "is_old"), [("2.4.8", True), ("3.0.3", True), ("3.1.1", False), ("4.0.1", False)])
def test_int96_is_old_in_files_before_spark_3_1(version: str, is_old: bool, tmp_path: Path) -> None:
    footer = {"org.apache.spark.version": version, "org.apache.spark.timeZone": "UTC"}
    late = [day for day in FILE_DAYS if day.year >= 1500]
    rows = pa.table({"t": moments(late).cast(pa.timestamp("us"))})
    path = save(tmp_path / "a.parquet", rows, footer, use_deprecated_int96_timestamps=True)

    expected = moments([spark for file, spark in DAYS if file.year >= 1500] if is_old else late)
    assert read(path).column("t").combine_chunks() == expected
    marked = save(path, rows, {**footer, "org.apache.spark.legacyINT96": ""}, use_deprecated_int96_timestamps=True)
    assert read(marked).column("t").to_pylist()[3].day == 1


@pytest.mark.parametrize(
    ("zone", "says"), [("America/Los_Angeles", "of the zone America/Los_Angeles"), (None, "does not name")]
)
def test_moments_before_1900_of_another_zone_are_refused(zone: str | None, says: str, tmp_path: Path) -> None:
    footer = {key: value for key, value in LEGACY.items() if "timeZone" not in key}
    footer |= {} if zone is None else {"org.apache.spark.timeZone": zone}
    late = [date(1900, 1, 1), date(2024, 1, 1)]
    assert read(save(tmp_path / "a.parquet", old_rows(late), footer)).to_pydict() == old_rows(late).to_pydict()
    path = save(tmp_path / "a.parquet", old_rows(FILE_DAYS), footer)

    assert read(path, ["d"]).column("d").to_pylist() == list(SPARK_DAYS), "days have no zone"
    with pytest.raises(UnsupportedTable, match=says) as raised:
        read(path, ["t"])
    assert "a.parquet: column 't' holds moments before 1900" in str(raised.value)
    assert "set to CORRECTED" in str(raised.value)


def test_every_way_to_read_a_column_gives_the_same_days(tmp_path: Path) -> None:
    path = save(tmp_path / "a.parquet", old_rows(FILE_DAYS), LEGACY, row_group_size=3)
    days = pa.array(SPARK_DAYS, pa.date32())
    with open_file(LocalStorage(str(tmp_path)), "a.parquet") as reader:
        assert reader.column("d").combine_chunks() == days
        assert [row["d"] for batch in reader.rows_at(["d"], np.array([1, 4])) for row in batch.to_pylist()] == [
            SPARK_DAYS[1],
            SPARK_DAYS[4],
        ]
        assert reader.rows_having("d", pa.array([date(1500, 6, 1)], pa.date32())).tolist() == [4]
        found, expected = reader.ranges(["d"])[0], range_of_values("d", days)
        assert (found.least, found.greatest) == (expected.least, expected.greatest)
    assert path.exists()


def with_legacy_files(table: Path) -> None:
    """The table as Spark in mode LEGACY would have written it."""
    for file in table.glob("*.parquet"):
        rows = pq.ParquetFile(file)
        old = rows.read().cast(pa.schema([field.remove_metadata() for field in rows.schema_arrow]))
        by_day = dict(zip(SPARK_DAYS[4:], FILE_DAYS[4:], strict=True))
        days = pa.array([by_day[day] for day in old.column("d").to_pylist()], pa.date32())
        footer = {**{key.decode(): value.decode() for key, value in rows.metadata.metadata.items()}, **LEGACY}
        footer.pop("ARROW:schema", None)
        save(file, old.set_column(old.schema.get_field_index("d"), "d", days), footer, row_group_size=2)


def test_base_files_of_a_table_are_read_filtered_and_rewritten_as_spark_reads_them(tmp_path: Path) -> None:
    new = old_rows(SPARK_DAYS[4:]).select(["id", "d", "t"])
    options = {"hoodie.metadata.enable": "false"}
    write_hudi(tmp_path / "t", new, record_key="id", options=options)
    with_legacy_files(tmp_path / "t")
    table = HudiTable.open(tmp_path / "t")

    def days() -> list[date]:
        return table.to_arrow(["id", "d"]).sort_by("id").column("d").to_pylist()

    assert days() == list(SPARK_DAYS[4:])
    assert table.scan(where="d = DATE '1500-06-01'").count() == 1
    assert table.scan(where="d < DATE '1582-10-05'").count() == 2
    table.upsert([{"id": 4, "d": date(1999, 1, 1), "t": None}])
    assert days() == [*SPARK_DAYS[4:8], date(1999, 1, 1)]


def test_files_that_are_added_or_bootstrapped_keep_their_days_and_moments(tmp_path: Path) -> None:
    late = FILE_DAYS[4:]
    rows = old_rows(late).select(["id", "d", "t"])
    save(tmp_path / "in" / "a.parquet", rows, LEGACY)
    times = pa.table({"id": rows.column("id"), "t": moments(late).cast(pa.timestamp("us"))})
    save(
        tmp_path / "int96" / "a.parquet",
        times,
        BY_SPARK_2,
        use_deprecated_int96_timestamps=True,
    )

    for source, expected in (("in", old_rows(SPARK_DAYS[4:]).select(["id", "d", "t"])), ("int96", None)):
        expected = expected if expected is not None else old_rows(SPARK_DAYS[4:]).select(["id", "t"])
        added = HudiTable.create(tmp_path / f"{source}_added", expected.schema, record_key="id")
        added.maintenance.add_files(tmp_path / source)
        tables = [added]
        for mode in ("METADATA_ONLY", "FULL_RECORD"):
            bootstrap(tmp_path / source, tmp_path / f"{source}_{mode}", record_key="id", mode=mode)
            tables.append(HudiTable.open(tmp_path / f"{source}_{mode}"))
        for table in tables:
            assert table.to_arrow(expected.column_names).sort_by("id").cast(expected.schema) == expected, table.path
            assert pa.types.is_timestamp(table.schema().field("t").type)
            assert table.schema().field("t").type.tz == "UTC"


def test_the_command_line_writes_what_spark_would_read(tmp_path: Path) -> None:
    save(tmp_path / "a.parquet", old_rows(FILE_DAYS[4:]).select(["id", "d", "t"]), LEGACY)
    times = pa.table({"id": [1], "t": moments(FILE_DAYS[4:5]).cast(pa.timestamp("us"))})
    save(tmp_path / "b.parquet", times, BY_SPARK_2, use_deprecated_int96_timestamps=True)

    for name in ("a", "b"):
        words = ["write", tmp_path / name, tmp_path / f"{name}.parquet", "--record-key", "id"]
        assert main([str(word) for word in words]) == 0

    assert HudiTable.open(tmp_path / "a").to_arrow(["id", "d"]).sort_by("id").column("d").to_pylist() == [
        *SPARK_DAYS[4:]
    ]
    assert HudiTable.open(tmp_path / "b").to_arrow(["t"]).column("t").combine_chunks() == moments(SPARK_DAYS[4:5])


def test_log_blocks_of_parquet_follow_their_footer() -> None:
    block = file_of(old_rows(FILE_DAYS).select(["d"]), LEGACY)
    assert decode(block, "").column("d").to_pylist() == list(SPARK_DAYS)


def test_a_version_of_an_unknown_form_says_nothing_of_the_calendar() -> None:
    assert old_calendar({b"org.apache.spark.version": b"two.four"}) is None
    assert old_calendar(None) is None
