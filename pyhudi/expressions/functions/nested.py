"""Functions of arrays, maps and structs, and of JSON.

Source: Spark's SQL reference, "Array Functions", "Map Functions", "Struct Functions".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.expressions.casts import cast, implicit_cast
from pyhudi.expressions.functions.registry import (
    Arguments,
    Row,
    Rule,
    call,
    constant_text,
    is_ordered_alike,
    quoted_part,
    same_type,
)
from pyhudi.expressions.tree import Expression, TypedLiteral
from pyhudi.expressions.types import (
    BOOLEAN,
    BYTE,
    INT,
    LONG,
    NOTHING,
    SHORT,
    STRING,
    common_type,
    duckdb_type,
    fields_named,
    is_integral,
    is_nested,
    name_of,
)

__all__ = ["LAMBDAS", "LAMBDA_CONDITIONS", "MACROS", "ROWS", "field_of", "item_of"]

MACROS: Mapping[str, str] = {
    "spark_distinct(x)": (
        "list_filter(x, lambda i, n: CASE WHEN i IS NULL THEN n = list_position(x, NULL) ELSE "
        "list_position(x, i) = n END)"
    ),
    "spark_has(x, i)": "CASE WHEN i IS NULL THEN list_position(x, NULL) IS NOT NULL ELSE list_contains(x, i) END",
    "spark_item(x, i)": (
        "CASE WHEN i < 0 OR i >= len(x) THEN error('the array has ' || len(x) || ' elements, index ' || i || "
        "' is none; get(array, index) is NULL then') ELSE x[i + 1] END"
    ),
    "spark_element(x, i)": (
        "CASE WHEN i = 0 THEN error('element_at counts from 1') WHEN abs(i) > len(x) THEN error('the array has ' || "
        "len(x) || ' elements, element ' || i || ' is none; try_element_at is NULL then') ELSE list_extract(x, i) END"
    ),
    "spark_any(x)": (
        "CASE WHEN x IS NULL THEN NULL WHEN list_contains(x, true) THEN true "
        "WHEN list_position(x, NULL) IS NOT NULL THEN NULL ELSE false END"
    ),
    "spark_overlap(x, y)": (
        "CASE WHEN x IS NULL OR y IS NULL THEN NULL "
        "WHEN len(list_filter(x, lambda i: i IS NOT NULL AND list_contains(y, i))) > 0 THEN true "
        "WHEN len(x) > 0 AND len(y) > 0 AND "
        "(list_position(x, NULL) IS NOT NULL OR list_position(y, NULL) IS NOT NULL) THEN NULL ELSE false END"
    ),
    "spark_flat(x)": "CASE WHEN list_position(x, NULL) IS NOT NULL THEN NULL ELSE flatten(x) END",
    "spark_sequence(a, b)": "CASE WHEN a <= b THEN range(a, b + 1) ELSE range(a, b - 1, -1) END",
    "spark_sequence_by(a, b, n)": (
        "CASE WHEN (n > 0 AND a <= b) THEN range(a, b + 1, n) WHEN (n < 0 AND a >= b) THEN range(a, b - 1, n) "
        "WHEN a = b THEN [a] ELSE error('the step of a sequence leads away from its end') END"
    ),
    "spark_json(s)": "CASE WHEN s IS NULL OR json_valid(s) THEN s ELSE error('no JSON: ' || left(s, 100)) END",
}


def _array(name: str, arguments: Arguments) -> Expression:
    values, kind = same_type(name, arguments)
    places = ", ".join(f"{{{at}}}" for at in range(len(values)))
    whole = pa.list_(kind)
    return call(name, f"[{places}]", whole, *values)


def _list_type(name: str, value: Expression) -> pa.ListType:
    if not isinstance(value.type, pa.ListType):
        raise ConfigError(f"{name} takes an array, found {name_of(value.type)}.")
    return value.type


def item_of(value: Expression, index: Expression) -> Expression:
    """Make value[index]: an array's element by position from 0, a map's value by key, or a struct's field by name."""
    kind = value.type
    if pa.types.is_struct(kind) and isinstance(index, TypedLiteral) and isinstance(index.value, str):
        return field_of(value, index.value)
    if pa.types.is_map(kind):
        key = cast(index, kind.key_type) if index.type == kind.key_type else implicit_cast(index, kind.key_type)
        if key is None:
            raise ConfigError(f"a map with keys of type {name_of(kind.key_type)} has none of {name_of(index.type)}.")
        return call("[]", "map_extract_value({0}, {1})", kind.item_type, value, key)
    if pa.types.is_list(kind) and is_integral(index.type):
        return call("[]", "spark_item({0}, {1})", kind.value_type, value, cast(index, LONG))
    raise ConfigError(f"a value of type {name_of(kind)} has no item by {name_of(index.type)}.")


