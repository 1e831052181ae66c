"""What a run that died has archived a second time: of a double that lacks something the whole one counts."""

from __future__ import annotations

import pytest

from pyhudi.storage.memory import MemoryStorage
from pyhudi.timeline.archive_log import ArchiveLog


@pytest.mark.parametrize("times", [(None, "15"), ("15", None), ("15", "17"), (None, None)])
def test_doubles_of_an_instant_are_told_apart_by_when_they_completed(times: tuple[str | None, ...]) -> None:
    log = ArchiveLog(MemoryStorage(), "a")
    for completed in times:
        entry = {"commitTime": "1", "actionType": "clean", "actionState": "COMPLETED"}
        log.append([[entry if completed is None else {**entry, "stateTransitionTime": completed}]], 1)

    found = [(i.requested_time, i.completion_time) for i in log.times()]

    assert found == [("1", completed) for completed in sorted(set(times), key=lambda time: time or "")]
