"""Tables that are written in both directions: what is written, step by step, and what must be in the table then.

The expectation is kept in a dict, row by row, by nothing but the rules of the specification.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import pyarrow as pa

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("region", pa.string()),
        ("seq", pa.int32()),
        ("ts", pa.int64()),
        ("fare", pa.float64()),
        ("amount", pa.decimal128(10, 2)),
        ("at", pa.timestamp("us", tz="UTC")),
        ("day", pa.date32()),
        ("note", pa.string()),
    ]
)
DDL = (
    "id string, region string, seq int, ts bigint, fare double, amount decimal(10,2), at timestamp, day date,"
    " note string"
)
REGIONS = ("north", "south", "a b=c/d%")
SHORT_REGIONS = ("north", "south", "east")

Row = dict[str, Any]


def row(number: int, ts: int, regions: Sequence[str] = SHORT_REGIONS, **other: Any) -> Row:
    """A row whose cells follow from its number and its version `ts`."""
    made = {
        "id": f"k{number:04d}",
        "region": regions[number % len(regions)],
        "seq": number,
        "ts": ts,
        "fare": number * 1.25 + ts,
        "amount": Decimal(number) + Decimal("0.25"),
        "at": datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc)
        + datetime.timedelta(minutes=number, microseconds=ts),
        "day": datetime.date(2024, 1, 1) + datetime.timedelta(days=number % 5),
        "note": None if number % 7 == 0 else f"note {number} at {ts}",
    }
    return {**made, **other}


def rows(numbers: Iterable[int], ts: int, regions: Sequence[str] = SHORT_REGIONS) -> list[Row]:
    return [row(number, ts, regions) for number in numbers]


@dataclass(frozen=True)
class Step:
    """One write. `crash`: its completed file is taken away afterwards, as if the writer had died just before."""

    operation: str
    rows: list[Row]
    crash: bool = False
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Story:
    """A table: its version, options and steps."""

    name: str
    table_version: int
    options: Mapping[str, str]
    steps: tuple[Step, ...]
    key: tuple[str, ...] = ("id",)
    partition: tuple[str, ...] = ("region",)  # () for one global name space of keys
    schema: pa.Schema = SCHEMA
    check_options: Mapping[str, str] = field(default_factory=dict)
    skip: tuple[str, ...] = ()  # steps of the judge's check
    as_text: tuple[str, ...] = ()  # columns that real Hudi returns as text, whatever the table says
    from_path: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)  # and as what the path makes of them
    reads_only: bool = False  # real Hudi reads such tables and can't write them
    session: tuple[str, ...] = ()  # SQL for the judge's session before it reads

    def write_options(self) -> dict[str, str]:
        base = {"hoodie.table.name": self.name, "hoodie.write.table.version": str(self.table_version)}
        return {**base, **self.options}

    @property
    def by_value(self) -> bool:
        """The greater ordering value wins; otherwise the row written later."""
        ordered = any(key.endswith(("ordering.fields", "precombine.field")) for key in self.options)
        return ordered and (self.table_version >= 8 or BY_VALUE.items() <= self.options.items())

    def expected(self, steps: Iterable[Step] | None = None) -> list[Row]:
        """What the table holds after the steps (all when None), in no order."""
        table: dict[tuple[Any, ...], Row] = {}
        for step in self.steps if steps is None else steps:
            if step.crash:
                continue
            for given in step.rows:
                key = tuple(given[name] for name in (*self.key, *self.partition))
                stored = table.get(key)
                if step.operation == "delete":
                    table.pop(key, None)
                elif stored is None or not self.by_value or given["ts"] >= stored["ts"]:
                    table[key] = given
                    if given.get("_hoodie_is_deleted"):
                        del table[key]
        return list(table.values())

    def as_hudi_returns(self, table: pa.Table) -> pa.Table:
        """The table's rows with the values of `from_path`."""
        for name, value_of in self.from_path.items():
            values = pa.array([value_of(value) for value in table.column(name).to_pylist()])
            table = table.set_column(table.column_names.index(name), name, values)
        return table

    def data(self, step: Step) -> pa.Table:
        return pa.Table.from_pylist(step.rows, schema=self.schema)


def standard_steps(regions: Sequence[str] = SHORT_REGIONS) -> tuple[Step, ...]:
    """Bulk insert, upsert (newer, older and new rows), insert, a writer that dies, delete, upsert."""
    return (
        Step("bulk_insert", rows(range(60), 10, regions)),
        Step(
            "upsert",
            [*rows(range(20), 20, regions), *rows(range(20, 30), 5, regions), *rows(range(60, 70), 20, regions)],
        ),
        Step("insert", rows(range(70, 80), 20, regions)),
        Step("upsert", rows(range(30, 45), 30, regions), crash=True),
        Step("delete", rows(range(10, 15), 40, regions)),
        Step("upsert", rows(range(40, 50), 50, regions)),
    )


