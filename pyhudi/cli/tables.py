"""Commands that do more than call one method: facts about a table, removals, and their plans."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pyhudi.cli.calls import command_for, in_commands
from pyhudi.cli.options import Common
from pyhudi.cli.reply import JsonColumns, Reply
from pyhudi.errors import ConfigError
from pyhudi.result import Json

_NO_METADATA = "there is no metadata table"


def _columns(columns: Mapping[str, list[Json]]) -> Reply:
    return Reply(JsonColumns(list(columns), [list(columns.values())]))


def create(common: Common, table: str, columns: str | None = None, like: str | None = None, **more: Any) -> Reply:
    """Create a table. `more`: arguments of HudiTable.create. Raises ConfigError unless columns have one source."""
    from pyhudi import HudiTable
    from pyhudi.sql.columns import schema_of_columns
    from pyhudi.table.row_files import RowFiles

    if (columns is None) == (like is None):
        raise ConfigError("A table needs columns: give either --columns or --like.")
    schema = schema_of_columns(columns) if columns is not None else RowFiles.of([like or ""]).read(None).schema
    return Reply(HudiTable.create(common.path(table), schema, **more, **common.settings).inspect.describe())


def describe(common: Common, table: str) -> Reply:
    """Describe a table without its class, which loads only a tenth of the library."""
    from pyhudi.table.description import describe as described

    return Reply(described(common.path(table), common.storage_options))


def properties(common: Common, table: str) -> Reply:
    """The properties of a table."""
    lines = common.open(table).inspect.describe().properties
    return _columns({"key": list(lines), "value": list(lines.values())})


def schema(common: Common, table: str) -> Reply:
    """The columns of a table, with Arrow's names of types."""
    columns = common.open(table).schema()
    types, nullable = [str(one.type) for one in columns], [one.nullable for one in columns]
    return _columns({"name": columns.names, "type": types, "nullable": nullable})


def files(common: Common, table: str) -> Reply:
    """`HudiTable.inspect.files` without Arrow."""
    from pyhudi.table.description import file_columns

    return _columns(file_columns(common.state(table)))


def partitions(common: Common, table: str) -> Reply:
    """`HudiTable.inspect.partitions` without Arrow."""
    from pyhudi.table.description import partition_columns

    return _columns(partition_columns(common.state(table)))


def timeline(common: Common, table: str, action: str | None = None, pending: bool = False) -> Reply:
    """The instants of this action and state."""
    from pyhudi.model.instant import Instant

    timeline = common.open(table).state().timeline
    instants = timeline.pending() if pending else timeline
    shown = [one for one in instants if action is None or one.action.value == action.lower()]
    return Reply(shown, row_type=Instant)


def health(common: Common, table: str, deep: bool = False) -> Reply:
    """Findings name commands in place of calls in Python."""
    report = common.open(table).inspect.health(deep=deep, options=common.options)
    findings = tuple(replace(one, run=command_for(one.run, report.table)) for one in report.findings)
    return Reply(replace(report, findings=findings))


def drop(common: Common, table: str, dry_run: bool) -> Reply:
    """Drop a table; the answer describes it."""
    hudi_table = common.open(table)
    described = hudi_table.inspect.describe()
    if dry_run:
        return Reply(described, f"would drop this table\n{described}")
    hudi_table.drop()
    return Reply(described, f"{described.path}: dropped")


def set_checkpoint(common: Common, table: str, value: str, key: str | None = None, *, dry_run: bool) -> Reply:
    """Set a checkpoint; the plan shows the current one."""
    hudi_table = common.open(table)
    checkpoint = hudi_table.maintenance.set_checkpoint(value, key=key, dry_run=dry_run, options=common.options)
    text = f"would set {value} ({checkpoint.key}); now: {hudi_table.inspect.checkpoint(key)}" if dry_run else None
    return Reply(checkpoint, text)


def sync_hive(common: Common, table: str) -> Reply:
    """`HudiTable.sync` with the catalog that the command names."""
    return Reply(common.open(table).sync("hive", options=common.options))


def sync_glue(common: Common, table: str) -> Reply:
    """Like `sync_hive`, for AWS Glue."""
    return Reply(common.open(table).sync("glue", options=common.options))


def sync_bigquery(common: Common, table: str) -> Reply:
    """Like `sync_hive`, for BigQuery. The statements come last, each on a separate line, to be copied."""
    return Reply(common.open(table).sync("bigquery", options=common.options))


def export_delta(common: Common, table: str) -> Reply:
    """`HudiTable.export_metadata` with the format that the command names."""
    return Reply(common.open(table).export_metadata("delta", options=common.options))


def export_iceberg(common: Common, table: str) -> Reply:
    """`HudiTable.export_metadata` with the format that the command names."""
    return Reply(common.open(table).export_metadata("iceberg", options=common.options))


def sync_check(common: Common, table: str, engine: str | None = None) -> Reply:
    """Findings name commands in place of calls in Python."""
    checked = common.open(table).sync_check(engine, options=common.options)
    runs = (in_commands(command_for(one.run, checked.table), ()) for one in checked.findings)
    findings = tuple(replace(one, run=run) for one, run in zip(checked.findings, runs, strict=True))
    return Reply(replace(checked, findings=findings))


def delete_savepoint(common: Common, table: str, instant_time: str, dry_run: bool) -> Reply:
    """Delete a savepoint; the answer is the remaining ones."""
    hudi_table = common.open(table)
    deleted = hudi_table.savepoints.delete(instant_time, dry_run=dry_run, options=common.options).instant_time
    savepoints = hudi_table.savepoints.list()
    remaining = type(savepoints)(one for one in savepoints if one.instant_time != deleted)
    return Reply(
        remaining, f"would delete the savepoint of {deleted}; these would remain:\n{remaining}" if dry_run else None
    )


def build_indexes(common: Common, table: str) -> Reply:
    """The indexes that were built."""
    from pyhudi.services.indexes import IndexInfo

    return Reply(common.open(table).indexes.build(options=common.options), row_type=IndexInfo)


def drop_index(common: Common, table: str, name: str, dry_run: bool) -> Reply:
    """Drop an index; the answer is the remaining ones."""
    hudi_table = common.open(table)
    removed = hudi_table.indexes.drop(name, dry_run=dry_run, options=common.options).partitions
    indexes = hudi_table.indexes.list()
    remaining = type(indexes)(one for one in indexes if one.name not in removed)
    return Reply(remaining, f"would drop {', '.join(removed)}; these would remain:\n{remaining}" if dry_run else None)


def validate_metadata(common: Common, table: str, sample: int | None = None) -> Reply:
    """The differences."""
    from pyhudi.queries.statistics_validation import Difference

    metadata = common.open(table).metadata
    differences = metadata.validate(sample=sample, options=common.options)
    text = "\n".join(map(str, differences)) or ("no differences" if metadata.partitions else _NO_METADATA)
    return Reply(differences, text, Difference)


def drop_metadata(common: Common, table: str, partitions: list[str] | None = None, *, dry_run: bool) -> Reply:
    """Drop partitions of the metadata table; the answer is their names."""
    going = common.open(table).metadata.drop(partitions, dry_run=dry_run, options=common.options)
    verb = "would drop" if dry_run else "dropped"
    return Reply(going, f"{verb} {', '.join(going)}" if going else _NO_METADATA, str)


def repair_properties(common: Common, table: str, properties: dict[str, str] | None = None, *, dry_run: bool) -> Reply:
    """Repair the properties of a table that can't be opened."""
    import pyhudi

    path = common.path(table)
    return Reply(pyhudi.repair_properties(path, properties=properties, dry_run=dry_run, **common.settings))
