"""The report of a table with many commits and files. `bench/report_bench.py` measures it with a hundred thousand."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path

import pytest

from pyhudi import HudiTable
from pyhudi.view.file_system_view import FileSystemView
from tests.support.tables.large_state import make_large_state


def test_a_report_lists_a_large_table_once_and_takes_less_than_a_hundred_bytes_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_large_state(tmp_path, commits=40, files=4_000, partitions=20)
    load, listed = FileSystemView.load, list[object]()

    def counted(meta: object, **options: object) -> FileSystemView:
        listed.append(meta)
        return load(meta, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(FileSystemView, "load", counted)
    page = HudiTable.open(tmp_path).inspect.report(tmp_path / "page.html")

    assert len(listed) == 1
    (data,) = re.findall(r'id="data">([A-Za-z0-9+/=]+)</script>', Path(str(page)).read_text("utf-8"))
    facts = json.loads(gzip.decompress(base64.b64decode(data)))
    assert len(set(facts["files"]["id"])) == 4_000
    assert [row[5] for row in facts["timeline"]] == [100_000] * 40
    assert len(facts["partitions"]) == 20
    assert len(data) < 100 * 4_000
