"""Fixtures for all floors: the shared folder next to the project, and tables that real Hudi wrote."""

from __future__ import annotations

import gc
import json
import os
import zipfile
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# What an assert of shared code compared is told as for a test's own; said before any of it is imported.
pytest.register_assert_rewrite("tests.support")

from tests.support.forced import force  # noqa: E402
from tests.support.golden.folder import GoldenTable, shared_folder  # noqa: E402
from tests.support.metadata_table import (  # noqa: E402
    has_one_by_default,
    mark_with_metadata_table,
    no_metadata_table_by_default,
)
from tests.support.spark.on_connect import is_named  # noqa: E402
from tests.support.sweeps import SAMPLED, SEED, examples, mark_sweeps  # noqa: E402

# A machine that is busy with other work makes no test fail: by default Hypothesis gives an example 200 ms.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=examples(100)
)
settings.load_profile("any machine")

# Imports alone leave a million objects. Looking through them for cycles as often as Python does by default takes a
# fourteenth of the processor's time.
gc.set_threshold(100_000, 50, 50)


def pytest_configure() -> None:
    force(os.environ.get("PYHUDI_FORCED", ""))


@pytest.hookimpl(tryfirst=True)  # before pytest chooses by markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark_sweeps(items, is_named)
    mark_with_metadata_table(items)


@pytest.fixture(autouse=True)
def _metadata_table_by_default(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if not has_one_by_default(request.node):
        no_metadata_table_by_default(monkeypatch)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if SAMPLED:
        terminalreporter.write_line(f"the cases of seed {SEED:08x}; PYHUDI_SEED={SEED:08x} plays the same ones")


@pytest.fixture(scope="session")
def shared() -> Path:
    return shared_folder()


@pytest.fixture
def golden(tmp_path: Path) -> Callable[[str, str], GoldenTable]:
    """`golden(hudi_version, name)`: unzips one golden table, returns its folder and its description.

    Files have their times of then: the heartbeat of a dead writer is an old one.
    """

    def unzip(version: str, name: str) -> GoldenTable:
        folder = shared_folder() / "golden" / version
        with zipfile.ZipFile(folder / f"{name}.zip") as archive:
            archive.extractall(tmp_path / version)
            for entry in archive.infolist():
                written_s = datetime(*entry.date_time, tzinfo=timezone.utc).timestamp()
                os.utime(tmp_path / version / entry.filename, (written_s, written_s))
        description = json.loads((folder / f"{name}.json").read_text())
        return tmp_path / version / name, description

    return unzip
