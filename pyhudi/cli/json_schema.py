"""JSON Schema of an answer, from its type: what `--json` promises. Source: docs/cli.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from datetime import date
from enum import Enum
from types import NoneType, UnionType
from typing import TYPE_CHECKING, TypeAlias, Union, get_args, get_origin, get_type_hints

from pyhudi.cli.registry import Command, load
from pyhudi.result import ResultList

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["schema_of"]

JsonSchema: TypeAlias = dict[str, object]
_PLAIN = {bool: "boolean", int: "integer", float: "number", str: "string", NoneType: "null"}


def schema_of(command: Command) -> JsonSchema:
    """The schema of what a command writes with `--json`. Rows of a query have its columns."""
    if not command.answer:
        return _array({"type": "object"})
    answer = load(command.answer)
    if not isinstance(answer, type):
        return _array(_rows(answer))  # type: ignore[arg-type]
    if issubclass(answer, ResultList):
        return _array(_of(answer.entry_type))
    return _array(_of(answer)) if command.is_rows else _of(answer)


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
