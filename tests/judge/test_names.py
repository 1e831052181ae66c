"""Names in a Hive metastore: other processes find them, real Hudi finds ours, and we find real Hudi's.

Real: Hudi 1.2.0 on Spark 3.5, with its session catalog; the metastore is the Derby database that Spark makes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.judge.named_tables import NamesOfHudi, NamesOfOurs, described, properties
from tests.support.judge.real_hudi import Judge

pytestmark = pytest.mark.slow

DDL = """
CREATE TABLE {name} (id INT, name STRING, price DECIMAL(10, 2), ts BIGINT, day STRING) USING hudi
PARTITIONED BY (day) TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts', type = 'mor')
"""
SAME = ("Provider", "_hoodie_file_name", "id", "name", "price", "ts", "day")
PROPERTIES = {"primaryKey=id", "preCombineField=ts", "type=mor"}
ROWS = "VALUES (1, 'a', 1.50, 1, 'd1'), (2, 'b', 2.50, 1, 'd2')"


def test_names_in_a_metastore_are_shared_by_processes_and_with_real_hudi(judge: Judge, tmp_path: Path) -> None:
    with NamesOfHudi(tmp_path) as hudi:
        hudi.sql(DDL.format(name="theirs"))
        hudi.sql(f"INSERT INTO theirs {ROWS}")
        by_hudi = described(hudi, "theirs")

    with NamesOfOurs(tmp_path) as ours:
        assert ours.sql("SELECT id, name, price, day FROM theirs") == [
            ["1", "a", "1.50", "d1"],
            ["2", "b", "2.50", "d2"],
        ]
        ours.sql("UPDATE theirs SET name = 'ours' WHERE id = 1")
        assert ours.sql("SELECT name FROM theirs_ro") == [["a"], ["b"]], "the name that Hudi gives the base files"
        ours.sql("ALTER TABLE theirs ADD COLUMNS (more STRING)")
        refused = ours.ask("ALTER TABLE theirs SET TBLPROPERTIES (mine = 'yes')")
        assert "in a session with Hudi's jar" in refused["error"]
        ours.sql(DDL.format(name="other"))
        ours.sql("ALTER TABLE other RENAME TO made")
        ours.sql(f"INSERT INTO made {ROWS}")

    with NamesOfHudi(tmp_path) as hudi:
        assert {row[1] for row in hudi.sql("SHOW TABLES")} == {"made", "theirs", "theirs_ro", "theirs_rt"}
        by_us = described(hudi, "made")
        assert {key: by_us.get(key) for key in SAME} == {key: by_hudi.get(key) for key in SAME}
        assert properties(by_us) & properties(by_hudi) >= PROPERTIES
        assert hudi.sql("SELECT id, name, price FROM made WHERE day = 'd2'") == [["2", "b", "2.50"]]
        assert hudi.sql("SELECT name, more FROM theirs") == [["b", "None"], ["ours", "None"]]
        hudi.sql("INSERT INTO made VALUES (3, 'c', 3.50, 1, 'd1')")

    with NamesOfOurs(tmp_path) as ours:  # another process than the one that made the name
        assert ours.sql("SELECT id FROM made") == [["1"], ["2"], ["3"]]
        ours.sql("ALTER TABLE made ADD COLUMNS (more STRING)")
        assert ours.sql("SELECT id, more FROM made WHERE id > 2") == [["3", "None"]]
        ours.sql("DROP TABLE theirs")
        ours.sql("DROP TABLE made")
        assert not {"made", "theirs"} & {row[1] for row in ours.sql("SHOW TABLES")}
