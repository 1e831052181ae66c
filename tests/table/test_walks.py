"""The walks of docs/architecture.md are what a debugger sees: files on the call stack at each call of the storage."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import HudiTable, write_hudi
from pyhudi.actions.runner import run
from pyhudi.filegroup.rewrite.compact import CompactSlices
from pyhudi.storage.local import LocalStorage
from tests.support.source import ROOT

_PACKAGE = str(Path(pyhudi.__file__).parent) + "/"
_WRITES = ("create_new", "create_synced", "delete", "delete_tree", "make_folder", "open_output", "write", "sync")
_READS = ("open_input", "list", "walk", "file_names_in")
# Files of PyHudi with a call on the stack, for three rows in a warm process. These may fall, and not grow. They vary by
# one or two with what ran before in the process.
_FILES_MAX = {"upsert": 209, "read": 114, "compact": 179}
_FRAMES_BEFORE_RUN_MAX = {"upsert": 6, "write_hudi": 6, "update": 7}
_FRAMES_BEFORE_SLICE_MAX = 12
_WITHOUT_METADATA = {"hoodie.metadata.enable": "false"}
_STOPS_MAX = {"upsert": 21, "read": 16, "metadata": 10}


def _write(path: Path, table_type: str, *, metadata: bool) -> None:
    rows = pa.table({"id": ["a", "b"], "value": [1, 2], "ts": [1, 1], "place": ["x", "y"]})
    options = {"hoodie.metadata.enable": str(metadata).lower()}
    keys = {"record_key": "id", "ordering": "ts", "partition_by": "place"}
    write_hudi(str(path), rows, table_type=table_type, options=options, **keys)


@pytest.fixture
def stops(monkeypatch: pytest.MonkeyPatch) -> Callable[[tuple[str, ...], str], list[str]]:
    """Files of PyHudi on the stack at calls of the storage with these names, below a folder, in the order of calls."""

    def watch(names: tuple[str, ...], folder: str) -> list[str]:
        files: list[str] = []

        def noted(original: Callable[..., object]) -> Callable[..., object]:
            def call(self: LocalStorage, path: str = "", *args: object, **kwargs: object) -> object:
                if folder in f"{self.root}/{path}":
                    frame, stack = sys._getframe(1), list[str]()
                    while frame is not None:
                        stack.append(frame.f_code.co_filename)
                        frame = frame.f_back  # type: ignore[assignment]
                    inner = [name.removeprefix(_PACKAGE) for name in reversed(stack) if name.startswith(_PACKAGE)]
                    files.extend(n for n in inner if n not in files and not n.startswith("storage/"))
                return original(self, path, *args, **kwargs)

            return call

        for name in names:
            monkeypatch.setattr(LocalStorage, name, noted(getattr(LocalStorage, name)))
        return files

    return watch


def _frames_before(function: Callable[..., object], call: Callable[[], object]) -> list[str]:
    """The frames of PyHudi above the first call of a function, outermost first, as `file:function`."""
    frames: list[str] = []

    def entered(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code is function.__code__ and not frames:
            outer = frame.f_back
            while outer is not None:
                if outer.f_code.co_filename.startswith(_PACKAGE):
                    frames.insert(0, f"{outer.f_code.co_filename.removeprefix(_PACKAGE)}:{outer.f_code.co_name}")
                outer = outer.f_back

    threading.setprofile(entered)
    sys.setprofile(entered)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    assert frames
    return frames


def test_a_write_reaches_the_runner_within_a_few_frames(tmp_path: Path) -> None:
    _write(tmp_path / "t", "COPY_ON_WRITE", metadata=False)
    table, rows = HudiTable.open(tmp_path / "t"), HudiTable.open(tmp_path / "t").to_arrow(meta_columns=False)
    calls: dict[str, Callable[[], object]] = {
        "upsert": lambda: table.upsert(rows),
        "write_hudi": lambda: _write(tmp_path / "t", "COPY_ON_WRITE", metadata=False),
        "update": lambda: table.update("id = 'a'", set={"value": "value + 1"}),
    }

    frames = {name: _frames_before(run, call) for name, call in calls.items()}

    assert {name: walk for name, walk in frames.items() if len(walk) > _FRAMES_BEFORE_RUN_MAX[name]} == {}


def test_a_compaction_reaches_a_slice_within_a_few_frames(tmp_path: Path) -> None:
    rows = pa.table({"id": ["a", "b"], "value": [1, 2], "ts": [1, 1]})  # one slice: no thread is needed for it
    table = HudiTable.create(
        tmp_path, rows.schema, record_key="id", ordering="ts", table_type="MERGE_ON_READ", options=_WITHOUT_METADATA
    )
    for _ in range(2):
        table.upsert(rows, options=_WITHOUT_METADATA)

    frames = _frames_before(CompactSlices.__call__, table.compact)

    assert len(frames) <= _FRAMES_BEFORE_SLICE_MAX, frames


def _listed(title: str) -> list[str]:
    text = (ROOT / "docs" / "architecture.md").read_text().partition(title)[2].lstrip(":\n")
    return re.findall(r"^\d+\. `pyhudi/([\w/]+\.py)`", text.partition("\n\n")[0], re.M)


def test_an_upsert_is_written_through_the_files_that_the_page_lists(tmp_path, stops):
    _write(tmp_path / "t", "COPY_ON_WRITE", metadata=False)
    files = stops(_WRITES, "")
    _write(tmp_path / "t", "COPY_ON_WRITE", metadata=False)
    assert files == _listed("An upsert into a copy-on-write table")
    assert len(files) <= _STOPS_MAX["upsert"]


def test_a_merged_slice_is_read_through_the_files_that_the_page_lists(tmp_path, stops):
    for _ in range(2):
        _write(tmp_path / "t", "MERGE_ON_READ", metadata=False)
    table = HudiTable.open(str(tmp_path / "t"))
    files = stops(_READS, "")
    assert table.scan().to_arrow().num_rows == 2
    assert files == _listed("A snapshot read of a merge-on-read table")
    assert len(files) <= _STOPS_MAX["read"]


def test_the_metadata_table_is_written_through_the_files_that_the_page_lists(tmp_path, stops):
    for _ in range(2):
        _write(tmp_path / "t", "MERGE_ON_READ", metadata=True)
    files = stops(_WRITES, ".hoodie/metadata")
    _write(tmp_path / "t", "MERGE_ON_READ", metadata=True)
    since_commit = files[files.index("transaction/commit.py") :]
    assert since_commit == _listed("An update of the metadata table, from the commit on")
    assert len(since_commit) <= _STOPS_MAX["metadata"]


def _files_entered(call: Callable[[], object]) -> set[str]:
    """Files of PyHudi in which a function is called, on any thread."""
    files = set[str]()

    def entered(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(_PACKAGE):
            files.add(frame.f_code.co_filename.removeprefix(_PACKAGE))

    threading.setprofile(entered)
    sys.setprofile(entered)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return files


@pytest.mark.metadata_table
def test_no_more_files_are_on_the_stack_of_a_call_than_before(tmp_path: Path) -> None:
    options = {"hoodie.compact.inline": "false"}
    rows = pa.table({"id": ["a", "b", "c"], "v": [1, 2, 3], "ts": [1, 1, 1], "p": ["x", "y", "x"]})
    tables = {}
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        for name in ("warm", "counted"):  # the first calls of a process import and fill caches
            keys = {"record_key": "id", "ordering": "ts", "partition_by": "p", "table_type": kind}
            write_hudi(tmp_path / kind / name, rows, options=options, **keys)
            table = tables[kind] = HudiTable.open(tmp_path / kind / name)
            table.upsert(rows, options=options)
            table.to_arrow()
            if kind == "MERGE_ON_READ":
                table.compact()
    counts = dict.fromkeys(_FILES_MAX, sys.maxsize)
    for _ in range(2):  # on a busy machine a call may do more than it has to
        tables["MERGE_ON_READ"].upsert(rows, options=options)
        calls: dict[str, Callable[[], object]] = {
            "upsert": lambda: tables["COPY_ON_WRITE"].upsert(rows),
            "read": tables["MERGE_ON_READ"].to_arrow,
            "compact": tables["MERGE_ON_READ"].compact,
        }
        counts = {name: min(counts[name], len(_files_entered(call))) for name, call in calls.items()}

    assert {name: count for name, count in counts.items() if count > _FILES_MAX[name]} == {}
