"""A catalog in memory that takes the calls of a Hive metastore, and what real HiveSyncTool wrote into a real one."""

from __future__ import annotations

import json
import shutil
import tarfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from pyhudi.errors import StorageError
from pyhudi.model.options.catalogs.syncing import SyncOptions
from pyhudi.registry import Registry
from pyhudi.sync import calls
from pyhudi.sync.catalog import Alteration, Catalog, CatalogColumn, CatalogTable, FileFormat, Located, PartitionValues
from pyhudi.sync.definitions import SPARK_PART
from pyhudi.sync.hive import HiveCatalog
from tests.support.golden.folder import SHARED, shared_folder

__all__ = [
    "MemoryCatalog",
    "Registered",
    "catalogs_in_memory",
    "comparable",
    "oracle_cases",
    "oracle_steps",
    "stored_as_oracle",
    "stored_in_metastore",
]

ORACLE = SHARED / "services" / "hive-sync-oracle"


@dataclass
class Registered:
    """A table as the catalog has it. `columns_of`, `serde_of`: a partition's own."""

    table: CatalogTable
    locations: dict[PartitionValues, str] = field(default_factory=dict)
    columns_of: dict[PartitionValues, tuple[CatalogColumn, ...]] = field(default_factory=dict)
    serde_of: dict[PartitionValues, Mapping[str, str]] = field(default_factory=dict)


@dataclass
class MemoryCatalog:
    """`refuses`: the name of a call that the catalog refuses. `calls`: names of the calls, and how many partitions each
    of them took.
    """

    name: str = "the catalog in memory"
    databases: dict[str, dict[str, Registered]] = field(default_factory=dict)
    calls: list[tuple[str, int]] = field(default_factory=list)
    refuses: str = ""

    def _called(self, name: str, partitions: int = 0) -> None:
        self.calls.append((name, partitions))
        if name == self.refuses:
            raise StorageError(f"{self.name} refused: no rights to {name}")

    def close(self) -> None:
        pass

    def has_database(self, database: str) -> bool:
        self._called("has_database")
        return database in self.databases

    def create_database(self, database: str) -> bool:
        self._called("create_database")
        made = database not in self.databases
        self.databases.setdefault(database, {})
        return made

    def drop_database(self, database: str) -> None:
        assert not self.databases.pop(database)

    def table(self, database: str, name: str) -> CatalogTable | None:
        self._called("table")
        there = self.databases[database].get(name)
        return None if there is None else there.table

    def create_table(self, database: str, name: str, table: CatalogTable) -> bool:
        self._called("create_table")
        if name in self.databases[database]:
            return False
        external = {} if table.is_managed else {"EXTERNAL": "TRUE"}
        stored = replace(table, properties={**table.properties, **external}, partition_serde={})
        self.databases[database][name] = Registered(stored)
        return True

    def alter_table(self, database: str, name: str, change: Alteration) -> None:
        self._called("alter_table")
        assert not change.is_empty
        there = self.databases[database][name]
        kept = {key: value for key, value in there.table.properties.items() if key not in change.removed_properties}
        there.table = replace(
            there.table,
            columns=change.columns or there.table.columns,
            format=change.format or there.table.format,
            serde_properties={**there.table.serde_properties, **change.serde_properties},
            properties={**kept, **change.properties},
        )
        if change.cascades:
            there.columns_of = dict.fromkeys(there.columns_of, there.table.columns)

    def index_partitions(self, database: str, name: str, there: CatalogTable) -> None:
        pass

    def drop_table(self, database: str, name: str) -> None:
        self._called("drop_table")
        self.databases[database].pop(name, None)

    def partition_names(self, database: str, name: str) -> Collection[PartitionValues]:
        there = self.databases[database][name].locations
        self._called("partition_names", len(there))
        return tuple(there)

    def locations(self, database: str, name: str, partitions: Sequence[PartitionValues], batch: int) -> Located:
        self._called("locations", len(partitions))
        there = self.databases[database][name].locations
        return {values: there[values] for values in partitions if values in there}

    def own_columns(
        self, database: str, name: str, partitions: Sequence[PartitionValues], batch: int
    ) -> Mapping[PartitionValues, tuple[CatalogColumn, ...]]:
        self._called("own_columns", len(partitions))
        there = self.databases[database][name].columns_of
        return {values: there[values] for values in partitions if values in there}

    def add_partitions(self, database: str, name: str, table: CatalogTable, added: Located, batch: int) -> None:
        if not added:
            return
        self._called("add_partitions", len(added))
        there = self.databases[database][name]
        columns = tuple(CatalogColumn(one.name, one.type) for one in table.columns)
        for values, location in added.items():
            assert len(values) == len(table.partition_keys)
            if values not in there.locations:
                there.locations[values], there.columns_of[values] = location, columns
                there.serde_of[values] = table.partition_serde

    def move_partitions(self, database: str, name: str, moved: Located, batch: int) -> None:
        if moved:
            self._called("move_partitions", len(moved))
            self.databases[database][name].locations.update(moved)

    def drop_partitions(self, database: str, name: str, partitions: Sequence[PartitionValues], batch: int) -> None:
        if partitions:
            self._called("drop_partitions", len(partitions))
        there = self.databases[database][name]
        for values in partitions:
            for of in (there.locations, there.columns_of, there.serde_of):
                of.pop(values, None)


