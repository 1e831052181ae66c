"""Fixtures for all floors: the shared folder beside the project, and tables that real Hudi wrote."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

SHARED = Path(__file__).resolve().parent.parent.parent / "shared"

GoldenTable = tuple[Path, dict[str, Any]]

# A machine that is busy with other work makes no test fail: by default Hypothesis gives an example 200 ms.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


def shared_folder() -> Path:
    """The folder with specification, golden tables and judge; its absence fails in CI and skips elsewhere."""
    if not SHARED.is_dir():
        if os.environ.get("CI") == "true":
            pytest.fail("shared/ is absent beside the project, and CI=true")
        pytest.skip("shared/ is absent")
    return SHARED


@pytest.fixture(scope="session")
def shared() -> Path:
    return shared_folder()


@pytest.fixture
def golden(tmp_path: Path) -> Callable[[str, str], GoldenTable]:
    """`golden(hudi_version, name)`: unzips one golden table, returns its folder and its description."""

    def unzip(version: str, name: str) -> GoldenTable:
        folder = shared_folder() / "golden" / version
        with zipfile.ZipFile(folder / f"{name}.zip") as archive:
            archive.extractall(tmp_path / version)
        description = json.loads((folder / f"{name}.json").read_text())
        return tmp_path / version / name, description

    return unzip
