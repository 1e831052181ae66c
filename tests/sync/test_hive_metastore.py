"""A real Hive metastore takes what is registered, and has it as real HiveSyncTool left it in another one."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pyhudi import HudiTable, write_hudi
from pyhudi.errors import StorageError, TableExists
from pyhudi.meta_client import MetaClient
from pyhudi.model.options import WriteOptions
from pyhudi.storage import open_storage
from pyhudi.sync.hive import HiveCatalog
from pyhudi.sync.syncing import sync_to
from tests.support.catalogs import comparable, oracle_cases, oracle_steps, stored_as_oracle, stored_in_metastore
from tests.support.servers.metastore import hive_metastore

pytest.importorskip("pymetastore")
pytestmark = pytest.mark.servers

SYNC = "hoodie.datasource.hive_sync."
ROWS = [{"id": i, "city": "ab"[i % 2], "ts": 1} for i in range(4)]
# Where we take a side of our own: tests/sync/test_hive_oracle.py.
_DIFFERENT = {"comments": (0,), "mor_skip_ro_suffix": (1,), "not_incremental": (1,)}
_REFUSED = ("no_auto_database", "colon")


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with hive_metastore(tmp_path_factory.mktemp("metastore"), 300) as uri:
        yield uri


@pytest.fixture
def catalog(uri: str) -> Iterator[HiveCatalog]:
    with closing(HiveCatalog(uri, "uris")) as catalog:
        yield catalog


@pytest.mark.parametrize("name", [name for name in oracle_cases() if name not in _REFUSED])
def test_tables_are_there_as_real_hudi_has_registered_them(name: str, catalog: HiveCatalog, tmp_path: Path) -> None:
    for number, folder, options, step in oracle_steps(name, tmp_path):
        meta = MetaClient.load(open_storage(str(folder)))
        sync_to(catalog, meta, WriteOptions.parse(options, None, meta.config).sync)
        if number in _DIFFERENT.get(name, ()):
            continue
        database = options[f"{SYNC}database"]
        for table, there in stored_as_oracle(step, folder).items():
            one = stored_in_metastore(catalog, database, table)
            assert comparable(one, name, step["hudi"]) == comparable(there, name, step["hudi"]), table


def written(path: Path, database: str, uri: str, rows: Any = ROWS) -> tuple[HudiTable, dict[str, str]]:
    options = {f"{SYNC}database": database, f"{SYNC}metastore.uris": uri}
    write_hudi(
        str(path), rows, record_key="id", partition_by="city", options={**options, "hoodie.metadata.enable": "false"}
    )
    return HudiTable.open(str(path)), options


@pytest.mark.parametrize("values", [["a b", "50%", "zürich", "x#y", "q?"], [f"c{n:04}" for n in range(30)]])
def test_partitions_of_odd_values_come_and_go_and_move(
    values: list[str], uri: str, catalog: HiveCatalog, tmp_path: Path
) -> None:
    database = f"odd{len(values)}"
    table, options = written(tmp_path / "t", database, uri, [{"id": n, "city": v} for n, v in enumerate(values)])
    options[f"{SYNC}batch_num"] = "7"

    table.sync("hive", options=options)
    assert set(catalog.partition_names(database, "t")) == {(value,) for value in values}
    located = catalog.locations(database, "t", [(value,) for value in (*values, "none")], 4)
    assert located == {(value,): f"file:{tmp_path}/t/{value}" for value in values}

    catalog.move_partitions(database, "t", {(values[0],): "file:/elsewhere"}, 5)
    table.delete_partitions(values[1:3])
    table.sync("hive", options={**options, "hoodie.meta.sync.incremental": "false"})
    left = [value for value in values if value not in values[1:3]]
    assert stored_in_metastore(catalog, database, "t").locations == {(v,): f"file:{tmp_path}/t/{v}" for v in left}


def test_syncs_at_once_end_in_one_state(uri: str, catalog: HiveCatalog, tmp_path: Path) -> None:
    table, options = written(tmp_path / "t", "atonce", uri, [{"id": n, "city": f"c{n}"} for n in range(20)])

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: table.sync("hive", options=options), range(4)))

    assert sum(result.tables[0].action == "created" for result in results) == 1
    assert len(catalog.partition_names("atonce", "t")) == 20
    assert [one.action for one in table.sync("hive", options=options).tables] == ["unchanged"]


def test_refusals_are_reported_in_one_line_and_leave_nothing(uri: str, catalog: HiveCatalog, tmp_path: Path) -> None:
    table, options = written(tmp_path / "t", "refusals", uri)

    with pytest.raises(StorageError, match=r"No Hive metastore answers: thrift://127\.0\.0\.1:1:"):
        table.sync("hive", options={**options, f"{SYNC}metastore.uris": "thrift://127.0.0.1:1"})
    with pytest.raises(StorageError, match=rf"{uri} refused: InvalidObjectException: .*no-such-name"):
        table.sync("hive", options={**options, f"{SYNC}table": "no-such-name"})
    assert not catalog.has_database("refusals")

    other, _ = written(tmp_path / "other", "refusals", uri)
    other.sync("hive", options={**options, f"{SYNC}table": "taken"})
    with pytest.raises(TableExists, match=r"refusals\.taken is at file:.*/other, .*/t\."):
        table.sync("hive", options={**options, f"{SYNC}table": "taken"})
