"""Each room of PyHudi has a README: what it holds, who calls it, where to start."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.source import ROOT

LINES_MAX = 15
PACKAGE = ROOT / "pyhudi"
ROOMS = sorted({file.parent for file in PACKAGE.rglob("*.py")})


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: str(room.relative_to(ROOT)))
def test_a_room_says_in_a_few_lines_what_it_holds_and_names_modules_that_there_are(room: Path) -> None:
    text = (room / "README.md").read_text()

    assert text.startswith(f"# {room.relative_to(ROOT)}\n")
    assert len(text.splitlines()) <= LINES_MAX
    assert "**Who calls it.**" in text
    assert "**Where to start.**" in text
    named = re.findall(r"`((?:\w+/)*(?:\w+\.py|\w+/))`", text)
    assert [name for name in named if not ((room / name).exists() or (PACKAGE / name).exists())] == []
    assert any(name.endswith(".py") for name in named)
