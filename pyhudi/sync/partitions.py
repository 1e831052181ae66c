"""Values of partition columns from partition paths, by Hudi's extractors, and from a metastore's partition names.

    2026/10/01   →  ("2026-10-01",)     SinglePart, SlashEncodedDay        p=x  →  ("x",)    HiveStyle
    y=2026/m=10  →  ("2026", "10")      MultiPartKeys

An encoded value remains encoded, as in Hudi; null is `__HIVE_DEFAULT_PARTITION__`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial

from pyhudi.errors import ConfigError
from pyhudi.model.keys import HIVE_DEFAULT_PARTITION
from pyhudi.model.options.catalogs.syncing import key_of_sync
from pyhudi.model.table_config import TableConfig
from pyhudi.sync.catalog import PartitionValues

__all__ = ["extractor_for", "values_by_path", "values_of_name"]

_ESCAPED = re.compile("%([0-9A-Fa-f]{2})")


def extractor_for(fields: Sequence[str], config: TableConfig) -> str:
    """The extractor that Hudi infers for a table."""
    if not fields:
        return "NonPartitionedExtractor"
    if len(fields) > 1:
        return "MultiPartKeysValueExtractor"
    return "HiveStylePartitionValueExtractor" if config.hive_style_partitioning else "SinglePartPartitionValueExtractor"


def values_by_path(paths: Sequence[str], extractor: str, fields: Sequence[str]) -> dict[str, PartitionValues]:
    """Partition path → its values.

    Raises: ConfigError for a path that the extractor can't parse, or without one value for each field, and for
            two paths with the same values.
    """
    extract = _EXTRACTORS[extractor]
    values = {path: _checked(path, extract(path), extractor, fields) for path in paths}
    if len(set(values.values())) < len(values):
        path_of: dict[PartitionValues, str] = {}
        for path, one in values.items():
            if one in path_of:
                raise ConfigError(
                    f"The partitions {path_of[one]!r} and {path!r} both have the value {'/'.join(one)!r} by "
                    f"{extractor}. Name another extractor by {key_of_sync('extractor')}."
                )
            path_of[one] = path
    return values


def _checked(path: str, values: Sequence[str] | None, extractor: str, fields: Sequence[str]) -> PartitionValues:
    if values is not None and len(values) == len(fields) and all(values):
        return tuple(values)
    raise ConfigError(
        f"The partition path {path!r:.200} has no value for each of {', '.join(fields) or 'no fields'} by {extractor}. "
        f"Name another extractor by {key_of_sync('extractor')}, or the columns by {key_of_sync('partition_fields')}."
    )


def _multiple(path: str) -> Sequence[str]:
    return [_value(part) for part in path.split("/")] if path else ()


def _value(part: str) -> str:
    """The value without `name=`; it may contain `=`."""
    name, equals, value = part.partition("=")
    return value if equals else name


def _hive_style(path: str) -> Sequence[str] | None:
    return (path.partition("=")[2],) if "=" in path else None


def _single(path: str) -> Sequence[str]:
    return (path.replace("/", "-"),)


def _date(parts: int, pattern: str, path: str) -> Sequence[str] | None:
    numbers = [_value(part) for part in path.split("/")]
    if numbers == [HIVE_DEFAULT_PARTITION]:
        return numbers
    if len(numbers) != parts or not all(number.isascii() and number.isdigit() for number in numbers):
        return None
    try:
        return (datetime(*map(int, numbers)).strftime(pattern),)  # type: ignore[arg-type]
    except ValueError:
        return None


_EXTRACTORS: Mapping[str, Callable[[str], Sequence[str] | None]] = {
    "MultiPartKeysValueExtractor": _multiple,
    "SinglePartPartitionValueExtractor": _single,
    "HiveStylePartitionValueExtractor": _hive_style,
    "SlashEncodedDayPartitionValueExtractor": partial(_date, 3, "%Y-%m-%d"),
    "SlashEncodedHourPartitionValueExtractor": partial(_date, 4, "%Y-%m-%d-%H"),
    "NonPartitionedExtractor": lambda path: (),
}


def values_of_name(name: str) -> PartitionValues:
    """The values in a metastore's name of a partition, `y=2026/m=10`, in which special characters are %XX."""
    return tuple(_ESCAPED.sub(lambda code: chr(int(code[1], 16)), _value(part)) for part in name.split("/"))
