"""Patterns of file paths that an incremental query takes."""

from __future__ import annotations

import pytest

from pyhudi.errors import ConfigError
from pyhudi.queries.incremental_range import path_pattern

PATH = "/lake/trips/day=2024-01-01/f-0_1-2-3_20240101000000000.parquet"


@pytest.mark.parametrize(
    ("glob", "matches"),
    [
        ("/day=2024-01-01/*", True),
        ("/day=2024-01-0?/*.parquet", True),
        ("/day=2024-01-0[12]/*", True),
        ("/day=2024-01-0[!12]/*", False),
        ("/day=2024-01-0[a-z]/*", False),
        ("/{day=2023*,day=2024*}/*.{orc,parquet}", True),
        ("/trips/*.parquet", True),  # a star goes over folders
        ("/day=2024-01-01", False),  # the path ends otherwise
        ("/day=2024-01-02/*", False),
        ("/day=2024.01.01/*", False),  # a point is a point
    ],
)
def test_a_pattern_is_compared_with_the_end_of_the_path(glob: str, matches: bool) -> None:
    assert (path_pattern(glob).fullmatch(PATH) is not None) == matches


@pytest.mark.parametrize("glob", ["/{a,b", "/a}", "/[z-a]/*"])
def test_a_pattern_whose_brackets_do_not_fit_is_refused(glob: str) -> None:
    with pytest.raises(ConfigError, match="is no valid pattern"):
        path_pattern(glob)