def field_of(value: Expression, name: str) -> Expression:
    """Make value.name: a field of a struct, or of each struct in an array. Raises ConfigError."""
    kind = value.type
    if pa.types.is_list(kind) and pa.types.is_struct(kind.value_type):
        field = _field(kind.value_type, name)
        text = f"list_transform({{0}}, lambda e: struct_extract(e, {quoted_part(field.name)}))"
        return call(".", text, pa.list_(field.type), value)
    if pa.types.is_map(kind) and kind.key_type == STRING:
        return item_of(value, TypedLiteral(name, STRING))
    if not pa.types.is_struct(kind):
        raise ConfigError(f"a value of type {name_of(kind)} has no field {name!r}.")
    at, field = _place_of(kind, name)
    return call(".", f"struct_extract_at({{0}}, {at + 1})", field.type, value, arrow=f"field {at}")


def _field(kind: pa.DataType, name: str) -> pa.Field:
    return _place_of(kind, name)[1]


def _place_of(kind: pa.DataType, name: str) -> tuple[int, pa.Field]:
    assert isinstance(kind, pa.StructType), kind
    matches = fields_named(kind, name)
    if len(matches) != 1:
        raise ConfigError(f"{name_of(kind)} has {'no' if not matches else 'more than one'} field {name!r}.")
    return kind.get_field_index(matches[0].name), matches[0]


def _map(name: str, arguments: Arguments) -> Expression:
    if not arguments:
        return call(name, "MAP {}", pa.map_(STRING, NOTHING))
    if len(arguments) % 2:
        raise ConfigError(f"{name} takes keys and values in turns.")
    keys, key = same_type(name, arguments[::2])
    values, value = same_type(name, arguments[1::2])
    if key == NOTHING or (len(keys) > 1 and not all(isinstance(one, TypedLiteral) for one in keys)):
        raise ConfigError(f"{name} of keys that are not constants needs Spark: two may be equal.")
    if len({one.value for one in keys if isinstance(one, TypedLiteral)}) < sum(
        isinstance(one, TypedLiteral) for one in keys
    ):
        raise ConfigError(f"{name} has a key twice.")
    left = ", ".join(f"{{{at}}}" for at in range(len(keys)))
    right = ", ".join(f"{{{at + len(keys)}}}" for at in range(len(values)))
    return call(name, f"map([{left}], [{right}])", pa.map_(key, value), *keys, *values)


def _named_struct(name: str, arguments: Arguments) -> Expression:
    if not arguments or len(arguments) % 2:
        raise ConfigError(f"{name} takes names and values in turns.")
    names = [constant_text(name, value, "a name") for value in arguments[::2]]
    return struct_of(name, list(zip(names, arguments[1::2], strict=True)))


def struct_of(name: str, fields: list[tuple[str, Expression]]) -> Expression:
    """Make a struct of named values. Raises ConfigError for a name that occurs twice."""
    names = [field for field, _ in fields]
    if len({field.lower() for field in names}) < len(names) or any("{" in field for field in names):
        raise ConfigError(f"{name} has two fields of one name.")
    parts = [f'"{field.replace(chr(34), chr(34) * 2)}" := {{{at}}}' for at, field in enumerate(names)]
    kind = pa.struct([(field, value.type) for field, value in fields])
    return call(name, f"struct_pack({', '.join(parts)})", kind, *(value for _, value in fields))


def _struct(name: str, arguments: Arguments) -> Expression:
    return struct_of(name, [(f"col{at}", value) for at, value in enumerate(arguments, 1)])


def _size(name: str, arguments: Arguments) -> Expression:
    [value] = arguments
    if pa.types.is_map(value.type) and name != "array_size":
        return call(name, "CAST(cardinality({0}) AS INTEGER)", INT, value)
    _list_type(name, value)
    return call(name, "CAST(len({0}) AS INTEGER)", INT, value)


def _with_element(text: str, result: pa.DataType | None = None) -> Rule:
    """The rule for a function of an array and a value of its elements' type."""

    def rule(name: str, arguments: Arguments) -> Expression:
        if len(arguments) != 2:
            raise ConfigError(f"{name} takes 2 arguments, found {len(arguments)}.")
        kind = _list_type(name, arguments[0])
        shared = common_type([kind.value_type, arguments[1].type], texts_give_way=False)
        if shared is None or arguments[1].type == NOTHING or pa.types.is_map(shared):
            raise ConfigError(
                f"{name} takes a value of type {name_of(kind.value_type)}, found {name_of(arguments[1].type)}."
            )
        values = cast(arguments[0], pa.list_(shared)), cast(arguments[1], shared)
        return call(name, text, pa.list_(shared) if result is None else result, *values)

    return rule


