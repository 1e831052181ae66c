"""Bodies of instants against those of real Hudi 0.15.0, 1.0.2 and 1.2.0."""

from __future__ import annotations

import io
import json
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import fastavro
import pytest
from fastavro.schema import to_parsing_canonical_form
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.errors import CorruptFile
from pyhudi.formats.avro.container import encode_container
from pyhudi.formats.timeline import instant_files as bodies
from pyhudi.formats.timeline.schemas import body_schema
from pyhudi.model.commit import CommitMetadata, CommitTotals, OperationType, WriteStat
from pyhudi.model.instant import ActionKind
from pyhudi.model.plans import InstantInfo, RollbackMetadata, RollbackPartition, RollbackPlan, RollbackRequest
from tests.support.golden.bodies import Body, golden_bodies
from tests.support.values.strategies import RELAXED

TOP_LEVEL = {
    "HoodieCommitMetadata",
    "HoodieReplaceCommitMetadata",
    "HoodieRequestedReplaceMetadata",
    "HoodieCompactionPlan",
    "HoodieIndexPlan",
    "HoodieIndexCommitMetadata",
    "HoodieRollbackPlan",
    "HoodieRollbackMetadata",
    "HoodieCleanerPlan",
    "HoodieCleanMetadata",
    "HoodieRestorePlan",
    "HoodieRestoreMetadata",
    "HoodieSavepointMetadata",
}

# Optional fields that releases before 1.0 did not have; a plan of theirs gets them as null.
YOUNGER_FIELDS = {
    "HoodieCompactionPlan": "missingSchedulePartitions",
    "HoodieClusteringPlan": "missingSchedulePartitions",
}


