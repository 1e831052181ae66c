"""Save modes by Arrow rows; tests/spark/test_save_modes.py does the same by DataFrames."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import write_hudi
from tests.support.save_modes import CASES, SaveModeCase, check_case


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_save_mode_does_what_the_list_says_with_arrow_rows(case: SaveModeCase, tmp_path: Path):
    path = tmp_path / "t"

    def write(number: int, mode: str, options: dict[str, str]) -> None:
        write_hudi(path, pa.table({"id": [number]}), mode=mode, options=options)

    check_case(case, path, write)
