"""Bodies of indexing instants: bytes ↔ the model. Avro containers in all table versions.

Source: docs/formats/timeline.md, "Records".
"""

from __future__ import annotations

from pyhudi.formats.body_fields import Fields
from pyhudi.formats.instant_files import decode_avro_record, encode_avro_record
from pyhudi.model.indexing import IndexPlan

__all__ = ["decode_index_plan", "encode_index_metadata", "encode_index_plan"]

_VERSION = 1


def encode_index_plan(plan: IndexPlan) -> bytes:
    """Body of `<T>.indexing.requested`."""
    return encode_avro_record("HoodieIndexPlan", {"version": _VERSION, "indexPartitionInfos": _infos(plan)})


def decode_index_plan(data: bytes, where: str = "indexing.requested") -> IndexPlan:
    """What an indexing instant is to build. Raises CorruptFile."""
    body = Fields(decode_avro_record(data, where), where)
    infos = list(body.records("indexPartitionInfos"))
    names = tuple(info.text("metadataPartitionPath") for info in infos)
    return IndexPlan(names, max((info.text("indexUptoInstant") for info in infos), default=""))


def encode_index_metadata(plan: IndexPlan) -> bytes:
    """Body of a completed indexing instant, which built what its plan says."""
    body = {"version": _VERSION, "operationType": None, "indexPartitionInfos": _infos(plan)}
    return encode_avro_record("HoodieIndexCommitMetadata", body)


def _infos(plan: IndexPlan) -> list[dict[str, object]]:
    return [
        {"version": _VERSION, "metadataPartitionPath": name, "indexUptoInstant": plan.up_to, "extraMetadata": {}}
        for name in plan.partitions
    ]
