"""The table that each test of file groups gets."""

from __future__ import annotations

import pytest

from tests.support.tables.file_groups import Table


@pytest.fixture
def table() -> Table:
    return Table()
