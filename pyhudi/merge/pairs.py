"""Choose the merger of pairs for a table, and combine a batch with itself.

Source: docs/formats/merging.md, "Within one batch".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from pyhudi.merge import combine
from pyhudi.merge.base import Place
from pyhudi.merge.combine import deletes_of, duplicate_key_rows, ordering_columns
from pyhudi.merge.custom_merge import CustomMerge
from pyhudi.merge.field_merge import FieldMerge
from pyhudi.merge.rules import MergeRules
from pyhudi.merge.versions import PairMerger, Versions, merge_versions
from pyhudi.model.keys import IS_DELETE, PARTITION_PATH, RECORD_KEY

__all__ = ["combine_input", "pair_merger"]


def pair_merger(rules: MergeRules) -> PairMerger:
    """Return the merger of matched pairs under these rules."""
    return FieldMerge(rules) if rules.merger is None else CustomMerge(rules)


def combine_input(table: pa.Table, rules: MergeRules, keys: Sequence[str] = (RECORD_KEY, PARTITION_PATH)) -> pa.Table:
    """Return one row per key of a batch, by `rules.for_input`, deletes included; "later" as in `combine`.

    Control columns (all but IS_DELETE) come from a key's latest row; a row that wins whole, as in the plain modes,
    keeps its own.
    """
    input_rules = rules.for_input
    if not input_rules.needs_pairs:
        return combine(table, input_rules.mode, input_rules.ordering_fields, keys)
    at, numbers = duplicate_key_rows(table, keys)
    if not len(at):
        return table
    rows = table.take(pa.array(at))
    ordering = ordering_columns(rows, input_rules.ordering_fields) if input_rules.by_ordering else []
    versions = Versions(rows, deletes_of(rows), tuple(ordering))
    _, merged = merge_versions(pa.array(numbers), versions, pair_merger(input_rules), Place.INPUT)
    rows = merged.rows
    if IS_DELETE in rows.column_names:
        where = rows.schema.get_field_index(IS_DELETE)
        rows = rows.set_column(where, rows.schema.field(where), pa.array(merged.is_delete))
    alone = np.ones(len(table), np.bool_)
    alone[at] = False
    return pa.concat_tables([table.filter(pa.array(alone)), rows])
