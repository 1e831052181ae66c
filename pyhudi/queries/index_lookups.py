"""What the record index and secondary indexes share when a query looks something up in them.

Source: docs/formats/metadata-table.md, "Record index", "Secondary index".
"""

from __future__ import annotations

import pyarrow as pa

from pyhudi.metadata.partitions import MetadataKind
from pyhudi.metadata.record_places import file_ids, partition_paths
from pyhudi.model.file_group import FileGroupId
from pyhudi.model.predicate import Compare, In, Operand, Predicate
from pyhudi.model.predicate.tree import And, Or, Value

__all__ = ["groups_of_places", "only_values"]


def groups_of_places(records: pa.Table) -> frozenset[FileGroupId]:
    """The file groups that records of the record index name."""
    if not records.num_rows:
        return frozenset()
    places = records.column(MetadataKind.RECORD_INDEX.payloads[0]).combine_chunks()
    rows = zip(partition_paths(places).to_pylist(), file_ids(places).to_pylist(), strict=True)
    return frozenset(FileGroupId(str(path), str(file_id)) for path, file_id in rows)


def only_values(predicate: Predicate, column: Operand) -> tuple[Value, ...] | None:
    """The only values of a column with which a row can pass; None when there may be others."""
    match predicate:
        case Compare(found, "=", value) if found == column:
            return (value,)
        case In(found, values) if found == column:
            return tuple(value for value in values if value is not None)
        case And(children):
            known = [own for own in (only_values(child, column) for child in children) if own is not None]
            return min(known, key=len) if known else None
        case Or(children):
            each = [only_values(child, column) for child in children]
            if any(own is None for own in each):
                return None
            return tuple(dict.fromkeys(value for own in each if own is not None for value in own))
    return None