_opened: dict[str, MemoryCatalog] = {}


@contextmanager
def catalogs_in_memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryCatalog]:
    """Every sync goes to this catalog, at whatever address."""
    catalog = MemoryCatalog()
    _opened["now"] = catalog
    opener = f"{__name__}:opened_in_memory"
    here: Registry[Callable[[SyncOptions], Catalog]] = Registry("catalog", {"hive": opener, "glue": opener})
    monkeypatch.setattr(calls, "CATALOGS", here)
    yield catalog


def opened_in_memory(options: SyncOptions) -> MemoryCatalog:
    """The catalog of `catalogs_in_memory`; none answers at the address `thrift://nobody`."""
    if options.uris == "thrift://nobody" and options.catalog == "hive":
        raise StorageError(f"No Hive metastore answers: {options.uris}. See {options.key_of('uris')}.")
    return _opened["now"]


def stored_in_metastore(catalog: HiveCatalog, database: str, name: str) -> Registered:
    """All of a table, its partitions' own columns and serde properties too."""
    table = catalog.table(database, name)
    assert table is not None
    registered = Registered(table)
    for one in catalog._client.get_partitions(database, name, -1):
        values = tuple(one.values)
        registered.locations[values] = one.sd.location
        registered.columns_of[values] = tuple(CatalogColumn(c.name, c.type, c.comment or "") for c in one.sd.cols)
        registered.serde_of[values] = dict(one.sd.serdeInfo.parameters)
    return registered


# ---- what real Hudi wrote


def oracle_cases() -> list[str]:
    """The names of the tables; [] without the shared folder."""
    return sorted(path.stem for path in ORACLE.glob("*.json"))


def oracle_steps(name: str, folder: Path) -> Iterator[tuple[int, Path, dict[str, str], dict[str, Any]]]:
    """Each step: its number, the table's folder as it is then, the options of its sync, and the step."""
    shared_folder()
    case = json.loads((ORACLE / f"{name}.json").read_text())
    with tarfile.open(ORACLE / "tables" / f"{name}.tar.gz") as archive:
        archive.extractall(folder / "steps", filter="data")
    table = folder / "table"
    for number, step in enumerate(case["steps"]):
        shutil.copytree(folder / "steps" / name / str(number), table, dirs_exist_ok=True)
        given = {**case["options"], **(step["given"].get("options") or {})}
        options = {key: value for key, value in given.items() if "sync" in key}
        spark = {"hoodie.meta_sync.spark.version": "3.5.9"}
        yield number, table, {**options, **spark}, {**step, "hudi": case["hudi"]}


_METASTORES_OWN = ("transient_lastDdlTime", "numFiles", "totalSize")


def stored_as_oracle(step: Mapping[str, Any], folder: Path) -> dict[str, Registered]:
    """The tables that real Hudi had registered after a step, with this folder in the place of its own."""
    text = json.dumps(step["metastore"]["tables"]).replace("{base}", str(folder))
    return {name: _registered(one) for name, one in json.loads(text).items()}


def _registered(stored: Mapping[str, Any]) -> Registered:
    table, sd = stored["table"], stored["table"]["sd"]
    formats = (sd["inputFormat"], sd["outputFormat"], sd["serdeInfo"]["serializationLib"])
    columns = tuple(CatalogColumn(*column) for column in sd["cols"])
    registered = Registered(
        CatalogTable(
            columns,
            tuple(CatalogColumn(one["name"], one["type"], one["comment"]) for one in table["partitionKeys"]),
            sd["location"],
            FileFormat(*formats),
            sd["serdeInfo"]["parameters"],
            {key: value for key, value in table["parameters"].items() if key not in _METASTORES_OWN},
            is_managed=table["tableType"] == "MANAGED_TABLE",
        )
    )
    for one in stored["partitions"]:
        values, own = tuple(one["values"]), one["sd"]
        registered.locations[values] = own["location"]
        registered.columns_of[values] = tuple(CatalogColumn(*column) for column in own.get("cols", sd["cols"]))
        registered.serde_of[values] = own.get("serdeInfo", sd["serdeInfo"])["parameters"]
    return registered


# Hudi knows the completion of a commit below version 8 from its file's time, which the archive has in seconds.
_BY_FILE_TIME = ("version_6", "mor_by_0_15_0", "cow_by_0_15_0")


def comparable(stored: Registered, name: str, hudi: str, without: Collection[str] = ()) -> Registered:
    """Spark's schema parsed; without what only a release of Hudi, or the table's archive, tells otherwise."""
    others = {*_METASTORES_OWN, *without}
    properties = {key: value for key, value in stored.table.properties.items() if key not in others}
    parts = sorted(
        (key for key in properties if key.startswith(SPARK_PART)), key=lambda key: int(key.rpartition(".")[2])
    )
    text = "".join(properties.pop(key) for key in parts)
    properties["schema"] = json.dumps(json.loads(text)) if text else ""
    if hudi != "1.2.0":
        properties.pop("hudi_writer_version", None)
    if name in _BY_FILE_TIME:
        properties.pop("last_commit_completion_time_sync")
    return replace(stored, table=replace(stored.table, properties=properties))
