"""Save modes by DataFrames; tests/table/test_save_modes.py does the same by Arrow rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pyhudi.session.writer import write_frame
from tests.support.save_modes import CASES, SPARK_CASES, SaveModeCase, check_case


@pytest.mark.parametrize("case", [*CASES, *SPARK_CASES], ids=str)
def test_a_save_mode_does_what_the_list_says_with_data_frames(case: SaveModeCase, tmp_path: Path, spark: Any):
    path = tmp_path / "t"

    def write(number: int, mode: str, options: dict[str, str]) -> None:
        write_frame(spark.createDataFrame([(number,)], "id long"), str(path), options, mode)

    check_case(case, path, write)
