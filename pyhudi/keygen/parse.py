"""Parsing record keys and partition paths into the values of their fields, as text.

Needed where a table stores only the path (dropped partition columns) and to prune partitions. Neither form escapes
enough to be parsed in every case; a path that does not fit its fields is an error, not a guess.
Source: docs/formats/keys.md, "Record keys", "Partition paths".
"""

from __future__ import annotations

from collections.abc import Sequence

from pyhudi.errors import KeyGenError
from pyhudi.keygen.partition_path import url_decode
from pyhudi.keygen.record_keys import EMPTY_PLACEHOLDER, NULL_PLACEHOLDER
from pyhudi.model.keys import HIVE_DEFAULT_PARTITION, OLD_DEFAULT_PARTITION

__all__ = ["partition_values", "record_key_values", "split_partition_path"]


def record_key_values(key: str, fields: Sequence[str]) -> tuple[str | None, ...]:
    """Return values of the key fields, None for null.

    A key without "," or without ":" is one plain value (docs/formats/keys.md, "Record keys"); but `f:v` with the
    table's only key field is split. Raises KeyGenError when the key does not have the fields.
    """
    if len(fields) == 1 and not key.startswith(f"{fields[0]}:"):
        return (key,)
    values: list[str | None] = []
    rest = key
    for number, field in enumerate(fields):
        prefix = f"{field}:"
        if not rest.startswith(prefix):
            raise KeyGenError(f"Record key {key!r} does not have the form {_form(fields)}, at {rest!r}.")
        rest = rest[len(prefix) :]
        if number + 1 == len(fields):
            value, rest = rest, ""
        else:
            end = rest.find(f",{fields[number + 1]}:")
            if end < 0:
                raise KeyGenError(f"Record key {key!r} does not have the form {_form(fields)}, at {rest!r}.")
            value, rest = rest[:end], rest[end + 1 :]
        values.append(None if value == NULL_PLACEHOLDER else "" if value == EMPTY_PLACEHOLDER else value)
    return tuple(values)


def _form(fields: Sequence[str]) -> str:
    return ",".join(f"{field}:..." for field in fields)


def partition_values(
    path: str,
    fields: Sequence[str],
    hive_style: bool,
    url_encoded: bool,
    *,
    slash_dates: bool = False,
    old_default: bool = False,
) -> tuple[str | None, ...]:
    """Return values of the partition fields from a partition path, None for the default partition.

    Args:    fields: names without ":TYPE"; slash_dates: "/" in the single field stands for "-" (slash-separated dates);
             old_default: `default` is null too, as below table version 5; from then on it is a value.
    Raises:  KeyGenError when the path can't be divided among the fields: a value has slashes and no encoding.
    """
    values = split_partition_path(path, fields, hive_style)
    if values is None:
        raise KeyGenError(
            f"Partition path {path!r} can't be divided among the partition fields {', '.join(fields)}: a value holds a "
            f"slash that is not URL-encoded. Read the columns from the files instead."
        )
    if slash_dates and len(values) == 1:
        values = (values[0].replace("/", "-"),)
    if url_encoded:
        values = tuple(map(url_decode, values))
    nulls = (HIVE_DEFAULT_PARTITION, OLD_DEFAULT_PARTITION) if old_default else (HIVE_DEFAULT_PARTITION,)
    return tuple(None if value in nulls else value for value in values)


def split_partition_path(path: str, fields: Sequence[str], hive_style: bool) -> tuple[str, ...] | None:
    """Return raw values, without `<field>=` in hive style; None when the path doesn't have one part per field."""
    if not fields:
        return () if path == "" else None
    if len(fields) == 1:
        return (_without_name(path, fields[0]),)
    if hive_style and path.startswith(f"{fields[0]}="):
        # Names mark the borders, so that values with slashes keep them.
        values, rest = [], path
        for field, following in zip(fields, [*fields[1:], None], strict=True):
            rest = rest[len(field) + 1 :]
            end = len(rest) if following is None else rest.find(f"/{following}=")
            if end < 0:
                return None
            values.append(rest[:end])
            rest = rest[end + 1 :]
        return tuple(values)
    segments = path.split("/")
    if len(segments) != len(fields):
        return None
    return tuple(_without_name(segment, field) for segment, field in zip(segments, fields, strict=True))


def _without_name(segment: str, field: str) -> str:
    return segment.removeprefix(f"{field}=")