def read(data: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """Datum and schema of a container, by fastavro."""
    reader = fastavro.reader(io.BytesIO(data))
    return next(iter(reader)), json.loads(reader.metadata["avro.schema"])


def action_of(body: Body) -> ActionKind:
    return ActionKind.REPLACECOMMIT if "replacecommit" in body.name else ActionKind.COMMIT


def encoded_again(body: Body, record: str) -> bytes:
    """Decoded into the model, where there is one, and encoded from it."""
    if record in ("HoodieCommitMetadata", "HoodieReplaceCommitMetadata"):
        return bodies.encode_commit(bodies.decode_commit(body.data, body.where), action_of(body), table_version=9)
    if record == "HoodieRollbackPlan":
        return bodies.encode_rollback_plan(bodies.decode_rollback_plan(body.data, body.where))
    if record == "HoodieRollbackMetadata":
        return bodies.encode_rollback_metadata(bodies.decode_rollback_metadata(body.data, body.where))
    if record == "HoodieRequestedReplaceMetadata":
        replace = bodies.decode_requested_replace(body.data, body.where)
        return bodies.encode_requested_replace(
            replace["operationType"], replace["clusteringPlan"], replace["extraMetadata"]
        )
    return bodies.encode_avro_record(record, bodies.decode_avro_record(body.data, body.where))


def with_younger_fields(datum: Any, record: str) -> Any:
    if record == "HoodieRequestedReplaceMetadata" and datum["clusteringPlan"] is not None:
        plan = {YOUNGER_FIELDS["HoodieClusteringPlan"]: None, **datum["clusteringPlan"]}
        return {**datum, "clusteringPlan": plan}
    if record in YOUNGER_FIELDS:
        return {YOUNGER_FIELDS[record]: None, **datum}
    return datum


def test_every_avro_body_of_real_hudi_survives_the_model(shared: Path) -> None:
    checked: Counter[str] = Counter()
    for body in golden_bodies(shared):
        if not body.is_avro or "/archived/" in body.path or "/history/" in body.path:
            continue
        theirs, schema = read(body.data)
        record = schema["name"]
        ours, _ = read(encoded_again(body, record))
        assert ours == with_younger_fields(theirs, record), body.where
        checked[record] += 1

    assert checked["HoodieCommitMetadata"] > 900
    assert checked["HoodieReplaceCommitMetadata"] > 10
    assert checked["HoodieRollbackPlan"] == checked["HoodieRollbackMetadata"] > 20
    assert set(checked) == TOP_LEVEL


def test_our_schemas_are_those_that_hudi_writes_into_its_files(shared: Path) -> None:
    records = set()
    for body in golden_bodies(shared):
        # Tables that were upgraded hold plans of older releases.
        if body.is_avro and body.hudi == "1.2.0" and "/timeline/" in body.path and "upgrade_" not in body.table:
            _, schema = read(body.data)
            record = schema["name"]
            assert to_parsing_canonical_form(json.loads(body_schema(record))) == to_parsing_canonical_form(schema)
            assert defaults(json.loads(body_schema(record))) == defaults(schema), record
            records.add(record)

    assert records == TOP_LEVEL


def defaults(schema: Any) -> dict[str, Any]:
    """Field name → default, of all records inside; "none" for a field without one."""
    found: dict[str, Any] = {}
    if isinstance(schema, dict):
        for field in schema.get("fields", ()):
            found[f"{schema['name']}.{field['name']}"] = field.get("default", "none")
        for value in schema.values():
            found.update(defaults(value))
    elif isinstance(schema, list):
        for value in schema:
            found.update(defaults(value))
    return found


def test_json_commits_of_0_15_0_come_back_byte_for_byte(shared: Path) -> None:
    checked = 0
    for body in golden_bodies(shared):
        if body.hudi != "0.15.0" or not body.is_json_commit or b'"columnName"' in body.data:
            continue  # column ranges inside the stats of log files are not kept
        metadata = bodies.decode_commit(body.data, body.where)
        assert bodies.encode_commit(metadata, action_of(body), table_version=6) == body.data, body.where
        checked += 1

    assert checked > 400


def test_a_json_commit_and_its_avro_form_mean_the_same(shared: Path) -> None:
    for body in golden_bodies(shared):
        if body.is_json_commit:
            metadata = bodies.decode_commit(body.data, body.where)
            avro = bodies.encode_commit(metadata, action_of(body), table_version=8)
            assert bodies.decode_commit(avro, body.where) == metadata


def test_the_totals_of_every_commit_of_real_hudi_are_those_of_its_body(shared: Path) -> None:
    rows = 0
    for body in golden_bodies(shared):
        if body.is_json_commit or (body.is_avro and body.name.endswith((".commit", ".deltacommit", ".replacecommit"))):
            totals = bodies.decode_totals(body.data, body.where)
            assert totals == CommitTotals.of(bodies.decode_commit(body.data, body.where)), body.where
            rows += totals.rows_written

    assert rows > 1000


def test_totals_are_read_although_another_part_of_the_schema_refers_to_a_skipped_one() -> None:
    stat = {
        "type": "record",
        "name": "HoodieWriteStat",
        "fields": [
            {"name": "numWrites", "type": ["null", "long"]},
            {"name": "runtimeStats", "type": {"type": "fixed", "name": "Four", "size": 4}},
        ],
    }
    schema = {
        "type": "record",
        "name": "HoodieCommitMetadata",
        "fields": [
            {"name": "partitionToWriteStats", "type": {"type": "map", "values": {"type": "array", "items": stat}}},
            {"name": "operationType", "type": "string"},
            {"name": "more", "type": "Four"},
        ],
    }
    stats = {"p": [{"numWrites": 3, "runtimeStats": b"1234"}, {"numWrites": 4, "runtimeStats": b"1234"}]}
    data = encode_container(
        json.dumps(schema), {"partitionToWriteStats": stats, "operationType": "insert", "more": b"1234"}
    )

    totals = bodies.decode_totals(data)

    assert (totals.files, totals.rows_written, totals.operation_type) == (2, 7, "INSERT")


def test_a_container_has_one_header_entry_one_block_and_equal_bytes_for_equal_bodies() -> None:
    metadata = CommitMetadata({"p": (WriteStat("f-0", "p/f-0_0-1-2_3.parquet", "p", num_writes=3),)}, {"schema": "é"})
    data = bodies.encode_commit(metadata, ActionKind.COMMIT, 9)
    reader = fastavro.block_reader(io.BytesIO(data))

    assert list(reader.metadata) == ["avro.schema"]
    assert [block.num_records for block in reader] == [1]
    assert data == bodies.encode_commit(metadata, ActionKind.COMMIT, 9)
    assert bodies.decode_commit(data) == metadata


def test_workload_profiles_are_those_of_real_hudi(golden: Any) -> None:
    folder, _ = golden("1.2.0", "cow_operations")
    files = sorted((folder / ".hoodie" / "timeline").glob("*.inflight"))
    insert, upsert = read(files[0].read_bytes())[0], read(files[1].read_bytes())[0]
    touched = {
        partition: {stat["fileId"]: (stat["prevCommit"], stat["numUpdateWrites"]) for stat in stats if stat["fileId"]}
        for partition, stats in upsert["partitionToWriteStats"].items()
    }

    ours = bodies.workload_profile({"2024-01-01": 6, "2024-01-02": 6, "2024-01-03": 6}, {}, OperationType.INSERT)
    assert read(bodies.encode_commit(ours, ActionKind.COMMIT, 9))[0] == insert
    ours = bodies.workload_profile({"2024-01-01": 1}, touched, OperationType.UPSERT)
    assert read(bodies.encode_commit(ours, ActionKind.COMMIT, 9))[0] == upsert


def test_an_inflight_replacecommit_is_a_plain_commit_record() -> None:
    profile = bodies.workload_profile({"p": 2}, {}, OperationType.INSERT_OVERWRITE)

    _, schema = read(bodies.encode_commit(profile, ActionKind.REPLACECOMMIT, 9))
    assert schema["name"] == "HoodieCommitMetadata"
    done = CommitMetadata({}, partition_to_replace_file_ids={"p": ("f-0",)})
    _, schema = read(bodies.encode_commit(done, ActionKind.REPLACECOMMIT, 9))
    assert schema["name"] == "HoodieReplaceCommitMetadata"


def test_a_requested_insert_overwrite_is_all_null_as_hudi_writes_it(golden: Any) -> None:
    folder, _ = golden("1.2.0", "cow_operations")
    theirs = sorted((folder / ".hoodie" / "timeline").glob("*.replacecommit.requested"))

    assert read(bodies.encode_requested_replace())[0] == read(theirs[0].read_bytes())[0]
    assert (
        read(bodies.encode_requested_replace("DELETE_PARTITION", extra_metadata={}))[0]
        == read(theirs[1].read_bytes())[0]
    )


def test_rollback_plan_and_metadata_come_back() -> None:
    plan = RollbackPlan(
        InstantInfo("20240101000000000", "commit"),
        (RollbackRequest("p", "f-0", "20231231000000000", ("/t/p/a.parquet",), {"file:/t/p/.x.log.1": 7}),),
    )
    metadata = RollbackMetadata(
        "20240101000000001",
        12,
        1,
        ("20240101000000000",),
        {"p": RollbackPartition("p", ("/t/p/a.parquet",), (), {"l": 1})},
        (InstantInfo("20240101000000000", "commit"),),
    )

    assert bodies.decode_rollback_plan(bodies.encode_rollback_plan(plan)) == plan
    assert bodies.decode_rollback_metadata(bodies.encode_rollback_metadata(metadata)) == metadata


def test_an_empty_body_is_a_write_of_which_nothing_is_known() -> None:
    assert bodies.decode_commit(b"") == CommitMetadata({}, operation_type=OperationType.UNKNOWN)


def test_unknown_keys_are_ignored_and_counters_may_be_null() -> None:
    text = b'{"partitionToWriteStats": {"p": [{"fileId": "f", "numWrites": null, "news": {"a": 1}}]}, "more": []}'

    stat = bodies.decode_commit(text).stats()[0]
    assert (stat.file_id, stat.num_writes, stat.path) == ("f", 0, None)


def whole_body() -> bytes:
    stat = WriteStat("f-0", "p/f-0_0-1-2_3.parquet", "p", num_writes=3)
    return bodies.encode_commit(CommitMetadata({"p": (stat,)}, {"schema": "x"}), ActionKind.COMMIT, 9)


def test_every_truncation_of_a_body_is_an_error_that_names_the_file() -> None:
    data = whole_body()
    for end in range(1, len(data) - 16):  # the last sync marker may be missing: nothing is lost with it
        with pytest.raises(CorruptFile, match=r"timeline/1\.commit"):
            bodies.decode_commit(data[:end], "timeline/1.commit")


@pytest.mark.parametrize(
    "data",
    [
        b"[]",
        b'"text"',
        b"{}",
        b'{"partitionToWriteStats": 3}',
        b'{"partitionToWriteStats": {"p": {}}}',
        b'{"partitionToWriteStats": {"p": [3]}}',
        b'{"partitionToWriteStats": {"p": [{"numWrites": "many"}]}}',
        b'{"operationType": "UPSERT", "extraMetadata": []}',
        b"\xff\xfe garbage",
        b"[" * 100_000,
        b"Obj\x01",
    ],
)
def test_what_is_no_commit_metadata_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptFile):
        bodies.decode_commit(data, "x.commit")


