"""Partitions as statements name them: `PARTITION (day = '2024-01-01', hour = 5)`.

Source: docs/formats/keys.md, "Partition paths".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow.compute as pc

from pyhudi.errors import ConfigError
from pyhudi.keygen.parse import split_partition_path
from pyhudi.keygen.partition_path import url_decode
from pyhudi.model.table_config import TableConfig
from pyhudi.sql.tokens import Reader
from pyhudi.table import HudiTable

__all__ = ["PartitionSpec", "matching_paths", "partition_spec"]

PartitionSpec = Mapping[str, str]
_NULL_PATH = "__HIVE_DEFAULT_PARTITION__"


def partition_spec(reader: Reader) -> PartitionSpec:
    """Read a list of columns and their values in parentheses; the cursor is after PARTITION."""
    spec: dict[str, str] = {}
    for part in reader.parts():
        name = part.identifier("a partition column")
        if not part.accept_symbol("=") and not part.accept_symbol("=="):
            raise part.error(f"{name} = value")
        if part.accept("NULL"):
            spec[name] = _NULL_PATH
        else:
            _ = part.accept("DATE") or part.accept("TIMESTAMP")
            spec[name] = part.value(f"a value for {name}")
        part.expect_end()
    return spec


def _path_values(config: TableConfig, path: str) -> tuple[str, ...] | None:
    """The values of the partition columns in a path; None for a path in another form."""
    fields = [name.partition(":")[0] for name in config.partition_fields]
    values = split_partition_path(path, fields, config.hive_style_partitioning)
    if values is None or not config.url_encode_partitioning:
        return values
    return tuple(url_decode(value) for value in values)


def matching_paths(table: HudiTable, specs: Sequence[PartitionSpec]) -> list[str]:
    """The paths of partitions with rows that match one of these specs, or of all partitions with rows.

    A spec may leave columns out.

    Raises: ConfigError for a column that the table is not partitioned by.
    """
    config = table.state().config
    fields = [name.partition(":")[0] for name in config.partition_fields]
    by_position = [_by_position(spec, fields, config) for spec in specs]
    partitions = table.inspect.partitions()
    partitions = partitions.filter(pc.greater(partitions.column("files"), 0))
    paths = []
    for path in map(str, partitions.column("partition_path").to_pylist()):
        values = _path_values(config, path)
        if not specs or (values is not None and any(_has_values(values, spec) for spec in by_position)):
            paths.append(path)
    return paths


def _has_values(values: Sequence[str], spec: Mapping[int, str]) -> bool:
    return all(values[place] == value for place, value in spec.items())


def _as_in_path(value: str, config: TableConfig) -> str:
    return value.replace("-", "/") if config.slash_separated_dates and len(config.partition_fields) == 1 else value


def _by_position(spec: PartitionSpec, fields: Sequence[str], config: TableConfig) -> dict[int, str]:
    places = {field.lower(): place for place, field in enumerate(fields)}
    unknown = [name for name in spec if name.lower() not in places]
    if unknown:
        raise ConfigError(
            f"SQL: PARTITION names {', '.join(unknown)}; the table {config.table_name} is partitioned by "
            f"{', '.join(fields) or 'nothing'}."
        )
    return {places[name.lower()]: _as_in_path(value, config) for name, value in spec.items()}