def log_steps(*, revives: bool = True) -> tuple[Step, ...]:
    """Steps of a merge-on-read table that leave base files, several log files on top of them, and a new file group.

    `revives`: a deleted key comes back. Hudi 1.0.2 fails on that in log files, in tables of its own as well: it
    compares the int that a delete without ordering value has with the long of the new row.
    """
    revived = rows(range(12, 13), 50) if revives else []
    return (
        Step("bulk_insert", rows(range(60), 10)),
        Step("upsert", [*rows(range(20), 20), *rows(range(20, 30), 5)]),
        Step("upsert", rows(range(10, 25), 30)),
        Step("insert", rows(range(60, 70), 20)),
        Step("upsert", rows(range(30, 45), 30), crash=True),
        Step("delete", rows(range(10, 15), 40)),
        Step("upsert", [*revived, *rows(range(40, 50), 50), *rows(range(65, 75), 60)]),
    )


def marked_deletes() -> Step:
    """Rows that say that they are deleted: newer than the stored rows, older, and unknown."""
    marked = [
        *rows(range(5), 70),
        *rows(range(25, 28), 3),
        *rows(range(66, 68), 70),
        *rows(range(90, 92), 70),
    ]
    return Step("upsert", [{**row, "_hoodie_is_deleted": True} for row in marked])


def with_flags(steps: Iterable[Step]) -> tuple[Step, ...]:
    """Steps whose rows have a delete flag."""
    return tuple(replace(step, rows=[{"_hoodie_is_deleted": False, **row} for row in step.rows]) for step in steps)


KEYS = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "region",
    "hoodie.table.ordering.fields": "ts",
}
BARE_KEYS = {"hoodie.datasource.write.recordkey.field": "id", "hoodie.table.ordering.fields": "ts"}
# Tables of version 6 store no merge mode: Hudi 0.x takes the payload class of each write.
BY_VALUE = {"hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload"}
HIVE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
ENCODED = {"hoodie.datasource.write.partitionpath.urlencode": "true"}

# One for each table version; these run on every change.
# A write that compacts on its way would leave nothing for the judge's own compaction.
NO_COMPACTION = {"hoodie.compact.inline": "false"}
MERGE_ON_READ = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", **NO_COMPACTION}
AVRO_LOGS = {"hoodie.logfile.data.block.format": "avro"}
EVERY_CHANGE = (
    Story("v9_logs", 9, {**KEYS, **MERGE_ON_READ}, log_steps(), check_options=NO_COMPACTION),
    Story(
        "v8_avro_logs", 8, {**KEYS, **MERGE_ON_READ, **AVRO_LOGS}, log_steps(revives=False), check_options=NO_COMPACTION
    ),
    Story(
        "v6_logs", 6, {**KEYS, **BY_VALUE, **MERGE_ON_READ}, log_steps(), check_options={**BY_VALUE, **NO_COMPACTION}
    ),
    Story("v9_partitioned", 9, KEYS, standard_steps()),
    Story("v8_hive_style", 8, {**KEYS, **HIVE}, standard_steps()),
    Story("v6_plain", 6, {**BARE_KEYS, **BY_VALUE}, standard_steps(), partition=(), check_options=BY_VALUE),
)

_TIMEBASED = {
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    "hoodie.keygen.timebased.output.dateformat": "yyyyMM",
    "hoodie.keygen.timebased.timezone": "UTC",
}
_GENERATOR = "hoodie.datasource.write.keygenerator.class"
_TIMED_STEPS = (
    Step("bulk_insert", [row(n, 1_704_067_200_000 + n * 86_400_000) for n in range(60)]),
    Step("upsert", [row(n, 1_704_067_200_000 + n * 86_400_000, note="corrected") for n in range(0, 30, 2)]),
    Step("delete", [row(n, 1_704_067_200_000 + n * 86_400_000) for n in range(5)]),
)


def _month(epoch_ms: int) -> str:
    return datetime.datetime.fromtimestamp(epoch_ms / 1000, datetime.timezone.utc).strftime("%Y/%m")


# Partition columns of timestamp and custom generators are read as text by Hudi, and steps that filter on them differ.
# Hudi 0.15.0 reads them from the path (in one level only where it is a number), and writes what it read elsewhere.
_TIMED_SKIPS = ("skipping", "incremental", "hudi_rs", "hudi_rs_as_of", "hudi_rs_after")


