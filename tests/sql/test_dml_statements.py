"""Every case of the list of statements, in a session on DuckDB."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.sql.statements import Case, cases

pytest.importorskip("duckdb")

CASES = [case for case in cases("dml.sql") if case.only != "spark"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_statement_does_what_the_list_says(tmp_path: Path, case: Case) -> None:
    from tests.support.sql.on_duckdb import run_case

    case.check(run_case(case, tmp_path))
