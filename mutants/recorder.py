"""A plugin of pytest that records which lines of PyHudi each test executes: `pytest -p mutants.recorder`."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import coverage
import pytest

from mutants.reach import FLOORS

CASES_VARIABLE = "PYHUDI_MUTANTS_CASES"  # of each test function so many cases are recorded; all, when it is not set
WHOLE_VARIABLE = "PYHUDI_MUTANTS_WHOLE"  # when it is set, lines of all of PyHudi are recorded, not only those to break
FOLDER_VARIABLE = "PYHUDI_MUTANTS_RECORD"  # the folder that records go to, one set of files for each process


class Recorder:
    """Lines go to coverage's own file, with the test's id as their context; seconds of passed tests to a JSON file.

    The seconds are those of the processor: by the clock a busy machine would make each test a long one.
    A test that did not pass is left out: it could not tell a broken line from a good one.
    """

    def __init__(self, folder: Path, process: str) -> None:
        self._seconds: dict[str, float] = {}
        self._bad: set[str] = set()
        self._folder, self._process = folder, process
        self._coverage = coverage.Coverage(
            data_file=str(folder / "lines"),
            data_suffix=process,
            source_pkgs=["pyhudi"] if os.environ.get(WHOLE_VARIABLE) else [f"pyhudi.{floor}" for floor in FLOORS],
            config_file=False,
        )
        self._coverage.start()

    @pytest.hookimpl(trylast=True)  # after pytest has chosen by markers
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if most := os.environ.get(CASES_VARIABLE):
            items[:] = some_cases(items, int(most))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._coverage.switch_context(item.nodeid)
        before_s = time.process_time()
        try:
            return (yield)
        finally:
            self._coverage.switch_context("")
            self._seconds[item.nodeid] = time.process_time() - before_s

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.passed:
            self._bad.add(report.nodeid)

    def pytest_unconfigure(self) -> None:
        self._coverage.stop()
        self._coverage.save()
        passed = {test: round(took, 3) for test, took in self._seconds.items() if test not in self._bad}
        (self._folder / f"seconds.{self._process}.json").write_text(json.dumps(passed))


def some_cases(items: Sequence[pytest.Item], most: int) -> list[pytest.Item]:
    """Of each test function its first and its last case, and those between them as evenly as it goes."""
    functions: dict[str, list[pytest.Item]] = {}
    for item in items:
        functions.setdefault(item.nodeid.partition("[")[0], []).append(item)
    chosen: set[pytest.Item] = set()
    for cases in functions.values():
        steps = min(most, len(cases)) - 1
        chosen |= {cases[round(step * (len(cases) - 1) / max(1, steps))] for step in range(steps + 1)}
    return [item for item in items if item in chosen]


def pytest_configure(config: pytest.Config) -> None:
    workers = getattr(config.option, "numprocesses", None)
    process = os.environ.get("PYTEST_XDIST_WORKER", "main")
    if process == "main" and workers:
        return  # this process only hands tests out
    config.pluginmanager.register(Recorder(Path(os.environ[FOLDER_VARIABLE]), process), "mutants-recorder")