def _variants(version: int) -> tuple[Story, ...]:
    v = f"v{version}"
    timed = {**_TIMEBASED, "hoodie.keygen.timebased.output.dateformat": "yyyy/MM"} if version == 6 else _TIMEBASED
    return (
        Story(f"{v}_not_partitioned", version, BARE_KEYS, standard_steps(), partition=()),
        Story(f"{v}_partitioned", version, KEYS, standard_steps()),
        Story(f"{v}_hive_style", version, {**KEYS, **HIVE}, standard_steps()),
        Story(f"{v}_url_encoded", version, {**KEYS, **ENCODED}, standard_steps(REGIONS)),
        Story(f"{v}_hive_style_url_encoded", version, {**KEYS, **HIVE, **ENCODED}, standard_steps(REGIONS)),
        Story(
            f"{v}_complex",
            version,
            {
                **KEYS,
                "hoodie.datasource.write.recordkey.field": "id,seq",
                "hoodie.datasource.write.partitionpath.field": "region,day",
            },
            standard_steps(),
            key=("id", "seq"),
            partition=("region", "day"),
        ),
        Story(
            f"{v}_timestamp",
            version,
            {**KEYS, **timed, _GENERATOR: "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
             "hoodie.datasource.write.partitionpath.field": "ts"},
            _TIMED_STEPS,
            partition=(),
            as_text=() if version == 6 else ("ts",),
            from_path={"ts": _month} if version == 6 else {},
            reads_only=version == 6,
            skip=_TIMED_SKIPS,
            check_options=timed,
        ),
        Story(
            f"{v}_custom",
            version,
            {**KEYS, **_TIMEBASED, _GENERATOR: "org.apache.hudi.keygen.CustomKeyGenerator",
             "hoodie.datasource.write.partitionpath.field": "region:SIMPLE,ts:TIMESTAMP"},
            _TIMED_STEPS,
            from_path={"ts": lambda ms: int(_month(ms).replace("/", ""))} if version == 6 else {},
            reads_only=version == 6,
            skip=_TIMED_SKIPS,
            check_options={**_TIMEBASED, "hoodie.datasource.write.partitionpath.field": "region:SIMPLE,ts:TIMESTAMP"},
        ),
        Story(
            f"{v}_commit_time",
            version,
            {key: text for key, text in KEYS.items() if "ordering" not in key},
            standard_steps(),
        ),
        Story(
            f"{v}_bloom",
            version,
            {**KEYS, "hoodie.index.type": "BLOOM"},
            standard_steps(),
        ),
        Story(
            f"{v}_bucket",
            version,
            {**KEYS, "hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"},
            tuple(step for step in standard_steps() if step.operation != "insert"),
            check_options={"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"},
            skip=("upsert_bloom", "clustering"),
        ),
    )  # fmt: skip


# Hudi's incremental queries return late rows of log files that its snapshots don't have, of its own tables too.
_LATE_ROWS = ("incremental",)


def _log_variants(version: int) -> tuple[Story, ...]:
    v = f"v{version}"
    keys = {**KEYS, **MERGE_ON_READ, **(BY_VALUE if version < 8 else {})}
    by_commit_time = {key: text for key, text in {**KEYS, **MERGE_ON_READ}.items() if "ordering" not in key}
    check = {**NO_COMPACTION, **(BY_VALUE if version < 8 else {})}
    buckets = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
    steps = log_steps(revives=version != 8)
    no_inserts = tuple(step for step in steps if step.operation != "insert")
    without_base_files = ("hudi_rs", "hudi_rs_as_of") if version >= 8 else ()
    return (
        Story(f"{v}_logs_everything", version, keys, steps, check_options=check, skip=_LATE_ROWS),
        Story(f"{v}_avro_logs", version, {**keys, **AVRO_LOGS}, steps, check_options=check, skip=_LATE_ROWS),
        Story(f"{v}_logs_commit_time", version, by_commit_time, log_steps(), check_options=NO_COMPACTION),
        Story(f"{v}_logs_bucket", version, {**keys, **buckets}, no_inserts, check_options={**check, **buckets},
              skip=("upsert_bloom", "clustering", *_LATE_ROWS, *without_base_files)),
    )  # fmt: skip


def _flagged(version: int, block_format: Mapping[str, str]) -> Story:
    # hudi-rs reads the ordering value of a delete as another type. Hudi 0.15 lets a late delete win.
    return Story(
        f"v{version}_logs_flags",
        version,
        {**KEYS, **MERGE_ON_READ, **block_format},
        with_flags([*log_steps(revives=version != 8), marked_deletes(), Step("upsert", rows(range(2, 4), 80))]),
        schema=SCHEMA.append(pa.field("_hoodie_is_deleted", pa.bool_())),
        check_options=NO_COMPACTION,
        skip=("hudi_rs", "hudi_rs_as_of", *_LATE_ROWS),
    )


# Every kind of table; these take their time.
EVERY_KIND = (
    *_variants(9),
    *_variants(8),
    *_variants(6),
    *_log_variants(9),
    *_log_variants(8),
    *_log_variants(6),
    _flagged(9, {}),
    _flagged(8, AVRO_LOGS),
    # Hudi 1.2.0 on Spark 3.5 fails on ORC as soon as it writes, and when it reads with vectors.
    Story("v9_orc", 9, {**KEYS, "hoodie.table.base.file.format": "ORC"}, standard_steps(), reads_only=True,
          session=("set spark.sql.orc.enableVectorizedReader=false",)),
    Story("v9_virtual_keys", 9, {**KEYS, "hoodie.populate.meta.fields": "false"}, standard_steps()),
    Story("v9_dropped_partition_columns", 9, {**KEYS, **HIVE, "hoodie.datasource.write.drop.partition.columns": "true"},
          standard_steps(), skip=("hudi_rs", "hudi_rs_as_of", "hudi_rs_after")),
)  # fmt: skip
