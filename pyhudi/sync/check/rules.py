"""The engines, and a row for each thing that they can't read, miss, or show wrongly. Rows name their sources.

Undocumented behaviour is a row of level "unknown", never a guess. `{seen}` is the condition's observation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyhudi.sync.check.result import Level

__all__ = ["ENGINES", "RULES", "Engine", "Rule"]


@dataclass(frozen=True, slots=True)
class Engine:
    """`checked`: the release for which the rules are written. `by_catalog`: a Hive metastore or Glue locates tables."""

    title: str
    checked: str
    by_catalog: bool = True


@dataclass(frozen=True, slots=True)
class Rule:
    """`condition`: a name of `CONDITIONS`, which takes `argument`. `what`: the consequence. `run`: what to do."""

    engines: tuple[str, ...]
    condition: str
    argument: Any
    level: Level
    what: str
    run: str
    source: str


ENGINES: Mapping[str, Engine] = {
    "athena": Engine("Amazon Athena", "engine 3, Hudi 0.14.0; with its native connector 0.15.0"),
    "trino": Engine("Trino's Hudi connector", "with Hudi 1.1.0, since November 2025"),
    "presto": Engine("Presto's Hudi connector", "0.297, with Hudi 1.0.2"),
    "starrocks": Engine("StarRocks' Hudi catalog", "3.4, with Hudi 0.12.1"),
    "doris": Engine("Doris' Hive catalog", "with Hudi 0.15.0"),
    "hive": Engine("Hive with Hudi's jar", "Hudi 1.2.0"),
    "spark": Engine("Spark with Hudi's jar", "Hudi 1.2.0"),
    "flink": Engine("Flink with Hudi's jar", "Hudi 1.2.0"),
    "bigquery": Engine("BigQuery by a manifest", "as of Hudi 1.2.0", by_catalog=False),
    "redshift": Engine("Redshift Spectrum", "as of November 2026"),
    "clickhouse": Engine("ClickHouse's hudi()", "master of 2026", by_catalog=False),
    "daft": Engine("daft.read_hudi", "0.7.26", by_catalog=False),
    "duckdb": Engine("DuckDB's extension hudi", "on hudi-rs 0.5 and 0.6", by_catalog=False),
    "glue-jobs": Engine("AWS Glue jobs", "Glue 5.1, with Hudi 1.0.2"),
}
_JARS = ("hive", "spark", "flink")
_WITHOUT_LOGS = ("trino", "bigquery", "redshift", "clickhouse")
_TWO_VIEWS = ("athena", "presto", "starrocks", "doris", "hive", "glue-jobs")
_BY_HIVE_TYPES = ("athena", "trino", "presto", "starrocks", "doris", "hive", "redshift")

_COMPACT = "table.compact()"
_TO_6 = "table.maintenance.downgrade(to=6)"
_CLEAN = "table.clean() removes replaced files, table.rollback() a dead write"
_TO_OWN_ROWS = "read it through table.to_dataset() (docs/libraries.md)"

_ATHENA = "https://docs.aws.amazon.com/athena/latest/ug/querying-hudi-in-athena-considerations-and-limitations.html"
_ATHENA_CODECS = "https://docs.aws.amazon.com/athena/latest/ug/compression-support-hive.html"
_TRINO_LIBRARY = "https://github.com/trinodb/trino/pull/27494"
_TRINO_LAYOUT = "https://github.com/trinodb/trino/issues/25361"
_TRINO_LOGS = "https://github.com/trinodb/trino/issues/14432"
_TRINO = "https://trino.io/docs/current/connector/hudi.html"
_PRESTO = "https://github.com/prestodb/presto/blob/master/presto-hudi/pom.xml"
_STARROCKS = "https://docs.starrocks.io/docs/data_source/catalog/hudi_catalog/"
_STARROCKS_LIBRARY = "https://github.com/StarRocks/starrocks/blob/main/fe/pom.xml"
_DORIS_LIBRARY = "https://github.com/apache/doris/blob/master/fe/pom.xml"
_VERSIONS = "https://hudi.apache.org/tech-specs-1point0/"
_HIVE_SYNC = "https://hudi.apache.org/docs/syncing_metastore/"
_BIGQUERY = "https://hudi.apache.org/docs/gcp_bigquery/"
_BIGQUERY_TYPES = (
    "https://github.com/apache/hudi/blob/master/hudi-gcp/src/main/java/org/apache/hudi/gcp/bigquery/"
    "BigQuerySchemaResolver.java"
)
_REDSHIFT = "https://docs.aws.amazon.com/redshift/latest/dg/c-spectrum-column-mapping-hudi.html"
_CLICKHOUSE = (
    "https://github.com/ClickHouse/ClickHouse/blob/master/src/Storages/ObjectStorage/DataLakes/HudiMetadata.cpp"
)
_DAFT = "https://github.com/Eventual-Inc/Daft/blob/main/daft/io/hudi/pyhudi/table.py"
_DAFT_TIMELINE = "https://github.com/Eventual-Inc/Daft/blob/main/daft/io/hudi/pyhudi/timeline.py"
_HUDI_RS = "https://docs.rs/crate/hudi-datafusion/0.6.0"
_GLUE = "https://docs.aws.amazon.com/glue/latest/dg/aws-glue-programming-etl-format-hudi.html"
_MERGING = "https://hudi.apache.org/docs/record_merger/"

RULES: tuple[Rule, ...] = (
    # ---- table versions
    Rule(("athena",), "version above", 6, "unreadable", "it reads table versions up to 6: {seen}", _TO_6, _ATHENA),
    Rule(("redshift",), "version above", 6, "unreadable", "it reads timelines of Hudi 0.x, versions up to 6: {seen}",
         _TO_6, _REDSHIFT),
    Rule(("presto",), "version above", 8, "unreadable", "its Hudi 1.0.2 reads table versions up to 8: {seen}",
         "table.maintenance.downgrade(to=8)", _PRESTO),
    Rule(("glue-jobs",), "version above", 8, "unreadable", "the Hudi 1.0.2 of Glue 5.1 reads versions up to 8: {seen}",
         "table.maintenance.downgrade(to=8), or a newer Hudi jar in the job", _GLUE),
    Rule(("glue-jobs",), "version", (8,), "note", "it needs Glue 5.1; Glue 5.0 has Hudi 0.15.0, 4.0 has 0.12.1: {seen}",
         "", _GLUE),
    Rule(("glue-jobs",), "version", (6,), "note", "it needs Glue 5.0 or later; Glue 4.0 has Hudi 0.12.1: {seen}", "",
         _GLUE),
    Rule(("starrocks",), "version above", 5, "unknown", "its Hudi 0.12.1 is older than this table's: {seen}",
         "try it", _STARROCKS_LIBRARY),
    Rule(("doris",), "version above", 6, "unknown", "its Hudi 0.15.0 is older than this table's: {seen}",
         "try it, or " + _TO_6, _DORIS_LIBRARY),
    Rule(("trino",), "version above", 8, "note", "it needs a release with Hudi 1.1.0 or later: {seen}", "",
         _TRINO_LIBRARY),
    Rule(("trino",), "version", (8,), "note", "releases up to 473 don't find the timeline: {seen}", "", _TRINO_LAYOUT),
    Rule(_JARS, "version above", 8, "note", "it needs Hudi's jar of 1.1 or later: {seen}", "", _VERSIONS),
    Rule(_JARS, "version", (8,), "note", "it needs Hudi's jar of 1.0 or later: {seen}", "", _VERSIONS),
    Rule(_JARS, "version", (6,), "note", "it needs Hudi's jar of 0.14 or later: {seen}", "", _VERSIONS),
    Rule(("duckdb",), "version not among", (6, 8, 9), "unreadable", "hudi-rs reads versions 6, 8 and 9: {seen}",
         "table.maintenance.upgrade()", _HUDI_RS),
    Rule(("daft",), "version not among", (5, 6), "unreadable", "it reads table versions 5 and 6: {seen}",
         f"{_TO_6}, or {_TO_OWN_ROWS}", _DAFT),
    # ---- merge-on-read
    Rule(("daft",), "merge-on-read", None, "unreadable", "it reads only copy-on-write tables: {seen}",
         f"{_TO_OWN_ROWS}, or table.maintenance.change_type('cow')", _DAFT),
    Rule(("trino",), "rows in log files", None, "wrong", "it reads only base files: {seen}", _COMPACT, _TRINO_LOGS),
    Rule(("bigquery",), "rows in log files", None, "wrong", "it reads only base files: {seen}",
         f"{_COMPACT}, then table.sync('bigquery')", _BIGQUERY),
    Rule(("redshift",), "rows in log files", None, "wrong", "it reads only base files: {seen}", _COMPACT, _REDSHIFT),
    Rule(("clickhouse",), "rows in log files", None, "wrong", "it reads only base files: {seen}", _COMPACT,
         _CLICKHOUSE),
    Rule(_TWO_VIEWS, "rows in log files", None, "note", "the view of base files, `_ro`, is behind: {seen}",
         f"read the other view (`_rt`, the plain name), or {_COMPACT}", _HIVE_SYNC),
    Rule(_WITHOUT_LOGS, "merge-on-read", None, "note",
         "it shows rows of later commits once they are compacted: {seen}", _COMPACT, _TRINO_LOGS),
    Rule(("athena",), "timestamps in merge-on-read", None, "wrong",
         "queries of the real-time view that read timestamps fail or return nothing: {seen}",
         f"{_COMPACT}, and read `_ro`", _ATHENA),
    Rule(_JARS, "merge mode", "CUSTOM", "note", "it needs the merger's or payload's class on its class path: {seen}",
         "", _MERGING),
    Rule(("athena", "presto", "starrocks", "doris", "glue-jobs", "duckdb"), "merge mode", "CUSTOM", "unknown",
         "whether it finds the merger or payload is not known: {seen}", _COMPACT, _MERGING),
    # ---- base files
    *(
        Rule((engine,), "base files not", ("PARQUET",), "unreadable", "it reads Parquet: {seen}", _TO_OWN_ROWS, source)
        for engine, source in (
            ("trino", _TRINO), ("starrocks", _STARROCKS), ("bigquery", _BIGQUERY), ("redshift", _REDSHIFT),
            ("daft", _DAFT),
        )
    ),
    Rule(("clickhouse",), "base files not", ("PARQUET",), "note", "the call must name the format: {seen}", "",
         _CLICKHOUSE),
    Rule(("duckdb",), "base files not", ("PARQUET", "LANCE"), "unreadable", "hudi-rs reads Parquet and Lance: {seen}",
         _TO_OWN_ROWS, _HUDI_RS),
    Rule(("athena", "presto", "doris"), "base files not", ("PARQUET",), "unknown", "whether it reads these is not "
         "known: {seen}", _TO_OWN_ROWS, _HIVE_SYNC),
    Rule(("starrocks",), "codec not among", ("SNAPPY", "LZ4", "LZ4_RAW", "ZSTD", "GZIP", "UNCOMPRESSED"), "unreadable",
         "it reads snappy, lz4, zstd and gzip: {seen}", "write with compression='zstd', then table.cluster()",
         _STARROCKS),
    Rule(("athena",), "codec not among", ("SNAPPY", "LZ4", "LZ4_RAW", "LZO", "ZSTD", "GZIP", "UNCOMPRESSED"),
         "unreadable", "it reads snappy, lz4, lzo, zstd and gzip: {seen}",
         "write with compression='zstd', then table.cluster()", _ATHENA_CODECS),
    Rule(tuple(ENGINES), "encrypted", None, "unknown", "base files are encrypted; whether it has the keys, and uses "
         "them, is not known: {seen}", "", "https://hudi.apache.org/docs/encryption/"),
    Rule(("athena",), "bootstrapped", None, "note", "its native connector (Hudi 0.15.0) reads no bootstrapped table: "
         "{seen}", "leave `athena_enable_native_hudi_connector_implementation` out", _ATHENA),
    Rule(("bigquery", "clickhouse", "daft"), "bootstrapped", None, "wrong", "data columns of bootstrapped files lie "
         "outside the table, and are null or missing: {seen}", "table.cluster()", _BIGQUERY),
    Rule(("duckdb",), "bootstrapped", None, "unknown", "whether hudi-rs reads bootstrapped files is not known: {seen}",
         "table.cluster()", _HUDI_RS),
    # ---- engines that use only file names
    Rule(("clickhouse",), "shows other files", "clickhouse", "wrong", "it ignores the timeline, and shows files of "
         "writes that never completed, were undone or replaced: {seen}", _CLEAN, _CLICKHOUSE),
    Rule(("daft",), "shows other files", "daft", "wrong", "it ignores the timeline, and shows files of writes that "
         "never completed, were undone or replaced: {seen}", _CLEAN, _DAFT),
    Rule(("clickhouse",), "hides files", "clickhouse", "wrong", "it treats another file as the newest of a group, or "
         "two partitions with the same last folder for one: {seen}", _CLEAN, _CLICKHOUSE),
    Rule(("daft",), "hides files", "daft", "wrong", "it treats another file as the newest of a group: {seen}", _CLEAN,
         _DAFT),
    Rule(("clickhouse", "daft"), "odd file names", None, "unreadable", "it stops at Parquet files that are not called "
         "id_token_time: {seen}", "move these files out of the table's folder", _CLICKHOUSE),
    Rule(("daft",), "other folders", None, "wrong", "in a table without partitions it reads only folders, if "
         "there is one, and finds no row: {seen}", _TO_OWN_ROWS, _DAFT),
    Rule(("clickhouse",), "history in Parquet", None, "unreadable", "it treats the Parquet files of the archived "
         "timeline as rows: {seen}", f"{_TO_6}, which has none", _CLICKHOUSE),
    Rule(("daft",), "= in a property", None, "unreadable", "it can't parse hoodie.properties, where a line must have "
         "one `=`: {seen}", "table.maintenance.set_properties(unset=[...]), where the property can go", _DAFT),
    Rule(("daft",), "lacks property",
         ("hoodie.table.type", "hoodie.timeline.layout.version", "hoodie.table.keygenerator.class",
          "hoodie.datasource.write.drop.partition.columns"),
         "unreadable", "it needs a property that hoodie.properties does not have: {seen}",
         f"{_TO_6} writes them", _DAFT),
    Rule(("daft",), "newest commit without file", None, "wrong", "it takes the columns from the first file of the "
         "newest commit, and without it shows none or fails: {seen}", _TO_OWN_ROWS, _DAFT_TIMELINE),
    # ---- columns
    Rule(("daft",), "dropped partition columns", None, "unreadable", "it refuses tables whose files leave out "
         "partition columns: {seen}", _TO_OWN_ROWS, _DAFT),
    Rule(("clickhouse",), "dropped partition columns", None, "wrong", "it reads files alone, which leave these columns "
         "out: {seen}", "write with hoodie.datasource.write.drop.partition.columns=false", _CLICKHOUSE),
    Rule(("bigquery",), "not hive style", None, "note", "it tells partition columns by paths of the form name=value; "
         "here they are ordinary columns, and prune nothing: {seen}", "leave source_uri_prefix out", _BIGQUERY),
    Rule(_BY_HIVE_TYPES, "columns of type", "time", "unreadable", "a Hive or Glue catalog has no such type, and the "
         "table can't be registered there: {seen} is a time", "store it as a number or as text", _HIVE_SYNC),
    Rule(_BY_HIVE_TYPES, "columns of type", "nanoseconds", "unreadable", "a Hive or Glue catalog has no such type, "
         "and the table can't be registered there: {seen} has nanoseconds", "store it in microseconds", _HIVE_SYNC),
    Rule(("bigquery",), "columns of type", "local timestamp", "note", "local timestamps are INT64 there, as Hudi "
         "declares them: {seen}", "", _BIGQUERY_TYPES),
    Rule(_BY_HIVE_TYPES, "columns of type", "timestamp", "note", "a catalog has bigint for timestamps: {seen}",
         "hoodie.datasource.hive_sync.support_timestamp=true", _HIVE_SYNC),
)  # fmt: skip
