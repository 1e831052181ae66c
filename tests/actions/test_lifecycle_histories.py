"""Random lives of tables, with archiving, rollbacks and restores among all other services: rows are as a model says,
now and as of every instant that may still be read, archived or not.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyhudi.actions.undo.restore import restore, roll_back
from pyhudi.errors import TableError, WriteConflict
from pyhudi.queries.validation import validate
from pyhudi.services.archive.archiving import archive
from pyhudi.timeline.archived_timeline import load_archived_timeline
from pyhudi.view.readable_history import load_readable_history
from tests.support.sweeps import examples
from tests.support.tables.clean_history import KEYS, POLICIES, SERVICES, WRITES, Cleaned

LIFE = ("archive", "archive", "archive", "rollback", "restore")
STEPS = st.lists(st.tuples(st.sampled_from(WRITES + WRITES + SERVICES + LIFE), KEYS), min_size=8, max_size=22)


class Lived(Cleaned):
    """A table, and what each of its commits looked like when it was new."""

    def instants(self) -> tuple[list[str], list[str]]:
        """Requested times of commits: archived, active."""
        meta = self.table.meta
        archived = [i for i in load_archived_timeline(meta.storage, meta.config).times() if i.action.is_write]
        return [i.requested_time for i in archived], [i.requested_time for i in meta.timeline.commits()]

    def live(self, operation: str, data: st.DataObject) -> None:
        archived, active = self.instants()
        if operation == "archive":
            keep = data.draw(st.integers(1, 4), "kept")
            beyond = str(data.draw(st.booleans(), "beyond savepoints")).lower()
            options = {
                "hoodie.keep.min.commits": str(keep),
                "hoodie.keep.max.commits": str(keep + 1),
                "hoodie.archive.beyond.savepoint": beyond,
                "hoodie.timeline.compaction.batch.size": "2",
                "hoodie.clean.commits.retained": "1",
            }
            self.serve(archive, **options)
            after = self.instants()
            assert sorted([*after[0], *after[1]]) == sorted([*archived, *active])
        elif operation == "rollback":
            if len(active) > 1 or archived:  # a table without commits has no rows to look at
                self.serve(roll_back)
        else:
            self.serve(partial(restore, to=data.draw(st.sampled_from(active), "restore to")))
        there = {time for times in self.instants() for time in times}
        self.rows_at = {time: rows for time, rows in self.rows_at.items() if time in there}

    def check(self, retained: int = 0) -> None:
        assert validate(self.table.meta) == ()
        assert self.table.meta.config.metadata_partitions
        _, active = self.instants()
        retention = load_readable_history(self.table.meta)
        for time, rows in self.rows_at.items():
            if retention.is_readable(time):
                assert self.table.rows(as_of=time) == rows, (
                    f"as of {time}, {'active' if time in active else 'archived'}"
                )


@pytest.mark.filterwarnings("ignore:.*is not above hoodie.clean.commits.retained.*")
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", ["6", "9"])
@settings(
    max_examples=examples(4), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(steps=STEPS, data=st.data())
def test_no_row_is_lost_or_comes_back(version: str, table_type: str, steps: list[Any], data: st.DataObject) -> None:
    table = Lived(version, table_type)
    rows = table.table.rows()
    for number, (operation, keys) in enumerate(steps, start=2):
        try:
            if operation in WRITES:
                table.write(operation, keys, number)
                rows = table.table.rows()
                table.note()
            elif operation in LIFE:
                table.live(operation, data)
                if operation == "archive":
                    assert table.table.rows() == rows
                else:
                    rows = table.table.rows()
                    newest = max(table.instants()[1])
                    assert rows == table.rows_at.get(newest, rows), f"{operation} left {newest}"
            else:
                table.run(operation, data)
                assert table.table.rows() == rows, operation
                table.note()
        except (WriteConflict, TableError):
            assert table.table.rows() == rows, f"{operation} was refused"
        table.check()
    table.serve(archive, **POLICIES[0], **{"hoodie.keep.min.commits": "1", "hoodie.keep.max.commits": "2"})
    assert table.table.rows() == rows
    table.check()
