"""Plans of compactions and log compactions: bytes ↔ the model.

We write version 2, whose files are bare names; version 1 had absolute paths, of which the names count. Table versions
below 8 have no `missingSchedulePartitions` and no extra metadata. Source: docs/formats/timeline.md, "Records";
docs/formats/table-services.md, "Compaction plan".
"""

from __future__ import annotations

import json
from functools import cache

from pyhudi.errors import CorruptFile
from pyhudi.formats.avro.container import decode_container, encode_container
from pyhudi.formats.bodies import NewBody
from pyhudi.formats.body_fields import Fields
from pyhudi.formats.planned_slices import planned_slice
from pyhudi.formats.timeline_schemas import body_schema
from pyhudi.model.plans import CompactionOperation, CompactionPlan, CompactionStrategyInfo

__all__ = ["decode_compaction_plan", "encode_compaction_plan"]

_RECORD = "HoodieCompactionPlan"
_VERSION = 2
_FIRST_WITH_MISSING_PARTITIONS = 8  # table version


def encode_compaction_plan(plan: CompactionPlan, table_version: int) -> bytes:
    """Body of the requested file of a compaction or log compaction."""
    body: NewBody = {
        "operations": [_operation_dict(operation) for operation in plan.operations],
        "extraMetadata": None if table_version < _FIRST_WITH_MISSING_PARTITIONS else {},
        "version": _VERSION,
        "strategy": None,
        "preserveHoodieMetadata": plan.preserve_meta_columns,
    }
    if plan.strategy is not None:
        params = dict(plan.strategy.params)
        body["strategy"] = {"compactorClassName": plan.strategy.class_name, "strategyParams": params, "version": 1}
    if table_version < _FIRST_WITH_MISSING_PARTITIONS:
        return encode_container(_old_schema(), body)
    body["missingSchedulePartitions"] = []
    return encode_container(body_schema(_RECORD), body)


def decode_compaction_plan(data: bytes, where: str = "compaction.requested") -> CompactionPlan:
    """The plan of a compaction or log compaction.

    Raises CorruptFile when it is none, or names files that can't be of its file groups; UnsupportedTable for a plan of
    bootstrapped files, whose columns lie in another table.
    """
    record, name = decode_container(data, where, body_schema(_RECORD))
    if name.rpartition(".")[2] != _RECORD:
        raise CorruptFile(f"{where}: expected a compaction plan, found {name}.")
    body = Fields(record, where)
    strategy = body.record("strategy")
    return CompactionPlan(
        operations=tuple(_operation(operation) for operation in body.records("operations")),
        strategy=None
        if strategy is None
        else CompactionStrategyInfo(strategy.text("compactorClassName"), strategy.text_map("strategyParams")),
        preserve_meta_columns=bool(body.flag("preserveHoodieMetadata")),
    )


@cache
def _old_schema() -> str:
    schema = json.loads(body_schema(_RECORD))
    schema["fields"] = [field for field in schema["fields"] if field["name"] != "missingSchedulePartitions"]
    return json.dumps(schema, separators=(",", ":"))


def _operation_dict(operation: CompactionOperation) -> NewBody:
    return {
        "baseInstantTime": operation.base_instant,
        "deltaFilePaths": list(operation.log_file_names),
        "dataFilePath": operation.data_file_name,
        "fileId": operation.file_id,
        "partitionPath": operation.partition_path,
        "metrics": dict(operation.metrics),
        "bootstrapFilePath": operation.bootstrap_file_path,
    }


def _operation(body: Fields) -> CompactionOperation:
    found = planned_slice(body, "compacts")
    return CompactionOperation(
        partition_path=found.partition_path,
        file_id=found.file_id,
        base_instant=body.text("baseInstantTime"),
        data_file_name=found.data_file,
        log_file_names=found.logs,
        metrics=body.number_map("metrics"),
    )
