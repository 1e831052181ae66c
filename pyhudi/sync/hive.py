"""A Hive metastore as a catalog, by its Thrift interface. Needs the extra `pyhudi[hive]`.

Source: the metastore's Thrift interface, versions 2.3 to 4.
"""

from __future__ import annotations

import getpass
import struct
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias, TypeVar

from pyhudi.errors import StorageError
from pyhudi.model.options.catalogs.syncing import SyncOptions
from pyhudi.storage.clock import Clock, SystemClock
from pyhudi.storage.hive_metastore import HiveModules, connection
from pyhudi.sync.catalog import (
    Alteration,
    CatalogColumn,
    CatalogTable,
    FileFormat,
    Located,
    PartitionValues,
    in_batches,
)
from pyhudi.sync.partitions import values_of_name

__all__ = ["HiveCatalog", "open_metastore"]

_Thrift: TypeAlias = Any  # an instance of a class that Thrift makes
_DESCRIPTION = "automatically created by hoodie"
# An alteration that cascades changes all partitions before the metastore answers.
_TIMEOUT_MS = 600_000
# Otherwise the metastore lists the table's folder, for statistics that are useless for a Hudi table.
_NO_STATISTICS = {"DO_NOT_UPDATE_STATS": "true"}
_ALL = -1
_TO_ESCAPE = frozenset("\"#%'*/:=?\\\x7f{[]^" + "".join(map(chr, range(1, 32))))

Answer = TypeVar("Answer")


def open_metastore(options: SyncOptions) -> HiveCatalog:
    """The metastore that the options name. Raises what `HiveCatalog` raises."""
    return HiveCatalog(options.uris, options.key_of("uris"))


