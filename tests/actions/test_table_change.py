"""What completed actions say they changed, one after the other, adds up to the listing of the table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from pyhudi.actions.action import ActionContext
from pyhudi.actions.undo.restore import restore, roll_back
from pyhudi.errors import TableError, WriteConflict
from pyhudi.model.commit import TableChange
from pyhudi.model.instant import Instant, State
from pyhudi.services.clean.cleaning import clean
from pyhudi.storage.base import Storage
from pyhudi.transaction import commit as committing
from pyhudi.transaction.commit import Committed
from tests.support.sweeps import examples
from tests.support.tables.clean_history import KEYS, POLICIES, SERVICES, WRITES, Cleaned

Files = dict[str, int]
LIFE = ("rollback", "rollback", "restore")
KILLED = st.sampled_from([False, False, True])
STEPS = st.lists(st.tuples(st.sampled_from(WRITES + WRITES + SERVICES + LIFE), KEYS, KILLED), min_size=6, max_size=16)


class Killed(BaseException):
    """Ends a process before it can tidy up."""


class Changes:
    """What the completed actions on a table said they changed."""

    def __init__(self) -> None:
        self.made: list[TableChange] = []

    @contextmanager
    def recorded(self) -> Iterator[None]:
        original = committing.commit_locked

        def recording(inflight: Instant, context: ActionContext, *args: Any, **more: Any) -> Committed[Any]:
            committed = original(inflight, context, *args, **more)
            self.made.append(committed.change)
            return committed

        with mock.patch.object(committing, "commit_locked", recording):
            yield

    def files(self) -> Files:
        """Sizes in bytes by path."""
        files: Files = {}
        for path, partition in (found for change in self.made for found in change.partitions.items()):
            for name in partition.deleted:
                files.pop(f"{path}/{name}", None)
            for name, size_bytes in partition.written.items():
                files[f"{path}/{name}"] = max(size_bytes, files.get(f"{path}/{name}", 0))
            assert not (partition.is_partition_deleted and [file for file in files if file.startswith(f"{path}/")])
        return files


def listing(storage: Storage) -> Files:
    return {
        file.path: file.size_bytes
        for file in storage.walk("")
        if not file.path.startswith(".hoodie/") and not file.name.startswith(".hoodie_partition_metadata")
    }


def take(table: Cleaned, operation: str, keys: list[tuple[str, str]], number: int, data: st.DataObject) -> None:
    if operation in WRITES:
        table.write(operation, keys, number)
    elif operation == "rollback":
        table.serve(roll_back)
    elif operation == "restore":
        if commits := [instant.requested_time for instant in table.table.meta.timeline.commits()]:
            table.serve(partial(restore, to=data.draw(st.sampled_from(commits), "restore to")))
    else:
        table.run(operation, data)


@pytest.mark.filterwarnings("ignore:.*is not above hoodie.clean.commits.retained.*")
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", ["6", "9"])
@settings(
    max_examples=examples(5),
    phases=[Phase.generate],  # a failure has everything in its message; making it smaller takes minutes
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(steps=STEPS, data=st.data())
def test_the_changes_of_all_actions_add_up_to_the_listing(
    version: str, table_type: str, steps: list[Any], data: st.DataObject
) -> None:
    changes = Changes()
    with changes.recorded(), mock.patch.object(Cleaned, "check"):
        table = Cleaned(version, table_type)
        storage = table.table.storage
        for number, (operation, keys, is_killed) in enumerate(steps, start=2):
            if (version, table_type, operation) == ("6", "MERGE_ON_READ", "restore"):
                is_killed = False  # one that goes on after a death does not repeat which command blocks it has written
            dying = mock.patch.object(committing, "draw_completion_time", side_effect=Killed)
            with suppress(WriteConflict, TableError, Killed), dying if is_killed else nullcontext():
                take(table, operation, keys, number, data)
            if number == len(steps) + 1:
                with suppress(WriteConflict):  # a clustering waits
                    table.write("upsert", [("a", "x")], 100)  # undoes what is left of processes that were killed
                    table.serve(clean, **POLICIES[0])
            if all(instant.state is State.REQUESTED for instant in table.table.meta.timeline.pending()):
                assert changes.files() == listing(storage), operation
