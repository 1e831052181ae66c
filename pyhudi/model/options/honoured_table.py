"""Options that say what a table is: its type, keys, schema rules and which row wins.

Source: Hudi's documented keys; sides taken are in docs/compatibility.md.
"""

from __future__ import annotations

from pyhudi.model.options.row import honoured
from pyhudi.model.options.spec import Door, Kind, OptionSpec

__all__ = ["TABLE_OPTIONS"]

FLAG, INTEGER, NUMBER, NAMES, TEXT = Kind.FLAG, Kind.INTEGER, Kind.NUMBER, Kind.NAMES, Kind.TEXT

_TABLE = "Table"
_KEYS = "Keys and partition paths"
_MERGE = "Which row wins"

_TABLE_ROWS = (
    honoured(
        _TABLE,
        "hoodie.table.name",
        TEXT,
        None,
        "Name of the table; needed when the first write creates it.",
        "hoodie.datasource.write.table.name",
    ),
    honoured(_TABLE, "hoodie.database.name", TEXT, None, "Database that the table names as its own."),
    honoured(
        _TABLE,
        "hoodie.datasource.write.table.type",
        TEXT,
        "COPY_ON_WRITE",
        "Table type.",
        "hoodie.datasource.write.storage.type",
        "hoodie.table.type",
        choices=("COPY_ON_WRITE", "MERGE_ON_READ"),
    ),
    honoured(
        _TABLE,
        "hoodie.write.table.version",
        INTEGER,
        "9",
        "Version of a new table: 6 (Hudi 0.14 and 0.15), 8 (Hudi 1.0) or 9 (Hudi 1.1 and 1.2). A table keeps its own.",
        "hoodie.table.version",
        choices=("6", "8", "9"),
    ),
    honoured(
        _TABLE,
        "hoodie.table.base.file.format",
        TEXT,
        "PARQUET",
        "Format of base files.",
        "hoodie.base.file.format",
        "hoodie.table.ro.file.format",
        choices=("PARQUET", "ORC"),
        later=("HFILE", "LANCE"),
    ),
    honoured(
        _TABLE, "hoodie.populate.meta.fields", FLAG, "true", "Store the five meta columns. false gives virtual keys."
    ),
    honoured(
        _TABLE,
        "hoodie.table.timeline.timezone",
        TEXT,
        "LOCAL",
        "Zone of instant times in a new table.",
        choices=("LOCAL", "UTC"),
    ),
)
_FIELD_ROWS = (
    honoured(
        _KEYS,
        "hoodie.datasource.write.recordkey.field",
        NAMES,
        None,
        "Fields of the record key; nested ones with dots. None: keys are generated.",
        "hoodie.table.recordkey.fields",
    ),
    honoured(
        _KEYS,
        "hoodie.datasource.write.partitionpath.field",
        NAMES,
        None,
        "Fields of the partition path; `field:SIMPLE` or `field:TIMESTAMP` for the custom generator.",
        "hoodie.table.partition.fields",
    ),
    honoured(
        _KEYS,
        "hoodie.datasource.write.keygenerator.type",
        TEXT,
        None,
        "Key generator by name; inferred from the fields when neither this nor the class is given.",
        "hoodie.table.keygenerator.type",
    ),
    honoured(
        _KEYS,
        "hoodie.datasource.write.keygenerator.class",
        TEXT,
        None,
        "Key generator by Hudi's class name, or a class of yours as `module:Class`.",
        "hoodie.table.keygenerator.class",
    ),
    honoured(
        _KEYS,
        "hoodie.datasource.write.hive_style_partitioning",
        FLAG,
        "false",
        "Partition folders are named `field=value`.",
    ),
    honoured(
        _KEYS,
        "hoodie.datasource.write.partitionpath.urlencode",
        FLAG,
        "false",
        "Special characters of partition values are escaped in folder names.",
    ),
    honoured(
        _KEYS,
        "hoodie.datasource.write.slash.separated.date.partitioning",
        FLAG,
        "false",
        "`2024-01-15` becomes the folder `2024/01/15`; one partition field, new tables only.",
    ),
    honoured(
        _KEYS,
        "hoodie.datasource.write.drop.partition.columns",
        FLAG,
        "false",
        "Leave partition columns out of the files.",
    ),
    honoured(
        _KEYS,
        "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled",
        FLAG,
        "false",
        "Timestamps in keys and paths as text instead of epoch numbers.",
    ),
    honoured(
        _KEYS,
        "hoodie.write.complex.keygen.new.encoding",
        FLAG,
        "false",
        "Complex generator with one key field, tables below version 9: keys are bare values instead of `field:value`.",
    ),
)
_TIMEBASED_ROWS = tuple(
    honoured(
        _KEYS,
        f"hoodie.keygen.{name}",
        TEXT,
        default,
        doc,
        f"hoodie.streamer.keygen.{name}",
        f"hoodie.deltastreamer.keygen.{name}",
    )
    for name, default, doc in (
        (
            "timebased.timestamp.type",
            None,
            "UNIX_TIMESTAMP, EPOCHMILLISECONDS, EPOCHMICROSECONDS, SCALAR, DATE_STRING or MIXED.",
        ),
        ("timebased.timestamp.scalar.time.unit", "SECONDS", "Unit of a SCALAR timestamp."),
        ("timebased.input.dateformat", None, "Joda pattern, or several, of text timestamps."),
        ("timebased.input.dateformat.list.delimiter.regex", ",", "Regular expression between several input patterns."),
        ("timebased.input.timezone", None, "Zone of text timestamps that name none."),
        ("timebased.output.dateformat", None, "Joda pattern of the partition path."),
        ("timebased.output.timezone", None, "Zone of the partition path."),
        ("timebased.timezone", None, "Zone of both; beats the other two."),
    )
)
_PAYLOADS = tuple(
    f"org.apache.hudi.{name}"
    for name in (
        "common.model.DefaultHoodieRecordPayload",
        "common.model.OverwriteWithLatestAvroPayload",
        "common.model.EventTimeAvroPayload",
        "common.model.PartialUpdateAvroPayload",
        "common.model.OverwriteNonDefaultsWithLatestAvroPayload",
        "common.model.FirstValueAvroPayload",
        "common.model.AWSDmsAvroPayload",
        "payload.AWSDmsAvroPayload",
        "common.model.debezium.PostgresDebeziumAvroPayload",
        "common.model.debezium.MySqlDebeziumAvroPayload",
    )
)
_MERGE_ROWS = (
    honoured(
        _MERGE,
        "hoodie.table.ordering.fields",
        NAMES,
        None,
        "Fields that say which of two rows is newer.",
        "hoodie.datasource.write.precombine.field",
        "hoodie.table.precombine.field",
        "hoodie.payload.ordering.field",
    ),
    honoured(
        _MERGE,
        "hoodie.write.record.merge.mode",
        TEXT,
        None,
        "The row written later wins, the one with the greater ordering value, or a merger of yours decides "
        "([merging](merging.md)). Inferred from the ordering fields.",
        "hoodie.record.merge.mode",
        choices=("COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING", "CUSTOM"),
    ),
    honoured(
        _MERGE,
        "hoodie.datasource.write.payload.class",
        TEXT,
        None,
        "Older way to say how rows merge; version 9 stores what it means ([merging](merging.md)).",
        "hoodie.compaction.payload.class",
        choices=_PAYLOADS,
        later=("org.apache.hudi.common.model.EmptyHoodieRecordPayload",),
    ),
    honoured(
        _MERGE,
        "hoodie.payload.delete.field",
        TEXT,
        None,
        "Rows whose field of this name has the text of `hoodie.payload.delete.marker` are deletes. Version 9 stores "
        "it; before, each write says it.",
    ),
    honoured(_MERGE, "hoodie.payload.delete.marker", TEXT, None, "See `hoodie.payload.delete.field`; case counts."),
    honoured(
        _MERGE,
        "hoodie.write.record.merge.strategy.id",
        TEXT,
        None,
        "Id of a merge strategy: commit time, event time, by payload, or the `strategy_id` of a merger of yours.",
        "hoodie.datasource.write.record.merger.strategy",
        "hoodie.record.merge.strategy.id",
        "hoodie.compaction.record.merger.strategy",
    ),
    honoured(
        _MERGE,
        "hoodie.write.record.merge.custom.implementation.classes",
        NAMES,
        None,
        "Your mergers as `module:Class`; the first whose `strategy_id` is the table's is used. Java classes are passed "
        "over. A table never names a class.",
        "hoodie.datasource.write.record.merger.impls",
        doors=frozenset({Door.READ, Door.WRITE}),
    ),
)

TABLE_OPTIONS: tuple[OptionSpec, ...] = (*_TABLE_ROWS, *_FIELD_ROWS, *_TIMEBASED_ROWS, *_MERGE_ROWS)
