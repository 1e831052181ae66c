"""Warnings name the line of the script, not one of ours."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.model.options import HudiOptionWarning

ROWS = pa.table({"id": ["a"], "v": [1]})


def test_a_warning_about_an_option_points_at_the_call(tmp_path: Path) -> None:
    with pytest.warns(HudiOptionWarning) as caught:
        pyhudi.write_hudi(tmp_path / "t", ROWS, record_key="id", options={"hoodie.upsert.shuffle.parallelism": "7"})
    assert {warning.filename for warning in caught} == {__file__}
