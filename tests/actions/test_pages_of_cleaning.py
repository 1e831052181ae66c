"""The Python blocks of the pages on overwriting and cleaning run, one after the other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.house.source import ROOT


@pytest.mark.parametrize("page", ["overwriting", "cleaning"])
def test_the_examples_run(page: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "docs" / f"{page}.md").read_text()
    blocks = [b for b in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "df.write" not in b]
    assert blocks
    names: dict[str, object] = {}
    for block in blocks:
        exec(re.sub(r'"(trips|cleaned)"', lambda found: repr(str(tmp_path / found[1])), block), names)
    told = capsys.readouterr().out
    assert ("would delete: 2 files" in told) if page == "cleaning" else ("0 partitions expired" in told)
