"""Write statuses travel as rows, with their keys, and come back as they were, however many there are."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyhudi.filegroup.write import status
from pyhudi.model.commit import WriteStat, WriteStatus


@pytest.mark.parametrize("large_bytes", [0, 1 << 30])
def test_statuses_come_back_in_their_order_with_their_keys(large_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "_LARGE_BYTES", large_bytes)
    many = pa.array([f"key-{number:06d}" for number in range(5000)])  # are compressed
    keys = [None, pa.array([], pa.string()), pa.array(["a"]), many]
    sent = [
        WriteStatus(
            WriteStat(file_id=f"f{number}", path="p", partition_path="", num_writes=number),
            number,
            1,
            "w",
            None,
            new,
            removed,
        )
        for number, (new, removed) in enumerate(zip(keys, reversed(keys), strict=True))
    ]
    halves = [status.to_batch(sent[:2]), status.to_batch(sent[2:])]
    found = status.from_table(pa.Table.from_batches(halves))
    assert [one.stat for one in found] == [one.stat for one in sent]
    assert [(one.rows_read, one.skipped, one.warning) for one in found] == [(number, 1, "w") for number in range(4)]
    for one, other in zip(found, sent, strict=True):
        for own, expected in ((one.new_keys, other.new_keys), (one.removed_keys, other.removed_keys)):
            assert own is None if expected is None else own is not None and own.equals(expected)
