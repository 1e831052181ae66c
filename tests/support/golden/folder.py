"""The shared folder next to the project, where the tables are that real Hudi wrote."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.source import ROOT

SHARED = ROOT.parent / "shared"
GoldenTable = tuple[Path, dict[str, Any]]


def shared_folder() -> Path:
    """The folder with specification, golden tables and judge; its absence fails in CI and skips elsewhere."""
    if not SHARED.is_dir():
        if os.environ.get("CI") == "true":
            pytest.fail("shared/ is absent next to the project, and CI=true")
        pytest.skip("shared/ is absent")
    return SHARED


Golden = Callable[[str, str], GoldenTable]
