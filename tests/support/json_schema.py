"""JSON Schema of what a command writes with `--json`, from the type of its answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, fields, is_dataclass
from datetime import date
from enum import Enum
from types import NoneType, UnionType
from typing import TYPE_CHECKING, TypeAlias, Union, get_args, get_origin, get_type_hints

from pyhudi.cli.command import Command, load
from pyhudi.result import ResultList

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ANSWERS", "schema_of"]

JsonSchema: TypeAlias = dict[str, object]
_PLAIN = {bool: "boolean", int: "integer", float: "number", str: "string", NoneType: "null"}


@dataclass
class TableColumn:
    name: str
    type: str
    nullable: bool


@dataclass
class Property:
    key: str
    value: str


# Words → the type of the answer: a dataclass, a ResultList, an Arrow schema, whose rows are listed; [] is a list of it.
ANSWERS = {
    "table create": "pyhudi.table.description:TableDescription",
    "table describe": "pyhudi.table.description:TableDescription",
    "table schema": f"{__name__}:TableColumn[]",
    "table history": "pyhudi.queries.history:History",
    "table files": "pyhudi.table.reports:FILES_SCHEMA",
    "table partitions": "pyhudi.table.reports:PARTITIONS_SCHEMA",
    "table stats": "pyhudi.table.reports:TableStats",
    "table diff": "pyhudi.table.reports:TableDiff",
    "table health": "pyhudi.services.health:TableHealth",
    "table drop": "pyhudi.table.description:TableDescription",
    "write": "pyhudi.actions.result:WriteResult",
    "bootstrap": "pyhudi.actions.result:WriteResult",
    "import": "pyhudi.actions.result:WriteResult",
    "timeline": "pyhudi.model.instant:Instant[]",
    "compact": "pyhudi.services.results:CompactionResult",
    "log-compact": "pyhudi.services.results:CompactionResult",
    "cluster": "pyhudi.services.results:ClusteringResult",
    "clean": "pyhudi.services.clean.runs:CleanResult",
    "archive": "pyhudi.services.archive.archiving:ArchiveResult",
    "ttl": "pyhudi.services.partition_ttl:TtlResult",
    "restore": "pyhudi.actions.undo.restore_result:RestoreResult",
    "rollback": "pyhudi.actions.undo.restore_result:RollbackResult",
    "upgrade": "pyhudi.services.versions.upgrade:VersionChange",
    "downgrade": "pyhudi.services.versions.upgrade:VersionChange",
    "change-type": "pyhudi.services.table_type:TypeChange",
    "export": "pyhudi.cli.rows:Exported",
    "report": "pyhudi.cli.rows:WrittenFile",
    "completion": "pyhudi.cli.completion:CompletionScript",
    "savepoint list": "pyhudi.services.savepoint:Savepoints",
    "savepoint create": "pyhudi.services.savepoint:Savepoint",
    "savepoint delete": "pyhudi.services.savepoint:Savepoints",
    "index list": "pyhudi.services.indexes:IndexList",
    "index create": "pyhudi.services.indexes:IndexInfo",
    "index build": "pyhudi.services.indexes:IndexInfo[]",
    "index drop": "pyhudi.services.indexes:IndexList",
    "checkpoint get": "pyhudi.table.change:Checkpoint",
    "checkpoint set": "pyhudi.table.change:Checkpoint",
    "config list": f"{__name__}:Property[]",
    "config set": "pyhudi.services.properties:PropertiesChange",
    "config unset": "pyhudi.services.properties:PropertiesChange",
    "metadata validate": "pyhudi.queries.statistics_validation:Difference[]",
    "metadata rebuild": "pyhudi.services.metadata_table:MetadataRebuild",
    "metadata stats": "pyhudi.table.groups.metadata:MetadataStats",
    "metadata drop": "builtins:str[]",
    "locks audit status": "pyhudi.locks.audit:AuditStatus",
    "locks audit enable": "pyhudi.locks.audit:AuditStatus",
    "locks audit disable": "pyhudi.locks.audit:AuditStatus",
    "locks audit validate": "pyhudi.locks.audit:AuditValidation",
    "locks audit cleanup": "pyhudi.locks.audit:AuditCleanup",
    "repair orphans": "pyhudi.services.repair.result:RepairResult",
    "repair duplicates": "pyhudi.services.repair.result:RepairResult",
    "repair partition-metadata": "pyhudi.services.repair.result:RepairResult",
    "repair empty-instants": "pyhudi.services.repair.result:RepairResult",
    "repair properties": "pyhudi.services.repair.result:RepairResult",
    "repair rename-partition": "pyhudi.services.repair.result:RepairResult",
    "repair deprecated-partition": "pyhudi.services.repair.result:RepairResult",
    "repair log-checksums": "pyhudi.services.repair.result:RepairResult",
}


def schema_of(command: Command) -> JsonSchema:
    """The schema of an answer. Rows of a query have its columns."""
    target = ANSWERS.get(command.words)
    if target is None:
        return _array({"type": "object"})
    answer = load(target.removesuffix("[]"))
    if not isinstance(answer, type):
        return _array(_rows(answer))
    if issubclass(answer, ResultList):
        return _array(_of(answer.entry_type))
    return _array(_of(answer)) if target.endswith("[]") else _of(answer)


def _array(items: JsonSchema) -> JsonSchema:
    return {"type": "array", "items": items}


def _object(properties: Mapping[str, JsonSchema]) -> JsonSchema:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
    }


def _rows(schema: pa.Schema) -> JsonSchema:
    """Columns of numbers and texts; each may be null."""
    kinds = {field.name: "integer" if str(field.type).startswith("int") else "string" for field in schema}
    return _object({name: {"type": [kind, "null"]} for name, kind in kinds.items()})


def _of(hint: object) -> JsonSchema:
    if isinstance(hint, type) and issubclass(hint, Sequence) and is_dataclass(hint):  # a dataclass that is a list
        return _array(_of(next(get_args(base)[0] for base in getattr(hint, "__orig_bases__", ()) if get_args(base))))
    if is_dataclass(hint) and isinstance(hint, type):
        hints = get_type_hints(hint)
        return _object({one.name: _of(hints[one.name]) for one in fields(hint) if not one.name.startswith("_")})
    origin, parts = get_origin(hint) or hint, get_args(hint)
    if origin in (Union, UnionType):
        return _either([_of(part) for part in parts])
    if not isinstance(origin, type):
        return {}
    if issubclass(origin, Enum):
        texts = [member.value if issubclass(origin, str) else member.name.lower() for member in origin]
        return {"enum": texts}
    if origin in _PLAIN:
        return {"type": _PLAIN[origin]}
    if issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _of(parts[1]) if parts else {}}
    if issubclass(origin, date | bytes) or not issubclass(origin, Sequence | AbstractSet):
        return {"type": "string"} if origin is not object else {}
    return _array(_of(parts[0]) if parts else {})


def _either(schemas: list[JsonSchema]) -> JsonSchema:
    """Of plain types a list of their names."""
    if all(set(schema) == {"type"} for schema in schemas):
        return {"type": [schema["type"] for schema in schemas]}
    return {"anyOf": schemas}
