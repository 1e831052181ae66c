"""PathColumns: the values that the path of a partition gives to its columns, and the partitions that it skips.

As in real Hudi, a partition column has the path's value wherever the path gives it exactly, even if the file has
another: a global index that leaves a key in its partition stores the new value in the file, and "" is stored with null
in the default partition. So the rows of a query agree with the partitions that it skips. Where a path is ambiguous
(values with slashes, formatted times, floating point, columns inside structs) the file's value counts and no partition
is skipped. Source: docs/formats/keys.md, "Partition paths", "Custom", "Times", "Automatic keys", "Text of values".
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from datetime import date

import pyarrow as pa

from pyhudi.expressions.predicates import Column, Predicate, columns_of
from pyhudi.expressions.statistics.ranges import ValueRange, may_match
from pyhudi.keygen.parse import partition_values, split_partition_path
from pyhudi.keygen.partition_path import url_decode
from pyhudi.model.keys import HIVE_DEFAULT_PARTITION, OLD_DEFAULT_PARTITION
from pyhudi.model.table_config import TableConfig
from pyhudi.queries.schema import columns_from_path
from pyhudi.schema.casts import cast

__all__ = ["PARTITION_PATH_COLUMN", "PathColumns", "PathValues"]

PARTITION_PATH_COLUMN = Column(("_hoodie_partition_path",))
PathValues = tuple[tuple[str, str | None], ...]  # column → text that casts to its type, None for null
_WHOLE_NUMBER = re.compile(r"0|-?[1-9]\d{0,18}", re.ASCII)
_DAY = re.compile(r"\d{4}([-/])\d\d\1\d\d")


class PathColumns:
    """The partition columns of a schema whose values are in paths. The table's properties are read once.

    Args:    schema: fields that it lacks are left out.
    """

    def __init__(self, config: TableConfig, schema: pa.Schema) -> None:
        self._fields = config.partition_fields
        self._is_hive_style, self._is_encoded = config.hive_style_partitioning, config.url_encode_partitioning
        self._has_slash_dates = config.slash_separated_dates
        self._only_in_path = frozenset(columns_from_path(config))
        self._has_old_default = not config.format.has_hive_default_partition
        kinds = config.partition_field_types or ("",) * len(self._fields)
        generator = (config.key_generator or "").upper()
        # The path may hold a formatted time (below version 8 nothing says whether it does), not the column's value.
        holds_time = [
            kind.upper() == "TIMESTAMP" or (not kind and generator in ("TIMESTAMP", "CUSTOM")) for kind in kinds
        ]
        self._types = [
            None if is_time else _type_of(schema, field)
            for field, is_time in zip(self._fields, holds_time, strict=False)
        ]
        self._names = frozenset(schema.names)

    def _tells_of(self, columns: Iterable[Column]) -> bool:
        """True if a path may have the value of one of these columns."""
        in_path = {PARTITION_PATH_COLUMN, *(Column((field,)) for field in self._fields)}
        return not in_path.isdisjoint(columns)

    def skipped(self, partitions: Iterable[str], predicate: Predicate) -> tuple[str, ...]:
        """The partitions none of whose rows can pass, by their paths."""
        if not self._tells_of(columns_of(predicate)) and may_match(predicate, {}):
            return ()
        return tuple(path for path in partitions if not may_match(predicate, self.ranges(path)))

    def values(self, partition_path: str) -> PathValues:
        """The columns whose value in this partition must come from the path: the files lack it, or differ by design.

        Raises KeyGenError when a table has its partition columns in the path only and this path can't be divided.
        """
        values = dict(self._values_only_there(partition_path)) if self._only_in_path else {}
        for name, text, kind in self._parsed(partition_path):
            if text is None and _is_text(kind):
                values[name] = None  # "" is stored there with null
        return tuple((name, text) for name, text in values.items() if name in self._names)

    def parsed(self, partition_path: str) -> PathValues:
        """The columns whose value the path gives. Files hold the same, except for keys that a global index left in
        their partition when their own value changed.
        """
        return tuple((name, text) for name, text, _ in self._parsed(partition_path))

    def ranges(self, partition_path: str) -> dict[Column, ValueRange]:
        """Ranges of the partition columns (and of the meta column with the path) in one partition."""
        ranges = {PARTITION_PATH_COLUMN: ValueRange(partition_path, partition_path, may_be_null=False)}
        for name, text, kind in self._parsed(partition_path):
            if text is None:
                ranges[Column((name,))] = ValueRange(only_null=True)
            else:
                value = cast(pa.array([text], pa.string()), kind)[0].as_py()
                ranges[Column((name,))] = ValueRange(value, value, may_be_null=False)
        return ranges

    def _values_only_there(self, partition_path: str) -> Iterator[tuple[str, str | None]]:
        """The columns that the files lack, with the texts of their values."""
        texts = partition_values(
            partition_path,
            self._fields,
            self._is_hive_style,
            self._is_encoded,
            slash_dates=self._has_slash_dates,
            old_default=self._has_old_default,
        )
        for field, text in zip(self._fields, texts, strict=True):
            if field in self._only_in_path:
                yield field, text

    def _parsed(self, partition_path: str) -> Iterator[tuple[str, str | None, pa.DataType]]:
        """Partition columns, their texts, None for the default partition, and their types; only exact ones."""
        fields = self._fields
        segments = partition_path.split("/") if len(fields) > 1 else [partition_path]
        if len(segments) != len(fields):
            return
        is_hive_style = [segment.startswith(f"{field}=") for segment, field in zip(segments, fields, strict=True)]
        if not all(is_hive_style) if self._is_hive_style else any(is_hive_style):
            return
        texts = split_partition_path(partition_path, fields, self._is_hive_style) or ()
        for field, kind, text in zip(fields, self._types, texts, strict=False):
            if kind is None:
                continue
            if text == HIVE_DEFAULT_PARTITION:
                yield field, None, kind
                continue
            if text == OLD_DEFAULT_PARTITION and self._has_old_default:
                continue  # rows without a value, or with this text as the value
            if self._has_slash_dates and len(fields) == 1 and _is_text(kind):
                if not _DAY.fullmatch(text):
                    continue  # the value may contain slashes
                text = text.replace("/", "-")
            exact = _exact(url_decode(text) if self._is_encoded else text, kind)
            if exact is not None:
                yield field, exact, kind


def _type_of(schema: pa.Schema, name: str) -> pa.DataType | None:
    at = schema.get_field_index(name)
    return None if at < 0 else schema.field(at).type


def _is_text(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_string(data_type) or pa.types.is_large_string(data_type))


def _exact(text: str, data_type: pa.DataType) -> str | None:
    """The text as Arrow casts it to the type; None if the column may hold another value than the path."""
    if _is_text(data_type):
        return text
    if pa.types.is_integer(data_type) and _WHOLE_NUMBER.fullmatch(text):
        half = 2 ** (data_type.bit_width - 1)
        return text if -half <= int(text) < half else None
    if pa.types.is_boolean(data_type) and text in ("true", "false"):
        return text
    if pa.types.is_date(data_type) and _DAY.fullmatch(text):
        with contextlib.suppress(ValueError):  # no such day
            return date.fromisoformat(text.replace("/", "-")).isoformat()
    return None
