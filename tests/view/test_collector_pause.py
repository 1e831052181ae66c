"""The garbage collector is switched off within a section, and never stays so."""

from __future__ import annotations

import gc
import os

import pytest

from pyhudi.view.collector_pause import collector_paused


def test_the_collector_is_off_within_and_on_afterwards() -> None:
    assert gc.isenabled()
    with collector_paused():
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ValueError, match="x"), collector_paused():
        raise ValueError("x")
    assert gc.isenabled()


def test_the_first_of_overlapping_sections_to_end_ends_the_pause_and_a_later_one_begins_no_other() -> None:
    first, second, third = collector_paused(), collector_paused(), collector_paused()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert gc.isenabled()
    third.__enter__()
    assert gc.isenabled()
    second.__exit__(None, None, None)
    third.__exit__(None, None, None)
    assert gc.isenabled()
    with collector_paused():
        assert not gc.isenabled()


def test_a_collector_that_is_off_stays_off() -> None:
    gc.disable()
    try:
        with collector_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_process_that_is_forked_within_a_section_collects() -> None:
    with collector_paused():
        child = os.fork()
        if not child:
            os._exit(0 if gc.isenabled() else 1)
    assert os.waitpid(child, 0)[1] == 0
