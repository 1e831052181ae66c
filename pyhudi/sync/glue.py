"""AWS Glue's Data Catalog as a catalog, by boto3. Needs the extra `pyhudi[glue]`.

Tables and partitions have the form of a Hive metastore. This module does what a metastore does by itself: partitions'
own columns follow those of the table, and a change of a table is refused, and repeated, if another one was faster.
Source: the API of AWS Glue; what Hudi's AwsGlueCatalogSyncTool registers.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from pyhudi.errors import ConfigError, StorageError
from pyhudi.model.options.catalogs.glue import GlueOptions
from pyhudi.model.options.catalogs.syncing import SyncOptions
from pyhudi.storage.aws_session import aws_session
from pyhudi.storage.clock import Clock, SystemClock
from pyhudi.sync.catalog import (
    Alteration,
    CatalogColumn,
    CatalogTable,
    FileFormat,
    Located,
    PartitionValues,
    in_batches,
)
from pyhudi.sync.definitions import INDEXED
from pyhudi.sync.glue_calls import Answer, GlueCalls, in_threads
from pyhudi.warnings import warn_caller

__all__ = ["GlueCatalog", "open_glue"]

Item = TypeVar("Item")

_DESCRIPTION = "automatically created by hoodie"
_ABSENT, _THERE = "EntityNotFoundException", "AlreadyExistsException"
# Partitions in one request.
_READ_MAX, _CHANGED_MAX, _DROPPED_MAX = 1000, 100, 25
_CONNECT_TIMEOUT_S, _READ_TIMEOUT_S = 10, 60
_INDEX_PREFIX = "hudi_managed_"  # of indexes that a sync of Hudi or PyHudi has made
# Fields of an answer that a request takes.
_TABLE_INPUT = (
    "Name",
    "Description",
    "Owner",
    "LastAccessTime",
    "LastAnalyzedTime",
    "Retention",
    "StorageDescriptor",
    "PartitionKeys",
    "TableType",
    "Parameters",
    "TargetTable",
)
_PARTITION_INPUT = ("Values", "LastAccessTime", "StorageDescriptor", "Parameters", "LastAnalyzedTime")


def open_glue(options: SyncOptions) -> GlueCatalog:
    """Glue with the region and the credentials of the options, else of the environment.

    Raises: ConfigError without a region, StorageError when the role can't be assumed.
    """
    return GlueCatalog(_client(options.glue), options.glue)


def _client(options: GlueOptions) -> Any:
    errors = importlib.import_module("botocore.exceptions")
    threads = max(options.all_read_threads, options.changed_read_threads, options.change_threads)
    config = importlib.import_module("botocore.config").Config(
        connect_timeout=_CONNECT_TIMEOUT_S,
        read_timeout=_READ_TIMEOUT_S,
        retries={"total_max_attempts": 1},  # GlueCalls repeats requests
        max_pool_connections=max(threads, 10),
    )
    try:
        session = aws_session(options.aws, options.region, "AWS Glue")
        return session.client("glue", endpoint_url=options.endpoint_url, config=config)
    except (errors.BotoCoreError, ValueError) as error:
        raise ConfigError(
            f"AWS Glue can't be used: {error} See hoodie.aws.glue.region, hoodie.aws.glue.endpoint and "
            "hoodie.aws.access.key in docs/catalogs.md."
        ) from error


class GlueCatalog:
    """The catalog of one account and region."""

    def __init__(self, client: Any, options: GlueOptions, clock: Clock | None = None) -> None:
        place = options.endpoint_url or client.meta.region_name
        self._options, self._clock = options, clock or SystemClock()
        self._calls = GlueCalls(client, f"AWS Glue ({place})", options.catalog_id, self._clock)

    @property
    def name(self) -> str:
        return self._calls.name

    def close(self) -> None:
        self._calls.client.close()

    # ---- databases and tables

    def has_database(self, database: str) -> bool:
        return self._calls.ask("get_database", _ABSENT, Name=database) is not None

    def create_database(self, database: str) -> bool:
        tags = {"Tags": dict(self._options.tags)} if self._options.tags else {}
        database_input = {"Name": database, "Description": _DESCRIPTION}
        return self._calls.ask("create_database", _THERE, DatabaseInput=database_input, **tags) is not None

    def drop_database(self, database: str) -> None:
        # Glue drops a database with all its tables.
        answer = self._calls.ask("get_tables", _ABSENT, DatabaseName=database, MaxResults=1)
        if answer is not None and not answer.get("TableList"):
            self._calls.ask("delete_database", _ABSENT, Name=database)

    def table(self, database: str, name: str) -> CatalogTable | None:
        answer = self._calls.ask("get_table", _ABSENT, DatabaseName=database, Name=name)
        if answer is None:
            return None
        stored = answer["Table"]
        sd, properties = stored.get("StorageDescriptor") or {}, stored.get("Parameters") or {}
        serde = sd.get("SerdeInfo") or {}
        return CatalogTable(
            _columns(sd.get("Columns")),
            _columns(stored.get("PartitionKeys")),
            sd.get("Location", ""),
            FileFormat(sd.get("InputFormat", ""), sd.get("OutputFormat", ""), serde.get("SerializationLibrary", "")),
            dict(serde.get("Parameters") or {}),
            dict(properties),
            is_managed=properties.get("EXTERNAL", "").upper() != "TRUE",
            is_view="VIEW" in stored.get("TableType", ""),
        )

    def create_table(self, database: str, name: str, table: CatalogTable) -> bool:
        table_input = {
            "Name": name,
            "TableType": "EXTERNAL_TABLE",  # even for managed tables, as in Hudi: Glue deletes no files
            "Parameters": {**table.properties, **({} if table.is_managed else {"EXTERNAL": "TRUE"})},
            "PartitionKeys": _fields(table.partition_keys),
            "StorageDescriptor": _folder(table, table.location, table.serde_properties, table.columns),
        }
        indexes = {"PartitionIndexes": self._indexes(table.partition_keys)} if self._is_indexed(table) else {}
        if self._calls.ask("create_table", _THERE, DatabaseName=database, TableInput=table_input, **indexes) is None:
            return False
        if self._options.tags:
            try:
                self._tag(database, name)
            except BaseException:
                self.drop_table(database, name)
                raise
        return True

    def alter_table(self, database: str, name: str, change: Alteration) -> None:
        if change.cascades and change.columns is not None:
            # Before the table: after an error the next sync sees that the table's columns are still the old ones.
            self._cascade({"DatabaseName": database, "TableName": name}, change.columns)
        self._calls.again(partial(self._altered, database, name, change))

    def _altered(self, database: str, name: str, change: Alteration) -> None:
        answer = self._calls.once("get_table", _ABSENT, DatabaseName=database, Name=name)
        if answer is None:
            raise StorageError(f"{self.name}: another program has just dropped {database}.{name}. Sync again.")
        stored = answer["Table"]
        sd = stored["StorageDescriptor"]
        serde = sd.setdefault("SerdeInfo", {})
        if change.columns is not None:
            sd["Columns"] = _fields(change.columns)
        if change.format is not None:
            sd["InputFormat"], sd["OutputFormat"] = change.format.input_format, change.format.output_format
            serde["SerializationLibrary"] = change.format.serde
        serde["Parameters"] = {**(serde.get("Parameters") or {}), **change.serde_properties}
        parameters = stored.get("Parameters") or {}
        remaining = {key: value for key, value in parameters.items() if key not in change.removed_properties}
        stored["Parameters"] = {**remaining, **change.properties}
        # Of two concurrent changes Glue refuses the one that has read an older version.
        version = {"VersionId": stored["VersionId"]} if stored.get("VersionId") else {}
        self._calls.once(
            "update_table",
            DatabaseName=database,
            TableInput=_only(_TABLE_INPUT, stored),
            SkipArchive=self._options.skips_archive,
            **version,
        )

    def drop_table(self, database: str, name: str) -> None:
        self._calls.ask("delete_table", _ABSENT, DatabaseName=database, Name=name)

    def _tag(self, database: str, name: str) -> None:
        answer = self._calls.ask("get_table", DatabaseName=database, Name=name) or {}
        meta, account = self._calls.client.meta, answer["Table"]["CatalogId"]
        arn = f"arn:{meta.partition}:glue:{meta.region_name}:{account}:table/{database}/{name}"
        self._calls.ask("tag_resource", ResourceArn=arn, TagsToAdd=dict(self._options.tags))

    # ---- partitions

    def partition_names(self, database: str, name: str) -> Collection[PartitionValues]:
        table, count = {"DatabaseName": database, "TableName": name}, self._options.all_read_threads
        segments = [{"Segment": {"SegmentNumber": number, "TotalSegments": count}} for number in range(count)]

        def read(segment: Mapping[str, Any]) -> set[PartitionValues]:
            return {tuple(one["Values"]) for page in self._calls.pages(**table, **segment) for one in page}

        return set().union(*in_threads(read, segments if count > 1 else [{}], count))

    def locations(self, database: str, name: str, partitions: Sequence[PartitionValues], batch: int) -> Located:
        return self._read(database, name, partitions, batch, lambda folder: folder.get("Location", ""))

    def own_columns(
        self, database: str, name: str, partitions: Sequence[PartitionValues], batch: int
    ) -> Mapping[PartitionValues, tuple[CatalogColumn, ...]]:
        return self._read(database, name, partitions, batch, lambda folder: _columns(folder.get("Columns")))

    def _read(
        self,
        database: str,
        name: str,
        partitions: Sequence[PartitionValues],
        batch: int,
        take: Callable[[Answer], Item],
    ) -> dict[PartitionValues, Item]:
        """The result of `take` for each of these partitions that exists."""

        def read(batch_values: Sequence[PartitionValues]) -> dict[PartitionValues, Item]:
            answers = self._calls.partitions(batch_values, DatabaseName=database, TableName=name)
            return {tuple(one["Values"]): take(one["StorageDescriptor"]) for one in answers}

        items: dict[PartitionValues, Item] = {}
        for part in in_threads(
            read, tuple(in_batches(partitions, min(batch, _READ_MAX))), self._options.changed_read_threads
        ):
            items |= part
        return items

    def add_partitions(self, database: str, name: str, table: CatalogTable, added: Located, batch: int) -> None:
        # Hudi gives partitions the columns without comments.
        columns = tuple(CatalogColumn(column.name, column.type) for column in table.columns)

        def add(batch_entries: Sequence[tuple[PartitionValues, str]]) -> None:
            folders = {values: _folder(table, place, table.partition_serde, columns) for values, place in batch_entries}
            entries = {values: {"Values": list(values), "StorageDescriptor": sd} for values, sd in folders.items()}
            self._change("batch_create_partition", "PartitionInputList", entries, _THERE, database, name)

        self._in_batches(add, tuple(added.items()), min(batch, _CHANGED_MAX))

    def move_partitions(self, database: str, name: str, moved: Located, batch: int) -> None:
        def move(batch_values: Sequence[PartitionValues]) -> None:
            existing = self._calls.partitions(batch_values, DatabaseName=database, TableName=name)
            for one in existing:
                one["StorageDescriptor"]["Location"] = _location(moved[tuple(one["Values"])])
            self._update(existing, {"DatabaseName": database, "TableName": name})

        self._in_batches(move, tuple(moved), min(batch, _CHANGED_MAX))

    def drop_partitions(self, database: str, name: str, partitions: Sequence[PartitionValues], batch: int) -> None:
        def drop(batch_values: Sequence[PartitionValues]) -> None:
            entries = {values: {"Values": list(values)} for values in batch_values}
            self._change("batch_delete_partition", "PartitionsToDelete", entries, _ABSENT, database, name)

        self._in_batches(drop, partitions, min(batch, _DROPPED_MAX))

    def _cascade(self, table: Mapping[str, str], columns: Iterable[CatalogColumn]) -> None:
        """Give all partitions these columns."""
        fields = _fields(columns)
        for page in self._calls.pages(**table):
            for one in page:
                one["StorageDescriptor"]["Columns"] = fields
            self._in_batches(partial(self._update, table=table), page, _CHANGED_MAX)

    def _update(self, stored: Sequence[Answer], table: Mapping[str, str]) -> None:
        entries = {
            tuple(one["Values"]): {
                "PartitionValueList": one["Values"],
                "PartitionInput": _only(_PARTITION_INPUT, one),
            }
            for one in stored
        }
        if entries:
            self._calls.change("batch_update_partition", "Entries", entries, _ABSENT, **table)

    def _change(
        self,
        operation: str,
        argument: str,
        entries: Mapping[PartitionValues, Answer],
        harmless: str,
        database: str,
        name: str,
    ) -> None:
        self._calls.change(operation, argument, entries, harmless, DatabaseName=database, TableName=name)

    def _in_batches(self, change: Callable[[Sequence[Any]], None], items: Sequence[Any], batch: int) -> None:
        in_threads(change, tuple(in_batches(items, batch)), self._options.change_threads)

    # ---- indexes of partitions

    def index_partitions(self, database: str, name: str, entry: CatalogTable) -> None:
        """An error only causes a warning: the table is registered without the index, and the next sync tries again.
        Glue takes minutes to create or drop an index, and allows no other one during that time.
        """
        is_on = self._is_indexed(entry)
        if not is_on and entry.properties.get(INDEXED) != "true":
            return
        try:
            if not is_on:
                self.alter_table(database, name, Alteration(properties={INDEXED: "false"}))
            self._bring_indexes(self._indexes(entry.partition_keys) if is_on else [], database, name)
        except StorageError as error:
            warn_caller(
                f"{database}.{name} is registered, but its partition indexes differ from the options; the next "
                f"sync tries again. {error}"
            )

    def _bring_indexes(self, indexes: Sequence[Answer], database: str, name: str) -> None:
        """Create missing indexes; drop those that a sync made and the options no longer name."""
        table = {"DatabaseName": database, "TableName": name}
        answer = self._calls.ask("get_partition_indexes", **table) or {}
        stored = [one for one in answer.get("PartitionIndexDescriptorList") or () if one["IndexStatus"] != "DELETING"]
        requested = [index["Keys"] for index in indexes]
        existing = []
        for one in stored:
            keys = [key["Name"] for key in one["Keys"]]
            is_ours = one["IndexName"].startswith(_INDEX_PREFIX)
            if is_ours and (keys not in requested or one["IndexStatus"] == "FAILED"):
                self._calls.ask("delete_partition_index", _ABSENT, **table, IndexName=one["IndexName"])
            else:
                existing.append(keys)
        for index in indexes:
            if index["Keys"] not in existing:
                self._calls.ask("create_partition_index", _THERE, **table, PartitionIndex=index)

    def _is_indexed(self, table: CatalogTable) -> bool:
        return self._options.has_indexes and bool(table.partition_keys)

    def _indexes(self, keys: Sequence[CatalogColumn]) -> list[Answer]:
        """The indexes in the options, with Hudi's names."""
        indexes = self._options.indexes or (tuple(key.name for key in keys),)
        return [{"Keys": list(names), "IndexName": f"{_INDEX_PREFIX}[{', '.join(names)}]"} for names in indexes]


# ---- Glue's form


def _folder(
    table: CatalogTable, location: str, serde_properties: Mapping[str, str], columns: Iterable[CatalogColumn]
) -> Answer:
    return {
        "Columns": _fields(columns),
        "Location": _location(location),
        "InputFormat": table.format.input_format,
        "OutputFormat": table.format.output_format,
        "SerdeInfo": {"SerializationLibrary": table.format.serde, "Parameters": dict(serde_properties)},
    }


def _location(location: str) -> str:
    """The location with the scheme s3, the only one for S3 in Athena."""
    scheme, separator, path = location.partition("://")
    return f"s3://{path}" if separator and scheme in ("s3a", "s3n") else location


def _columns(fields: Iterable[Answer] | None) -> tuple[CatalogColumn, ...]:
    return tuple(CatalogColumn(one["Name"], one.get("Type", ""), one.get("Comment") or "") for one in fields or ())


def _fields(columns: Iterable[CatalogColumn]) -> list[Answer]:
    return [{"Name": one.name, "Type": one.type, "Comment": one.comment} for one in columns]


def _only(names: Sequence[str], stored: Answer) -> Answer:
    return {name: stored[name] for name in names if name in stored}
