"""A scan narrowed to fewer columns and rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
import pytest

import pyhudi
from pyhudi import ConfigError, HudiTable

ROWS = [{"id": f"k{n}", "n": n, "name": f"n{n}"} for n in range(6)]


def test_a_narrowed_scan_has_fewer_columns_and_rows_and_sees_the_same_moment(tmp_path: Path):
    pyhudi.write_hudi(tmp_path / "t", ROWS, record_key="id")
    table = HudiTable.open(tmp_path / "t")
    scan = table.scan(["id", "n"], where="n < 5")
    narrow = scan.narrowed(["n"], pc.field("n") > 2)
    table.delete(where="n = 4")
    assert sorted(narrow.to_arrow().to_pydict()["n"]) == [3, 4]
    assert narrow.schema.names == ["n"]
    assert scan.schema.names == ["id", "n"]
    assert scan.narrowed().to_arrow().num_rows == scan.count() == 5


def test_a_narrowed_scan_refuses_what_a_scan_refuses(tmp_path: Path):
    pyhudi.write_hudi(tmp_path / "t", ROWS, record_key="id")
    with pytest.raises(ConfigError, match="nothing"):
        HudiTable.open(tmp_path / "t").scan().narrowed(where="nothing = 1").to_arrow()


def test_the_state_of_a_table_is_that_of_now(tmp_path: Path):
    pyhudi.write_hudi(tmp_path / "t", ROWS, record_key="id")
    table = HudiTable.open(tmp_path / "t")
    before = table.state()
    pyhudi.write_hudi(tmp_path / "t", ROWS, record_key="id")
    assert (len(before.timeline), len(table.state().timeline)) == (1, 2)
