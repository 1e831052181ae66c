"""One Hive metastore, where HiveSyncTool of real Hudi and we register a table in turns.

Real: Hudi 1.2.0 on Spark, which writes with its sync, and the metastore (`make servers`).
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from pyhudi import HudiTable, write_hudi
from pyhudi.sync.hive import HiveCatalog
from tests.support.catalogs import Registered, comparable, stored_in_metastore
from tests.support.judge.real_hudi import Judge
from tests.support.servers.metastore import hive_metastore

pytest.importorskip("pymetastore")
pytestmark = [pytest.mark.slow, pytest.mark.servers]

SYNC = "hoodie.datasource.hive_sync."
ROWS = [{"id": f"k{n}", "p": f"p{n % 3}", "ts": 1, "v": n / 2} for n in range(6)]
TIMES = ("last_commit_time_sync", "last_commit_completion_time_sync")


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_what_one_has_registered_the_other_leaves_and_goes_on_with(kind: str, judge: Judge, tmp_path: Path) -> None:
    table = tmp_path / "rides"
    columns = {
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.table.type": kind,
    }
    names = {"COPY_ON_WRITE": ("rides",), "MERGE_ON_READ": ("rides", "rides_ro", "rides_rt")}[kind]
    with hive_metastore(tmp_path, 300) as uri, closing(HiveCatalog(uri, "uris")) as catalog:
        sync = {f"{SYNC}mode": "hms", f"{SYNC}metastore.uris": uri, f"{SYNC}database": "lake", f"{SYNC}table": "rides"}
        ours = {**sync, "hoodie.meta_sync.spark.version": "3.5.9"}

        def registered() -> dict[str, Registered]:
            stored = {name: stored_in_metastore(catalog, "lake", name) for name in names}
            return {name: comparable(one, name, "1.2.0", without=TIMES) for name, one in stored.items()}

        def hudi_writes(
            rows: list[dict[str, object]], schema: str = "id string, p string, ts bigint, v double"
        ) -> None:
            options = {**columns, **sync, f"{SYNC}enable": "true"}
            judge.write(table, "1.2.0", schema=schema, options=options, steps=[{"operation": "upsert", "rows": rows}])

        write_hudi(str(table), ROWS, options={**columns, "hoodie.table.name": "rides"})
        HudiTable.open(str(table)).sync("hive", options=ours)
        first = registered()
        hudi_writes([{**ROWS[0], "ts": 2}])
        assert registered() == first

        hudi_writes(
            [{**ROWS[0], "ts": 3, "n": 1}, {**ROWS[1], "p": "p9", "n": 2}],
            "id string, p string, ts bigint, v double, n int",
        )
        second = registered()
        result = HudiTable.open(str(table)).sync("hive", options=ours)
        assert {one.action for one in result.tables} == {"unchanged"}
        assert registered() == second

        HudiTable.open(str(table)).delete_partitions(["p2"])
        HudiTable.open(str(table)).insert([{"id": "k7", "p": "p7", "ts": 1, "v": 1.5, "n": 3, "w": "x"}])
        HudiTable.open(str(table)).sync("hive", options=ours)
        third = registered()
        assert {values[0] for values in third["rides"].locations} == {"p0", "p1", "p7", "p9"}
        hudi_writes(
            [{**ROWS[0], "ts": 4, "n": 1, "w": "y"}], "id string, p string, ts bigint, v double, n int, w string"
        )
        assert registered() == third