def test_the_body_of_another_record_is_refused() -> None:
    with pytest.raises(CorruptFile, match="HoodieRollbackPlan"):
        bodies.decode_rollback_plan(whole_body(), "1.rollback.requested")


@pytest.mark.parametrize(
    "items",
    [
        "null",
        {"type": "null"},
        {"type": "record", "name": "e", "fields": []},
        {"type": "record", "name": "e", "fields": [{"name": "x", "type": "null"}]},
        {"type": "fixed", "name": "f", "size": 0},
    ],
)
def test_a_small_file_can_not_claim_a_huge_array(items: Any) -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": {"type": "array", "items": items}}]}
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(schema), [{"a": []}])
    with pytest.raises(CorruptFile, match="no bytes"):
        bodies.decode_avro_record(out.getvalue(), "bomb")


@RELAXED
@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=4))
def test_damaged_bodies_decode_or_are_called_corrupt(changes: list[tuple[int, int]]) -> None:
    for whole, decode in (
        (whole_body(), bodies.decode_commit),
        (bodies.encode_rollback_plan(RollbackPlan(InstantInfo("1", "commit"))), bodies.decode_rollback_plan),
    ):
        data = bytearray(whole)
        for at, byte in changes:
            data[at % len(data)] = byte
        with suppress(CorruptFile):
            decode(bytes(data), "x")


def test_a_compressed_container_is_refused() -> None:
    out = io.BytesIO()
    schema = fastavro.parse_schema(json.loads(body_schema("HoodieInstantInfo")))
    fastavro.writer(out, schema, [{"commitTime": "1", "action": "commit"}], codec="deflate")
    with pytest.raises(CorruptFile, match="deflate"):
        bodies.decode_avro_record(out.getvalue(), "x")
