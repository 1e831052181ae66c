"""Write stats are summed without decoding them: the sums equal those of the decoded stats."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.errors import CorruptFile
from pyhudi.formats.avro.container import open_container
from pyhudi.formats.avro.counters import sum_counters
from pyhudi.formats.timeline.instant_files import decode_commit, decode_totals, encode_commit
from pyhudi.formats.timeline.write_stats import SUMMED
from pyhudi.model.commit import CommitMetadata, CommitTotals, WriteStat
from pyhudi.model.instant import ActionKind
from tests.support.golden.bodies import golden_bodies
from tests.support.values.strategies import RELAXED

COUNTS = st.integers(0, 2**40) | st.integers(-(2**63) + 1, 2**63 - 1)
STATS = st.builds(
    WriteStat,
    file_id=st.text(max_size=200),
    path=st.none() | st.text(max_size=20),
    partition_path=st.none() | st.text(max_size=20),
    num_writes=COUNTS,
    num_deletes=COUNTS,
    num_update_writes=COUNTS,
    num_inserts=COUNTS,
    total_write_bytes=COUNTS,
    total_log_files=st.none() | COUNTS,
    log_files=st.none() | st.lists(st.text(max_size=10), max_size=3).map(tuple),
    cdc_stats=st.none() | st.dictionaries(st.text(max_size=10), COUNTS, max_size=3),
)
PARTITIONS = st.dictionaries(st.text(max_size=10), st.lists(STATS, max_size=4).map(tuple), max_size=4)
STAT = WriteStat(
    "f-0", "x/f", "x", num_writes=300, num_inserts=3, total_write_bytes=9_999, log_files=("l",), cdc_stats={"c": 1}
)
WHOLE = encode_commit(CommitMetadata({"x": (STAT, STAT)}, {"schema": "é"}, "UPSERT"), ActionKind.COMMIT, 8)


@RELAXED
@given(PARTITIONS)
def test_totals_are_the_sums_of_the_stats(stats: dict[str, tuple[WriteStat, ...]]) -> None:
    data = encode_commit(CommitMetadata(stats, {"a": "b"}, "UPSERT"), ActionKind.COMMIT, 8)

    assert decode_totals(data) == CommitTotals.of(decode_commit(data))


def test_stats_of_real_hudi_are_summed_without_being_made(shared: Path) -> None:
    summed = 0
    for body in golden_bodies(shared):
        if body.is_avro and body.name.endswith((".commit", ".deltacommit", ".replacecommit")):
            sums = sum_counters(open_container(body.data, body.where), "partitionToWriteStats", SUMMED)
            assert sums is not None, body.where
            summed += sums.records

    assert summed > 1000


@RELAXED
@given(st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)), min_size=1, max_size=3))
def test_damaged_stats_are_summed_like_their_decoded_form(changes: list[tuple[int, int]]) -> None:
    data = bytearray(WHOLE)
    for position, byte in changes:
        data[position] = byte
    with suppress(CorruptFile):
        expected = CommitTotals.of(decode_commit(bytes(data)))
        assert decode_totals(bytes(data)) == expected


def test_stats_cut_short_are_damage() -> None:
    for size in range(len(WHOLE) - 200, len(WHOLE) - 16):
        with pytest.raises(CorruptFile):
            decode_totals(WHOLE[:size])