def _two_arrays(text: str, result: pa.DataType | None = None) -> Rule:
    def rule(name: str, arguments: Arguments) -> Expression:
        if len(arguments) != 2:
            raise ConfigError(f"{name} takes 2 arguments, found {len(arguments)}.")
        for value in arguments:
            _list_type(name, value)
        values, kind = same_type(name, arguments, texts_give_way=False)
        if is_nested(_list_type(name, values[0]).value_type):
            raise ConfigError(f"{name} of {name_of(kind)} needs Spark.")
        return call(name, text, kind if result is None else result, *values)

    return rule


def _of_array(text: str, result: Callable[[pa.ListType], pa.DataType] | None = None, *, flat: bool = True) -> Rule:
    def rule(name: str, arguments: Arguments) -> Expression:
        if len(arguments) != 1:
            raise ConfigError(f"{name} takes 1 argument, found {len(arguments)}.")
        kind = _list_type(name, arguments[0])
        if flat and not is_ordered_alike(kind.value_type):
            raise ConfigError(f"{name} of {name_of(kind)} needs Spark.")
        return call(name, text, kind if result is None else result(kind), arguments[0])

    return rule


def _sort_array(name: str, arguments: Arguments) -> Expression:
    if not 1 <= len(arguments) <= 2:
        raise ConfigError(f"{name} takes 1 or 2 arguments, found {len(arguments)}.")
    up = arguments[1] if len(arguments) == 2 else TypedLiteral(True, BOOLEAN)
    if not isinstance(up, TypedLiteral) or not isinstance(up.value, bool):
        raise ConfigError(f"{name} takes true or false for the order.")
    order = "'ASC', 'NULLS FIRST'" if up.value else "'DESC', 'NULLS LAST'"
    return _of_array(f"list_sort({{0}}, {order})")(name, arguments[:1])


def _element_at(name: str, arguments: Arguments) -> Expression:
    if len(arguments) != 2:
        raise ConfigError(f"{name} takes 2 arguments, found {len(arguments)}.")
    if pa.types.is_map(arguments[0].type):
        return item_of(arguments[0], arguments[1])
    kind = _list_type(name, arguments[0])
    text = (
        "CASE WHEN {1} <> 0 THEN list_extract({0}, {1}) END" if name == "try_element_at" else "spark_element({0}, {1})"
    )
    index = implicit_cast(arguments[1], INT) if is_integral(arguments[1].type) else None
    if index is None:
        raise ConfigError(f"{name} takes a whole number, found {name_of(arguments[1].type)}.")
    return call(name, text, kind.value_type, arguments[0], index)


def _get(name: str, arguments: Arguments) -> Expression:
    kind = _list_type(name, arguments[0])
    text = "CASE WHEN {1} >= 0 THEN list_extract({0}, {1} + 1) END"
    return call(name, text, kind.value_type, arguments[0], cast(arguments[1], INT))


def _array_join(name: str, arguments: Arguments) -> Expression:
    if not 2 <= len(arguments) <= 3:
        raise ConfigError(f"{name} takes 2 or 3 arguments, found {len(arguments)}.")
    kind = _list_type(name, arguments[0])
    if kind.value_type not in (STRING, NOTHING):
        raise ConfigError(f"{name} takes an array of texts, found {name_of(kind)}.")
    values = [cast(arguments[0], pa.list_(STRING)), cast(arguments[1], STRING)]
    inner = "list_filter({0}, lambda e: e IS NOT NULL)"
    if len(arguments) == 3:
        inner = "list_transform({0}, lambda e: coalesce(e, {2}))"
        values.append(cast(arguments[2], STRING))
    empty = "CASE WHEN {1} IS NOT NULL THEN '' END"
    text = f"CASE WHEN len({inner}) = 0 THEN {empty} ELSE array_to_string({inner}, {{1}}) END"
    return call(name, f"CASE WHEN {{0}} IS NOT NULL THEN {text} END", STRING, *values)


def _array_repeat(name: str, arguments: Arguments) -> Expression:
    value, times = arguments
    text = "list_transform(range(greatest({1}, 0)), lambda i: {0})"
    return call(name, f"CASE WHEN {{1}} IS NOT NULL THEN {text} END", pa.list_(value.type), value, cast(times, INT))


