"""Bodies are untrusted: decoding any bytes returns a value or raises a HudiError."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.errors import CorruptFile, HudiError
from pyhudi.formats.hash_ring import decode_nodes, decode_ring, encode_nodes, encode_ring, initial_ring
from pyhudi.formats.json_text import parse_json
from pyhudi.formats.protobuf import bytes_field, message_fields, number_field
from pyhudi.formats.timeline import instant_files as bodies
from pyhudi.formats.timeline.clean_plans import (
    decode_clean_metadata,
    decode_clean_plan,
    encode_clean_metadata,
    encode_clean_plan,
)
from pyhudi.formats.timeline.plans import (
    decode_clustering_plan,
    decode_compaction_plan,
    encode_clustering_plan,
    encode_compaction_plan,
)
from pyhudi.formats.timeline.savepoints import (
    decode_restore_metadata,
    decode_restore_plan,
    decode_savepoint,
    encode_restore_metadata,
    encode_restore_plan,
    encode_savepoint,
)
from pyhudi.model.commit import CommitMetadata, WriteStat
from pyhudi.model.instant import ActionKind
from pyhudi.model.plans import (
    CleanedPartition,
    CleanMetadata,
    CleanPlan,
    ClusteringGroup,
    ClusteringPlan,
    ClusteringSlice,
    CompactionOperation,
    CompactionPlan,
    CompactionStrategyInfo,
    InstantInfo,
    RestoreMetadata,
    RestorePlan,
    RetainedInstant,
    RollbackMetadata,
    RollbackPartition,
    RollbackPlan,
    RollbackRequest,
    SavepointMetadata,
)
from pyhudi.schema.internal import decode_history, decode_internal_schema
from tests.support.sweeps import examples
from tests.support.values.damaged import avro_body, damaged_bytes, with_other_values

TIME = "20240101000000000"
BASE, LOG = f"f-0_0-1-0_{TIME}.parquet", f".f-0_{TIME}.log.1_0-1-0"
INSTANT = InstantInfo(TIME, "commit")
STAT = WriteStat("f-0", f"x/{BASE}", "x", prev_commit="null", num_writes=1, log_files=(LOG,), cdc_stats={"c": 1})
COMMIT = CommitMetadata({"x": (STAT,)}, {"schema": "{}"}, "UPSERT", partition_to_replace_file_ids={"x": ("f-0",)})
ROLLBACK = RollbackMetadata(
    TIME, 1, 1, (TIME,), {"x": RollbackPartition("x", (BASE,), (), {LOG: 1}, {LOG: 1})}, (INSTANT,)
)


@dataclass(frozen=True)
class Decoder:
    name: str
    decode: Callable[[bytes], object] = field(repr=False)
    valid: bytes = field(repr=False)
    record: str = ""  # of Avro; "" is JSON


DECODERS = (
    Decoder("totals", bodies.decode_totals, bodies.encode_commit(COMMIT, ActionKind.REPLACECOMMIT, 6)),
    Decoder(
        "Avro totals",
        bodies.decode_totals,
        bodies.encode_commit(COMMIT, ActionKind.REPLACECOMMIT, 8),
        "HoodieReplaceCommitMetadata",
    ),
    Decoder("commit", bodies.decode_commit, bodies.encode_commit(COMMIT, ActionKind.REPLACECOMMIT, 6)),
    Decoder(
        "Avro commit",
        bodies.decode_commit,
        bodies.encode_commit(COMMIT, ActionKind.REPLACECOMMIT, 8),
        "HoodieReplaceCommitMetadata",
    ),
    Decoder(
        "rollback plan",
        bodies.decode_rollback_plan,
        bodies.encode_rollback_plan(RollbackPlan(INSTANT, (RollbackRequest("x", "f-0", TIME, (BASE,), {LOG: 1}),))),
        "HoodieRollbackPlan",
    ),
    Decoder(
        "rollback", bodies.decode_rollback_metadata, bodies.encode_rollback_metadata(ROLLBACK), "HoodieRollbackMetadata"
    ),
    Decoder(
        "restore plan",
        decode_restore_plan,
        encode_restore_plan(RestorePlan((INSTANT,), TIME)),
        "HoodieRestorePlan",
    ),
    Decoder(
        "restore",
        decode_restore_metadata,
        encode_restore_metadata(RestoreMetadata(TIME, 1, (INSTANT,), {"t": (ROLLBACK,)})),
        "HoodieRestoreMetadata",
    ),
    Decoder(
        "savepoint",
        decode_savepoint,
        encode_savepoint(SavepointMetadata("me", 1, "why", {"x": (BASE,)})),
        "HoodieSavepointMetadata",
    ),
    Decoder(
        "clean plan",
        decode_clean_plan,
        encode_clean_plan(
            CleanPlan("P", RetainedInstant(TIME, "commit", "COMPLETED"), TIME, {"x": (BASE,)}, ("y",), {"e": "f"}), str
        ),
        "HoodieCleanerPlan",
    ),
    Decoder(
        "clean",
        decode_clean_metadata,
        encode_clean_metadata(
            CleanMetadata(TIME, 1, TIME, TIME, {"x": CleanedPartition("P", (BASE,), (BASE,), True)}, {"e": "f"})
        ),
        "HoodieCleanMetadata",
    ),
    Decoder(
        "compaction plan",
        decode_compaction_plan,
        encode_compaction_plan(
            CompactionPlan(
                (CompactionOperation("x", "f-0", TIME, BASE, (LOG,), {"SIZE": 1.0}),),
                CompactionStrategyInfo("C", {"a": "b"}),
            ),
            8,
        ),
        "HoodieCompactionPlan",
    ),
    Decoder(
        "clustering plan",
        decode_clustering_plan,
        encode_clustering_plan(
            ClusteringPlan(
                (ClusteringGroup((ClusteringSlice("x", "f-0", BASE, (LOG,)),), 1, {"a": 1.0}, {"b": "c"}),), "S"
            ),
            8,
            str,
        ),
        "HoodieRequestedReplaceMetadata",
    ),
    Decoder("ring", lambda data: decode_ring(data, "r"), encode_ring(initial_ring("x", 2))),
    Decoder(
        "nodes of a plan",
        lambda data: decode_nodes(data.decode("utf-8", "surrogateescape"), "n"),
        encode_nodes(initial_ring("x", 2).nodes).encode(),
    ),
    Decoder(
        "schema history",
        decode_history,
        json.dumps(
            {
                "schemas": [
                    {
                        "version_id": 1,
                        "max_column_id": 9,
                        "type": "record",
                        "fields": [
                            {"id": 1, "name": "a", "type": "decimal(10,2)", "optional": True, "doc": "d"},
                            {"id": 2, "name": "b", "type": {"type": "array", "element_id": 3, "element": "fixed[4]"}},
                            {
                                "id": 4,
                                "name": "c",
                                "type": {
                                    "type": "map",
                                    "key_id": 5,
                                    "key": "string",
                                    "value_id": 6,
                                    "value": {"type": "record", "fields": [{"id": 7, "name": "x", "type": "int"}]},
                                },
                            },
                        ],
                    }
                ]
            }
        ).encode(),
    ),
    Decoder(
        "schema in a commit",
        lambda data: decode_internal_schema(data.decode("utf-8", "surrogateescape")),
        b'{"version_id": 1, "max_column_id": 1, "fields": [{"id": 1, "name": "a", "type": "long"}]}',
    ),
)
EVERY_DECODER = pytest.mark.parametrize("decoder", DECODERS, ids=lambda decoder: decoder.name)


@EVERY_DECODER
def test_a_valid_body_is_decoded(decoder: Decoder) -> None:
    assert decoder.decode(decoder.valid)


@EVERY_DECODER
@settings(max_examples=examples(40), deadline=None)
@given(st.data())
def test_any_damaged_body_gives_a_value_or_an_error_of_the_family(decoder: Decoder, data: st.DataObject) -> None:
    with suppress(HudiError):
        decoder.decode(data.draw(damaged_bytes(decoder.valid)))


@EVERY_DECODER
@settings(max_examples=examples(50), deadline=None)
@given(st.data())
def test_values_of_other_types_give_a_value_or_an_error_of_the_family(decoder: Decoder, data: st.DataObject) -> None:
    if decoder.record:
        body = data.draw(with_other_values(dict(bodies.decode_avro_record(decoder.valid)), in_json=False))
        forged = avro_body(decoder.record, body)
    else:
        forged = json.dumps(data.draw(with_other_values(json.loads(decoder.valid), in_json=True))).encode()
    with suppress(HudiError):
        hash(repr(decoder.decode(forged)).encode())  # its texts can be printed


@EVERY_DECODER
@pytest.mark.parametrize(
    "data",
    [
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"9" * 1_000_000,
        b'"\\ud800"',
        b'{"a": NaN}',
        '{"schemas": "\u00e9"}'.encode("utf-16"),
        b"\xff\xfe\x00",
    ],
    ids=["nested lists", "nested objects", "a long number", "half a pair", "no number", "UTF-16", "no text"],
)
def test_what_no_writer_makes_is_refused(decoder: Decoder, data: bytes) -> None:
    with pytest.raises(CorruptFile):
        decoder.decode(data)


@settings(max_examples=examples(100), deadline=None)
@given(st.data())
def test_any_message_of_protobuf_gives_fields_or_an_error_of_the_family(data: st.DataObject) -> None:
    valid = number_field(1, 300) + bytes_field(2, b"abc") + bytes_field(3, number_field(1, 2**63))
    with suppress(HudiError):
        list(message_fields(data.draw(damaged_bytes(valid)), "m"))


def test_json_with_both_halves_of_a_character_is_read() -> None:
    assert parse_json(b'"\\ud83d\\ude00"', "f", "JSON") == "\U0001f600"


def test_an_instant_of_a_plan_that_is_no_number_is_refused() -> None:
    """It makes paths: `.hoodie/.temp/<instant>` is deleted with all that is in it."""
    for time in ("", "..", "a/b", "\u0662"):
        with pytest.raises(CorruptFile, match="can't be one"):
            bodies.decode_rollback_plan(bodies.encode_rollback_plan(RollbackPlan(InstantInfo(time, "commit"))))
        with pytest.raises(CorruptFile, match="can't be one"):
            decode_restore_plan(encode_restore_plan(RestorePlan((InstantInfo(time, "commit"),), TIME)))


def test_a_clustering_to_more_file_groups_than_there_can_be_is_refused() -> None:
    def decoded(file_groups: int) -> ClusteringPlan:
        group = ClusteringGroup((ClusteringSlice("x", "f-0", BASE, (LOG,)),), file_groups)
        return decode_clustering_plan(encode_clustering_plan(ClusteringPlan((group,), "S"), 8, str))

    assert decoded(1_000_000).groups[0].output_file_groups == 1_000_000
    for too_many in (1_000_001, 2**31 - 1):
        with pytest.raises(CorruptFile, match=f"1000000 new file groups.*found {too_many}"):
            decoded(too_many)


def test_a_clustering_that_names_a_file_group_twice_is_refused() -> None:
    """Its rows would be duplicated."""
    one = ClusteringSlice("x", "f-0", BASE, (LOG,))
    for groups in ((ClusteringGroup((one, one)),), (ClusteringGroup((one,)), ClusteringGroup((one,)))):
        with pytest.raises(CorruptFile, match="'f-0' of 'x' twice"):
            decode_clustering_plan(encode_clustering_plan(ClusteringPlan(groups, "S"), 8, str))