class HiveCatalog:
    """A connection to a metastore; `close` ends it."""

    def __init__(self, uris: str, setting: str, clock: Clock | None = None) -> None:
        """`uris`: thrift://host:port, separated by commas. `setting`: the option that names them, for messages.

        Raises: StorageError when none answers, ConfigError for an invalid address, and without pymetastore.
        """
        self._uris, self._clock = uris, clock or SystemClock()
        self._hive = HiveModules("Catalogs need")
        self._client: _Thrift
        self._client, self._transport = connection(self._hive, uris, setting, _TIMEOUT_MS)

    @property
    def name(self) -> str:
        return f"the Hive metastore {self._uris}"

    def close(self) -> None:
        self._transport.close()

    # ---- databases and tables

    def has_database(self, database: str) -> bool:
        return self._found(partial(self._client.get_database, database)) is not None

    def create_database(self, database: str) -> bool:
        database_entry = self._hive.types.Database(name=database, description=_DESCRIPTION, parameters={})
        return self._made(partial(self._client.create_database, database_entry))

    def drop_database(self, database: str) -> None:
        self._found(partial(self._client.drop_database, database, False, False))

    def table(self, database: str, name: str) -> CatalogTable | None:
        stored = self._stored(database, name)
        if stored is None:
            return None
        sd = stored.sd
        serde = sd.serdeInfo if sd is not None else None
        return CatalogTable(
            _columns(sd.cols if sd is not None else ()),
            _columns(stored.partitionKeys or ()),
            _text(sd, "location"),
            FileFormat(_text(sd, "inputFormat"), _text(sd, "outputFormat"), _text(serde, "serializationLib")),
            dict(getattr(serde, "parameters", None) or {}),
            dict(stored.parameters or {}),
            is_managed=stored.tableType == "MANAGED_TABLE",
            is_view="VIEW" in (stored.tableType or ""),
        )

    def create_table(self, database: str, name: str, table: CatalogTable) -> bool:
        types, now_s = self._hive.types, self._clock.now_ms() // 1000
        stored = types.Table(
            tableName=name,
            dbName=database,
            owner=_user(),
            createTime=now_s,
            lastAccessTime=0,
            retention=0,
            sd=self._folder(table, table.location, table.serde_properties, table.columns),
            partitionKeys=self._fields(table.partition_keys),
            parameters={**table.properties, **({} if table.is_managed else {"EXTERNAL": "TRUE"})},
            tableType="MANAGED_TABLE" if table.is_managed else "EXTERNAL_TABLE",
        )
        return self._made(partial(self._client.create_table, stored))

    def alter_table(self, database: str, name: str, change: Alteration) -> None:
        stored = self._stored(database, name)
        if stored is None:
            raise StorageError(f"{self.name}: another program has just dropped {database}.{name}. Sync again.")
        if change.columns is not None:
            stored.sd.cols = self._fields(change.columns)
        if change.format is not None:
            stored.sd.inputFormat, stored.sd.outputFormat = change.format.input_format, change.format.output_format
            stored.sd.serdeInfo.serializationLib = change.format.serde
        stored.sd.serdeInfo.parameters = {**(stored.sd.serdeInfo.parameters or {}), **change.serde_properties}
        remaining = {key: value for key, value in stored.parameters.items() if key not in change.removed_properties}
        stored.parameters = {**remaining, **change.properties}
        cascade = {"CASCADE": "true"} if change.cascades else {}
        context = self._hive.types.EnvironmentContext({**_NO_STATISTICS, **cascade})
        self._call(partial(self._client.alter_table_with_environment_context, database, name, stored, context))

    def drop_table(self, database: str, name: str) -> None:
        self._found(partial(self._client.drop_table, database, name, False))

    def _stored(self, database: str, name: str) -> _Thrift:
        """The metastore's table, None if there is none."""
        request = self._hive.types.GetTableRequest(dbName=database, tblName=name)
        answer = self._found(partial(self._client.get_table_req, request))
        return None if answer is None else answer.table

    def index_partitions(self, database: str, name: str, entry: CatalogTable) -> None:
        """Do nothing: a metastore has no such indexes."""

    # ---- partitions

    def partition_names(self, database: str, name: str) -> Collection[PartitionValues]:
        names = self._call(partial(self._client.get_partition_names, database, name, _ALL))
        return frozenset(map(values_of_name, names))

    def locations(self, database: str, name: str, partitions: Sequence[PartitionValues], batch: int) -> Located:
        return {tuple(one.values): one.sd.location for one in self._entries(database, name, partitions, batch)}

    def own_columns(
        self, database: str, name: str, partitions: Sequence[PartitionValues], batch: int
    ) -> Mapping[PartitionValues, tuple[CatalogColumn, ...]]:
        return {tuple(one.values): _columns(one.sd.cols) for one in self._entries(database, name, partitions, batch)}

    def _entries(
        self, database: str, name: str, partitions: Sequence[PartitionValues], batch: int
    ) -> Iterator[_Thrift]:
        """The metastore's entries of those of these partitions that exist."""
        keys = self._keys(database, name, partitions)
        for batch_values in in_batches(partitions, batch):
            names = [_name(keys, values) for values in batch_values]
            yield from self._call(partial(self._client.get_partitions_by_names, database, name, names))

    def add_partitions(self, database: str, name: str, table: CatalogTable, added: Located, batch: int) -> None:
        # Hudi gives partitions the columns without comments.
        columns = tuple(CatalogColumn(column.name, column.type) for column in table.columns)
        for entries in in_batches(tuple(added.items()), batch):
            parts = [self._partition(database, name, table, columns, *one) for one in entries]
            request = self._hive.types.AddPartitionsRequest(
                dbName=database, tblName=name, parts=parts, ifNotExists=True, needResult=False
            )
            self._call(partial(self._client.add_partitions_req, request))

    def move_partitions(self, database: str, name: str, moved: Located, batch: int) -> None:
        keys = self._keys(database, name, tuple(moved))
        for batch_values in in_batches(tuple(moved), batch):
            names = [_name(keys, values) for values in batch_values]
            parts = self._call(partial(self._client.get_partitions_by_names, database, name, names))
            for one in parts:
                one.sd.location = moved[tuple(one.values)]
            if parts:
                self._call(partial(self._client.alter_partitions, database, name, parts))

    def drop_partitions(self, database: str, name: str, partitions: Sequence[PartitionValues], batch: int) -> None:
        types, keys = self._hive.types, self._keys(database, name, partitions)
        for batch_values in in_batches(partitions, batch):
            request = types.DropPartitionsRequest(
                dbName=database,
                tblName=name,
                parts=types.RequestPartsSpec(names=[_name(keys, values) for values in batch_values]),
                deleteData=False,
                ifExists=True,
                needResult=False,
            )
            self._call(partial(self._client.drop_partitions_req, request))

    def _partition(
        self,
        database: str,
        name: str,
        table: CatalogTable,
        columns: Iterable[CatalogColumn],
        values: PartitionValues,
        location: str,
    ) -> _Thrift:
        return self._hive.types.Partition(
            values=list(values),
            dbName=database,
            tableName=name,
            createTime=0,
            lastAccessTime=0,
            sd=self._folder(table, location, table.partition_serde, columns),
            parameters={},
        )

    def _keys(self, database: str, name: str, partitions: Collection[PartitionValues]) -> Sequence[str]:
        """The names of the partition columns; without partitions they are not requested."""
        stored = self._stored(database, name) if partitions else None
        return [key.name for key in stored.partitionKeys] if stored is not None else ()

    # ---- Thrift

    def _folder(
        self, table: CatalogTable, location: str, serde_properties: Mapping[str, str], columns: Iterable[CatalogColumn]
    ) -> _Thrift:
        types = self._hive.types
        return types.StorageDescriptor(
            cols=self._fields(columns),
            location=location,
            inputFormat=table.format.input_format,
            outputFormat=table.format.output_format,
            compressed=False,
            numBuckets=0,
            serdeInfo=types.SerDeInfo(serializationLib=table.format.serde, parameters=dict(serde_properties)),
            bucketCols=[],
            sortCols=[],
            parameters={},
        )

    def _fields(self, columns: Iterable[CatalogColumn]) -> list[_Thrift]:
        return [self._hive.types.FieldSchema(one.name, one.type, one.comment) for one in columns]

    def _found(self, send: Callable[[], Answer]) -> Answer | None:
        """The answer, None if the object does not exist."""
        return self._call(send, self._hive.types.NoSuchObjectException, None)

    def _made(self, send: Callable[[], object]) -> bool:
        """Create an object; False if it exists already."""

        def made() -> bool:
            send()
            return True

        return bool(self._call(made, self._hive.types.AlreadyExistsException, False))

    def _call(self, send: Callable[[], Answer], expected: type[Exception] = KeyError, instead: Any = None) -> Answer:
        try:
            return send()
        except expected:
            return instead  # type: ignore[no-any-return]
        except (self._hive.errors.TException, OSError, ValueError, TypeError, EOFError, struct.error) as error:
            detail = getattr(error, "message", None) or repr(error)
            raise StorageError(f"{self.name} refused: {type(error).__name__}: {detail}") from error


def _columns(fields: Iterable[_Thrift]) -> tuple[CatalogColumn, ...]:
    return tuple(CatalogColumn(one.name, one.type, one.comment or "") for one in fields)


def _text(of: _Thrift, name: str) -> str:
    """A text attribute, "" if it is missing, as a view's folder."""
    return getattr(of, name, None) or ""


def _name(keys: Sequence[str], values: PartitionValues) -> str:
    """The metastore's name of a partition."""
    return "/".join(f"{_escaped(key)}={_escaped(value)}" for key, value in zip(keys, values, strict=True))


def _escaped(text: str) -> str:
    return "".join(f"%{ord(one):02X}" if one in _TO_ESCAPE else one for one in text)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container's user need not have a name
        return "pyhudi"
