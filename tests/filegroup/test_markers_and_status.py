"""Markers in both layouts, sweeping, and statuses as rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.errors import CorruptFile
from pyhudi.filegroup.write.markers import APPEND, CREATE, Marker, create_marker, delete_markers, list_markers, sweep
from pyhudi.filegroup.write.status import STATUS_SCHEMA, from_table, to_batch
from pyhudi.model.commit import WriteStat, WriteStatus
from pyhudi.storage.local import LocalStorage
from pyhudi.storage.memory import MemoryStorage

Golden = Callable[[str, str], tuple[Path, dict[str, Any]]]
NOW = "20240101000000000"


@pytest.mark.parametrize(
    ("version", "name"),
    [
        ("0.15.0", "failed_write_direct"),
        ("1.2.0", "failed_write_direct"),
        ("1.2.0", "failed_write_timeline"),
    ],
)
def test_markers_of_real_hudi_name_the_files_that_a_failed_write_left(golden: Golden, version: str, name: str) -> None:
    folder, _ = golden(version, name)
    storage = LocalStorage(str(folder))
    instants = [info.name for info in storage.list(".hoodie/.temp")]
    assert instants
    for instant in instants:
        markers = list_markers(storage, instant)
        assert markers
        for marker in markers:
            assert instant in marker.data_path
            assert storage.stat(marker.data_path) is not None


def test_sweeping_a_failed_write_of_real_hudi_removes_its_files_only(golden: Golden) -> None:
    folder, _ = golden("1.2.0", "failed_write_timeline")
    storage = LocalStorage(str(folder))
    (instant,) = (info.name for info in storage.list(".hoodie/.temp"))
    before = {info.path for info in storage.walk("")}
    gone = sweep(storage, instant, keep=())

    assert gone
    assert before - {info.path for info in storage.walk("")} == set(gone)
    assert all(instant in path for path in gone)
    assert sweep(storage, instant, keep=()) == ()


def test_markers_are_listed_sorted_and_made_twice_without_harm() -> None:
    storage = MemoryStorage()
    for path in ("p/b_1-1-1_20240101000000000.parquet", "a_1-1-1_20240101000000000.parquet"):
        create_marker(storage, NOW, path, CREATE)
        create_marker(storage, NOW, path, CREATE)
    assert list_markers(storage, NOW) == (
        Marker("a_1-1-1_20240101000000000.parquet", CREATE),
        Marker("p/b_1-1-1_20240101000000000.parquet", CREATE),
    )

    delete_markers(storage, NOW)
    assert list_markers(storage, NOW) == ()
    assert list_markers(storage, "20990101000000000") == ()


def test_sweeping_keeps_what_the_commit_names_and_bears_what_is_gone() -> None:
    storage = MemoryStorage()
    kept, lost, never = (f"p/{name}_1-1-1_{NOW}.parquet" for name in ("kept", "lost", "never"))
    for path in (kept, lost, never):
        create_marker(storage, NOW, path, CREATE)
    storage.write(kept, b"x")
    storage.write(lost, b"x")

    assert sweep(storage, NOW, keep=[kept]) == (lost,)
    assert storage.stat(kept) is not None


@pytest.mark.parametrize(
    "name",
    [
        "p/a_1-1-1_20230101000000000.parquet.marker.CREATE",  # another instant's file
        ".hoodie/hoodie.properties.marker.CREATE",
        "../elsewhere_20240101000000000.parquet.marker.CREATE",
        "p/a_1-1-1_20240101000000000.parquet.marker.BREAK",
        "nonsense",
    ],
)
def test_a_forged_marker_deletes_nothing(name: str) -> None:
    storage = MemoryStorage()
    storage.write(f".hoodie/.temp/{NOW}/MARKERS.type", b"TIMELINE_SERVER_BASED")
    storage.write(f".hoodie/.temp/{NOW}/MARKERS0", f"{name}\n".encode())
    storage.write("p/a_1-1-1_20230101000000000.parquet", b"committed")
    storage.write(".hoodie/hoodie.properties", b"config")
    with pytest.raises(CorruptFile):
        sweep(storage, NOW, keep=())

    assert storage.stat("p/a_1-1-1_20230101000000000.parquet") is not None
    assert storage.stat(".hoodie/hoodie.properties") is not None


@pytest.mark.parametrize("name", ["a_1-1-1_20230101000000000.parquet", f"a_1-1-1_{NOW}.parquet", "notes.txt"])
def test_a_marker_of_appending_deletes_nothing_but_log_files(name: str) -> None:
    storage = MemoryStorage()
    storage.write(f"p/{name}", b"whatever it holds")
    create_marker(storage, NOW, f"p/{name}", APPEND)

    assert sweep(storage, NOW, keep=()) == ()
    assert storage.stat(f"p/{name}") is not None


@given(
    st.lists(
        st.builds(
            WriteStatus,
            stat=st.builds(
                WriteStat,
                file_id=st.text(max_size=5),
                path=st.none() | st.text(max_size=5),
                partition_path=st.none() | st.text(max_size=5),
                num_writes=st.integers(0, 2**62),
                log_files=st.none() | st.lists(st.text(max_size=3)).map(tuple),
                cdc_stats=st.none() | st.dictionaries(st.text(max_size=3), st.integers(0, 9)),
            ),
            rows_read=st.integers(0, 2**62),
            skipped=st.integers(0, 9),
        ),
        max_size=4,
    )
)
def test_statuses_survive_the_way_as_rows(statuses: list[WriteStatus]) -> None:
    batch = to_batch(statuses)

    assert batch.schema == STATUS_SCHEMA
    assert from_table(pa.Table.from_batches([batch])) == statuses
