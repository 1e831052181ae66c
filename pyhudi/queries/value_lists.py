"""Lists of values to compare a column with: `IN`, and the many comparisons that mean the same.

A list is one look into a hash table for each row, however long it is; a comparison is a pass over all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.model.predicate import Compare, In, Not, Operand, Predicate
from pyhudi.model.predicate.tree import Value

__all__ = ["list_values", "merged_lists"]

_FEWEST_MERGED = 16  # comparisons of one column; fewer are as fast, and stay as they were written


def merged_lists(children: tuple[Predicate, ...], negated: bool) -> tuple[Predicate, ...]:
    """Terms of an OR with `a = 1`, `a = 2`, `a IN (3)` as one `a IN (1, 2, 3)`; negated, of an AND with `a <> 1`, ...

    The list is where its first term was.
    """
    lists: dict[Operand, list[In]] = {}
    for child in children:
        found = _as_list(child, negated)
        if found is not None:
            lists.setdefault(found.column, []).append(found)
    merged = {column: _merged(parts) for column, parts in lists.items() if len(parts) >= _FEWEST_MERGED}
    if not merged:
        return children
    out: list[Predicate] = []
    for child in children:
        found = _as_list(child, negated)
        if found is None or found.column not in lists or len(lists[found.column]) < _FEWEST_MERGED:
            out.append(child)
        elif found.column in merged:
            whole = merged.pop(found.column)
            out.append(Not(whole) if negated else whole)
    return tuple(out)


def _as_list(term: Predicate, negated: bool) -> In | None:
    match term:
        case Compare(column, op, value) if op == ("<>" if negated else "="):
            return In(column, (value,))
        case In() if not negated:
            return term
        case Not(In() as inner) if negated:
            return inner
    return None


def _merged(parts: Sequence[In]) -> In:
    values = tuple(value for part in parts for value in part.values)
    return In(parts[0].column, values, any(part.has_null for part in parts))


def list_values(values: Sequence[Value], kind: pa.DataType) -> pa.Array:
    """The values as an array of the column's type, for `isin`; those that no row can have are left out.

    Args:    values: as `bind` made them fit, without null and not-a-number.
    """
    if pa.types.is_floating(kind):
        # The kernel parts -0.0 from 0.0.
        zeros = [-0.0, 0.0] if any(value == 0 for value in values) else []
        return _exact(pa.array([*values, *zeros], pa.float64()), kind)
    if pa.types.is_timestamp(kind):
        return _exact(pa.array(list(values), pa.timestamp("us", kind.tz)), kind)
    if pa.types.is_decimal(kind):
        return pa.array([Decimal(value) for value in values], kind)
    if pa.types.is_fixed_size_binary(kind):
        return pa.array([value for value in values if len(value) == kind.byte_width], kind)
    return pa.array(list(values), kind)


def _exact(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """The values that the type can hold as they are."""
    if values.type == kind:
        return values
    narrow = values.cast(kind, safe=False)
    return narrow.filter(pc.equal(narrow.cast(values.type, safe=False), values))
