"""Bodies on the timeline: commits in JSON and Avro, and the plans and metadata of everything else."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from contextlib import suppress

import fastavro

from fuzz.golden import golden_files
from fuzz.mutation import Mutator, json_shape
from fuzz.target import Target
from fuzz.targets.avro import HOSTILE_SCHEMAS, container_of
from pyhudi.errors import HudiError
from pyhudi.formats.avro.container import decode_container
from pyhudi.formats.timeline.archive_entries import archive_entry, encode_entries
from pyhudi.formats.timeline.clean_plans import (
    decode_clean_metadata,
    decode_clean_plan,
    encode_clean_metadata,
    encode_clean_plan,
)
from pyhudi.formats.timeline.instant_files import (
    decode_commit,
    decode_requested_replace,
    decode_rollback_metadata,
    decode_rollback_plan,
    decode_totals,
    encode_commit,
    encode_requested_replace,
    encode_rollback_metadata,
    encode_rollback_plan,
)
from pyhudi.formats.timeline.plans import (
    decode_clustering_plan,
    decode_compaction_plan,
    decode_index_plan,
    encode_clustering_plan,
    encode_compaction_plan,
    encode_index_plan,
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
from pyhudi.model.instant import ActionKind, State
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
    IndexPlan,
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

__all__ = ["TARGETS"]

_TIME, _LATER = "20240101000000000", "20240102000000000"
_BASE, _LOG = f"a7f1-0_0-1-2_{_TIME}.parquet", f".a7f1-0_{_LATER}.log.1_0-1-2"
_WORDS = (b"Obj\x01", b"avro.schema", b"avro.codec", b"null", b'"type":', b'"record"', b"..", b"\xff", b"9" * 5000)
_TRIES = 5


def _commit(data: bytes) -> None:
    """A commit, its totals, and what archiving makes of it."""
    with suppress(HudiError):
        decode_totals(data, "commit")
    metadata = decode_commit(data, "commit")
    _ = metadata.stats(), metadata.schema_json
    encode_entries([archive_entry(_TIME, ActionKind.COMMIT, State.COMPLETED, data, _LATER)])


def _commit_metadata() -> tuple[CommitMetadata, CommitMetadata]:
    base = WriteStat("a7f1-0", f"p/{_BASE}", "p", num_writes=3, num_inserts=3, file_size_in_bytes=4000)
    log = WriteStat(
        "a7f1-0", f"p/{_LOG}", "p", prev_commit=_TIME, total_log_records=2, log_version=1, log_offset=0,
        base_file=_BASE, log_files=(_LOG,), min_event_time=1, max_event_time=2,
    )  # fmt: skip
    extra = {"schema": '{"type":"record","name":"r","fields":[{"name":"id","type":"string"}]}'}
    return (
        CommitMetadata({"p": (base, log)}, extra, "UPSERT"),
        CommitMetadata({"p": (base,)}, extra, "CLUSTER", partition_to_replace_file_ids={"p": ("b-0",)}),
    )


def _json_commits() -> list[bytes]:
    plain, replacing = _commit_metadata()
    made = [encode_commit(plain, ActionKind.DELTACOMMIT, 6), encode_commit(replacing, ActionKind.REPLACECOMMIT, 6)]
    return [*made, *golden_files(r"\.hoodie/\d+\.(commit|deltacommit|replacecommit|inflight)")]


def _avro_commits() -> list[bytes]:
    plain, replacing = _commit_metadata()
    made = [encode_commit(plain, ActionKind.DELTACOMMIT, 9), encode_commit(replacing, ActionKind.REPLACECOMMIT, 9)]
    return [*made, *golden_files(r"\.hoodie/timeline/\d+(_\d+)?\.(commit|deltacommit|replacecommit|inflight)")]


# Damage to containers


def _schema_damaged(data: bytes, mutator: Mutator) -> bytes:
    """The same record under a changed schema."""
    header = _header(data)
    if header is None:
        return mutator.damaged(data)
    if mutator.random.random() < 0.3:
        return container_of(mutator.random.choice(HOSTILE_SCHEMAS), _record_bytes(data))
    return container_of(json.dumps(mutator.json(json.loads(header))), _record_bytes(data))


def _record_damaged(data: bytes, mutator: Mutator) -> bytes:
    """Changed values, as far as the schema takes them; else damaged bytes of the record."""
    header = _header(data)
    if header is None:
        return mutator.damaged(data)
    try:
        body, _ = decode_container(data)
        schema = fastavro.parse_schema(json.loads(header))
    except (HudiError, ValueError, TypeError, KeyError):
        return mutator.damaged(data)
    for _ in range(_TRIES):
        sink = io.BytesIO()
        try:
            fastavro.schemaless_writer(sink, schema, mutator.json(dict(body)))
        except Exception:  # whatever fastavro stumbles over: the value does not fit
            continue
        return container_of(header, sink.getvalue())
    return container_of(header, mutator.damaged(_record_bytes(data)))


def _header(data: bytes) -> str | None:
    try:
        return str(fastavro.reader(io.BytesIO(data)).metadata["avro.schema"])
    except Exception:  # fastavro raises whatever type its decoding stumbles over
        return None


def _record_bytes(data: bytes) -> bytes:
    """Behind the first sync marker, past count and length, as far as the second one."""
    sync = data[-16:]
    at = data.find(sync)
    record = data[at + 16 : -16] if 0 <= at < len(data) - 16 else data
    for _ in range(2):
        while record and record[0] & 0x80:
            record = record[1:]
        record = record[1:]
    return record


def _body(name: str, decode: Callable[[bytes], object], seeds: Callable[[], Sequence[bytes]], golden: str) -> Target:
    return Target(
        name,
        decode,
        lambda: [*seeds(), *golden_files(golden)],
        (_schema_damaged, _record_damaged, _record_damaged),
        _WORDS,
    )


# Plans and metadata, one of each


def _rollback() -> RollbackMetadata:
    partition = RollbackPartition("p", (f"p/{_BASE}",), (f"p/{_LOG}",), {_LOG: 5}, {_LOG: 7})
    return RollbackMetadata(_LATER, 12, 1, (_TIME,), {"p": partition}, (InstantInfo(_TIME, "commit"),))


def _clustering() -> ClusteringPlan:
    group = ClusteringGroup((ClusteringSlice("p", "a7f1-0", _BASE, (_LOG,)),), 2, {"TOTAL_IO_MB": 1.5}, {"a": "b"})
    return ClusteringPlan((group,), "org.apache.Strategy", {"hoodie.clustering.plan.strategy.sort.columns": "a"})


def _compaction() -> CompactionPlan:
    operation = CompactionOperation("p", "a7f1-0", _TIME, _BASE, (_LOG,), {"TOTAL_LOG_FILES": 1.0})
    return CompactionPlan((operation,), CompactionStrategyInfo("org.apache.Strategy", {"a": "b"}), True)


def _clean_plan() -> CleanPlan:
    earliest = RetainedInstant(_TIME, "commit", "COMPLETED")
    return CleanPlan("KEEP_LATEST_COMMITS", earliest, _LATER, {"p": (_BASE, _LOG)}, ("q",), {"a": "b"})


def _clean() -> CleanMetadata:
    partition = CleanedPartition("KEEP_LATEST_COMMITS", (_BASE,), (_LOG,), True)
    return CleanMetadata(_LATER, 12, _TIME, _LATER, {"p": partition}, {"a": "b"})


def _rollback_plan() -> RollbackPlan:
    request = RollbackRequest("p", "a7f1-0", _TIME, (f"file:/t/p/{_BASE}",), {_LOG: 5})
    return RollbackPlan(InstantInfo(_TIME, "commit"), (request,))


def _restore() -> RestoreMetadata:
    return RestoreMetadata(_LATER, 12, (InstantInfo(_TIME, "commit"),), {_TIME: (_rollback(),)})


_ANY = r"\.hoodie/(timeline/)?\d+(_\d+)?\."
_INDEXED = IndexPlan(("record_index", "secondary_index_by_v"), "20240101000000000")
_SAVED = SavepointMetadata("me", 1, "why", {"p": (_BASE, _LOG)})

TARGETS = (
    Target("commits-json", _commit, _json_commits, (json_shape,), (b"[" * 5000, b"9" * 5000, b"\\ud800", b"\xff")),
    Target("commits-avro", _commit, _avro_commits, (_schema_damaged, _record_damaged, _record_damaged), _WORDS),
    _body("clean-plans", decode_clean_plan, lambda: [encode_clean_plan(_clean_plan(), str)], _ANY + "clean.requested"),
    _body("cleans", decode_clean_metadata, lambda: [encode_clean_metadata(_clean())], _ANY + "clean"),
    _body(
        "rollback-plans",
        decode_rollback_plan,
        lambda: [encode_rollback_plan(_rollback_plan())],
        _ANY + "rollback.requested",
    ),
    _body("rollbacks", decode_rollback_metadata, lambda: [encode_rollback_metadata(_rollback())], _ANY + "rollback"),
    _body(
        "restore-plans",
        decode_restore_plan,
        lambda: [encode_restore_plan(RestorePlan((InstantInfo(_TIME, "commit"),), _TIME))],
        _ANY + "restore.requested",
    ),
    _body("restores", decode_restore_metadata, lambda: [encode_restore_metadata(_restore())], _ANY + "restore"),
    _body("index-plans", decode_index_plan, lambda: [encode_index_plan(_INDEXED)], _ANY + "indexing.requested"),
    _body("savepoints", decode_savepoint, lambda: [encode_savepoint(_SAVED)], _ANY + "savepoint"),
    _body(
        "compaction-plans",
        decode_compaction_plan,
        lambda: [encode_compaction_plan(_compaction(), version) for version in (6, 9)],
        _ANY + "compaction.requested",
    ),
    _body(
        "clustering-plans",
        decode_clustering_plan,
        lambda: [encode_clustering_plan(_clustering(), version, str) for version in (6, 9)],
        _ANY + "(replacecommit|clustering).requested",
    ),
    _body(
        "replace-requests",
        decode_requested_replace,
        lambda: [encode_requested_replace("INSERT_OVERWRITE")],
        _ANY + "replacecommit.requested",
    ),
)
