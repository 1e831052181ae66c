"""What happens to a table before anything changes (`actions/open_table.py`)."""

from __future__ import annotations

import pytest

from pyhudi.actions import open_table
from pyhudi.actions.action import ActionContext
from pyhudi.actions.open_table import STEPS, Opened, Step, prepare
from pyhudi.model.options import WriteOptions
from pyhudi.storage.clock import SystemClock
from tests.support.tables.small import DEFAULTS, TestTable

SERVICE_STEPS = ["settle_metadata_table", "finish_dead_restores"]


@pytest.mark.parametrize(("is_service", "names"), [(False, [s.take.__name__ for s in STEPS]), (True, SERVICE_STEPS)])
def test_a_writer_takes_every_step_in_order_and_a_service_those_that_undo_no_write(
    is_service: bool, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[str] = []

    def noted(step: Step) -> Step:
        def take(context: ActionContext) -> Opened:
            taken.append(step.take.__name__)
            return step.take(context)[0], (step.take.__name__,)

        return step._replace(take=take)

    table = TestTable()
    table.insert(("a", "x", 1, 1))
    monkeypatch.setattr(open_table, "STEPS", tuple(map(noted, STEPS)))
    options = WriteOptions.parse(DEFAULTS, table=table.meta.config)

    _, undone = prepare(table.meta, table.engine, options, SystemClock(), is_service=is_service)

    assert taken == list(undone) == names
