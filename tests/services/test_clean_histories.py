"""Random histories with every service and the cleaner: whatever may be read is read as it was written."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyhudi.errors import TableError, WriteConflict
from pyhudi.services.clean.cleaning import clean
from pyhudi.view.file_system_view import FileSystemView
from tests.support.sweeps import examples
from tests.support.tables.clean_history import KEYS, POLICIES, SERVICES, WRITES, Cleaned

STEPS = st.lists(st.tuples(st.sampled_from(WRITES + SERVICES), KEYS), min_size=6, max_size=16)


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", ["6", "8", "9"])
@settings(
    max_examples=examples(6), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(steps=STEPS, data=st.data())
def test_whatever_may_be_read_is_as_it_was(
    version: str, table_type: str, steps: list[Any], data: st.DataObject
) -> None:
    history = Cleaned(version, table_type)
    for number, (operation, keys) in enumerate(steps, start=2):
        try:
            if operation in WRITES:
                history.write(operation, keys, number)
            else:
                history.run(operation, data)
        except (WriteConflict, TableError):
            continue  # refused while a plan waits, or saved already: nothing has happened
        history.note()
    history.serve(clean, **POLICIES[0])
    history.check()
    left = FileSystemView.load(history.table.meta)
    assert all(len(group.slices) <= 3 for groups in left.groups.values() for group in groups)