def _slice(name: str, arguments: Arguments) -> Expression:
    kind = _list_type(name, arguments[0])
    text = (
        "CASE WHEN {1} = 0 OR {2} < 0 THEN error('slice counts from 1, and takes no negative length') "
        "WHEN {2} = 0 OR (CASE WHEN {1} < 0 THEN len({0}) + {1} ELSE {1} - 1 END) < 0 THEN {0}[1:0] "
        "ELSE list_slice({0}, CASE WHEN {1} < 0 THEN len({0}) + {1} + 1 ELSE {1} END, "
        "(CASE WHEN {1} < 0 THEN len({0}) + {1} ELSE {1} - 1 END) + {2}) END"
    )
    return call(name, text, kind, arguments[0], cast(arguments[1], LONG), cast(arguments[2], LONG))


def _sequence(name: str, arguments: Arguments) -> Expression:
    if not 2 <= len(arguments) <= 3 or not all(is_integral(value.type) for value in arguments):
        raise ConfigError(f"{name} without Spark takes 2 or 3 whole numbers.")
    values, kind = same_type(name, arguments)
    text = "spark_sequence({0}, {1})" if len(values) == 2 else "spark_sequence_by({0}, {1}, {2})"
    if kind in (BYTE, SHORT):
        values, kind = [cast(value, INT) for value in values], INT
    return call(
        name, f"CAST({text} AS {duckdb_type(kind)}[])", pa.list_(kind), *[cast(value, LONG) for value in values]
    )


def _flatten(name: str, arguments: Arguments) -> Expression:
    kind = _list_type(name, arguments[0])
    if not pa.types.is_list(kind.value_type):
        raise ConfigError(f"{name} takes an array of arrays, found {name_of(kind)}.")
    return call(name, "spark_flat({0})", kind.value_type, arguments[0])


def _map_part(text: str, result: Callable[[pa.MapType], pa.DataType]) -> Rule:
    def rule(name: str, arguments: Arguments) -> Expression:
        if len(arguments) != 1 or not isinstance(arguments[0].type, pa.MapType):
            raise ConfigError(f"{name} takes a map.")
        return call(name, text, result(arguments[0].type), arguments[0])

    return rule


def _entries(kind: pa.MapType) -> pa.DataType:
    return pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)]))


def _map_contains(name: str, arguments: Arguments) -> Expression:
    value, key = arguments
    if not pa.types.is_map(value.type):
        raise ConfigError(f"{name} takes a map, found {name_of(value.type)}.")
    fitted = implicit_cast(key, value.type.key_type)
    if fitted is None or key.type == NOTHING:
        raise ConfigError(f"{name} takes a key of type {name_of(value.type.key_type)}.")
    return call(name, "list_contains(map_keys({0}), {1})", BOOLEAN, value, fitted)


def _map_from_arrays(name: str, arguments: Arguments) -> Expression:
    keys, values = (_list_type(name, value) for value in arguments)
    return call(name, "map({0}, {1})", pa.map_(keys.value_type, values.value_type), *arguments)


def _map_from_entries(name: str, arguments: Arguments) -> Expression:
    [value] = arguments
    kind = _list_type(name, value).value_type
    if not pa.types.is_struct(kind) or kind.num_fields != 2:
        raise ConfigError(f"{name} takes an array of structs of a key and a value, found {name_of(value.type)}.")
    text = "CASE WHEN list_position({0}, NULL) IS NOT NULL THEN NULL ELSE map_from_entries({0}) END"
    return call(name, text, pa.map_(kind.field(0).type, kind.field(1).type), value)


def _to_json(name: str, arguments: Arguments) -> Expression:
    if len(arguments) != 1:
        raise ConfigError(f"{name} with options needs Spark.")
    kind = arguments[0].type
    parts = [kind.value_type] if pa.types.is_list(kind) else []
    if pa.types.is_map(kind) and kind.key_type == STRING:
        parts = [kind.item_type]
    if not parts or not all(is_integral(part) or part in (STRING, BOOLEAN) for part in parts):
        raise ConfigError(f"{name} of {name_of(kind)} needs Spark.")
    return call(name, "CAST(to_json({0}) AS VARCHAR)", STRING, arguments[0])


_JSON_PATH = re.compile(r"\$(?:\.[A-Za-z_][A-Za-z0-9_]*|\[\d+\])*")


