"""A file that a clean or rollback has deleted since is a StaleRead; any other missing file is an error."""

from __future__ import annotations

import pytest

from pyhudi.engine.base import as_engine
from pyhudi.errors import PathNotFound, StaleRead
from pyhudi.model.options import WriteOptions
from pyhudi.table.calls import serve
from pyhudi.view.consistent_read import stale_reads
from tests.support.tables.clustered import Clustered
from tests.support.writers.meanwhile import Step, cleaned, do, made, rolled_back, updated


def _read(table: Clustered, meanwhile: tuple[Step, ...]) -> None:
    """Read a file of the table that is missing after these steps of others."""
    with stale_reads(table.meta):
        do(table, meanwhile)
        raise PathNotFound("f.parquet does not exist.")


@pytest.mark.parametrize("meanwhile", [(updated, updated, cleaned), (rolled_back,)], ids=["clean", "rollback"])
def test_a_file_that_another_process_took_meanwhile_is_a_stale_read(meanwhile: tuple[Step, ...]) -> None:
    table = made("9", "COPY_ON_WRITE")

    with pytest.raises(StaleRead, match=r"f.parquet.*cleaned the table, or undone a write.*run it again") as raised:
        _read(table, meanwhile)

    assert raised.value.retryable


def test_a_file_that_nobody_took_is_missing() -> None:
    table = made("9", "COPY_ON_WRITE")

    with pytest.raises(PathNotFound) as raised:
        _read(table, (updated,))

    assert not isinstance(raised.value, StaleRead)


@pytest.mark.parametrize("is_run_again", [True, False])
def test_a_service_whose_files_were_cleaned_is_run_again_but_not_an_undoing(is_run_again: bool) -> None:
    table = made("9", "COPY_ON_WRITE")
    calls = []

    def service(_: object) -> str:
        calls.append(len(calls))
        if len(calls) == 1:
            do(table, (updated, updated, cleaned))
            raise PathNotFound("f.parquet does not exist.")
        return "done"

    options = WriteOptions.parse({}, table=table.meta.config)
    if is_run_again:
        assert serve(table.storage, service, options, as_engine(table.engine)) == "done"
    else:
        with pytest.raises(StaleRead):
            serve(table.storage, service, options, as_engine(table.engine), is_run_again=False)
    assert len(calls) == 1 + is_run_again
