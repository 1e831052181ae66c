"""One judge for all tests of this folder; they run in `make judge` only."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from tests.support.golden.folder import shared_folder
from tests.support.judge.real_hudi import HUDI_OF_TABLE_VERSION, Judge


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/judge" in item.path.as_posix():
            item.add_marker(pytest.mark.judge)


@pytest.fixture(scope="session")
def judge() -> Iterator[Judge]:
    # Instant times are in the machine's zone by default, and the judge's Hudi runs in UTC.
    os.environ["TZ"] = "UTC"
    time.tzset()
    judge = Judge(shared_folder() / "judge" / "judge", tuple(HUDI_OF_TABLE_VERSION.values()))
    yield judge
    judge.close()