def _get_json_object(name: str, arguments: Arguments) -> Expression:
    if len(arguments) != 2:
        raise ConfigError(f"{name} takes 2 arguments, found {len(arguments)}.")
    path = constant_text(name, arguments[1], "the path")
    if not _JSON_PATH.fullmatch(path):
        raise ConfigError(f"{name} by the path {path!r} needs Spark; paths such as $.a.b[0] are known without.")
    text = f"json_extract_string(spark_json({{0}}), {quoted_part(path)})"
    return Row(text, STRING, (STRING,))(name, arguments[:1])


def _json_length(name: str, arguments: Arguments) -> Expression:
    text = "CASE WHEN json_type(spark_json({0})) = 'ARRAY' THEN CAST(json_array_length({0}) AS INTEGER) END"
    return Row(text, INT, (STRING,))(name, arguments)


ROWS: Mapping[str, Rule] = {
    "array": _array,
    "map": _map,
    "struct": _struct,
    "named_struct": _named_struct,
    "size": _size,
    "cardinality": _size,
    "array_size": _size,
    "element_at": _element_at,
    "try_element_at": _element_at,
    "get": _get,
    "array_contains": _with_element(
        "CASE WHEN list_contains({0}, {1}) THEN true WHEN list_position({0}, NULL) IS NOT NULL THEN NULL "
        "WHEN {0} IS NULL OR {1} IS NULL THEN NULL ELSE false END",
        BOOLEAN,
    ),
    "array_position": _with_element(
        "CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL ELSE CAST(coalesce(list_position({0}, {1}), 0) AS BIGINT) END",
        LONG,
    ),
    "array_remove": _with_element(
        "CASE WHEN {1} IS NULL THEN NULL ELSE list_filter({0}, lambda e: e IS NULL OR e <> {1}) END"
    ),
    "array_append": _with_element("CASE WHEN {0} IS NOT NULL THEN list_append({0}, {1}) END"),
    "array_prepend": _with_element("CASE WHEN {0} IS NOT NULL THEN list_prepend({1}, {0}) END"),
    "array_distinct": _of_array("spark_distinct({0})"),
    "array_compact": _of_array("list_filter({0}, lambda e: e IS NOT NULL)", flat=False),
    "array_max": _of_array("list_max({0})", lambda kind: kind.value_type),
    "array_min": _of_array("list_min({0})", lambda kind: kind.value_type),
    "array_sort": _of_array("list_sort({0}, 'ASC', 'NULLS LAST')"),
    "sort_array": _sort_array,
    "array_union": _two_arrays(
        "CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL ELSE spark_distinct(list_concat({0}, {1})) END"
    ),
    "array_except": _two_arrays(
        "CASE WHEN {1} IS NULL THEN NULL ELSE list_filter(spark_distinct({0}), lambda e: NOT spark_has({1}, e)) END"
    ),
    "array_intersect": _two_arrays(
        "CASE WHEN {1} IS NULL THEN NULL ELSE list_filter(spark_distinct({0}), lambda e: spark_has({1}, e)) END"
    ),
    "arrays_overlap": _two_arrays("spark_overlap({0}, {1})", BOOLEAN),
    "array_join": _array_join,
    "array_repeat": _array_repeat,
    "slice": _slice,
    "sequence": _sequence,
    "flatten": _flatten,
    "map_keys": _map_part("map_keys({0})", lambda kind: pa.list_(kind.key_type)),
    "map_values": _map_part("map_values({0})", lambda kind: pa.list_(kind.item_type)),
    "map_entries": _map_part("map_entries({0})", _entries),
    "map_contains_key": _map_contains,
    "map_from_arrays": _map_from_arrays,
    "map_from_entries": _map_from_entries,
    "to_json": _to_json,
    "get_json_object": _get_json_object,
    "json_array_length": _json_length,
}


def _transform(kind: pa.DataType, body: pa.DataType) -> tuple[str, pa.DataType]:
    return "list_transform({0}, {1})", pa.list_(body)


def _filter(kind: pa.DataType, body: pa.DataType) -> tuple[str, pa.DataType]:
    return "list_filter({0}, {1})", kind


# Functions of an array and a lambda, whose parameters are an element and its position from 0.
LAMBDAS: Mapping[str, Callable[[pa.DataType, pa.DataType], tuple[str, pa.DataType]]] = {
    "transform": _transform,
    "filter": _filter,
    "exists": lambda kind, body: ("spark_any(list_transform({0}, {1}))", BOOLEAN),
    "forall": lambda kind, body: ("NOT spark_any(list_transform(list_transform({0}, {1}), lambda b: NOT b))", BOOLEAN),
}
LAMBDA_CONDITIONS = ("filter", "exists", "forall")
