"""Random Arrow schemas and rows of the types that a Hudi table can hold."""

from __future__ import annotations

import datetime as dt
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

# A busy machine is no failure of what is tested.
RELAXED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

NAMES = st.text("abcXYZ_", min_size=1, max_size=6)

SCALARS = st.one_of(
    st.sampled_from(
        [
            pa.bool_(),
            pa.int32(),
            pa.int64(),
            pa.float32(),
            pa.float64(),
            pa.string(),
            pa.binary(),
            pa.date32(),
            pa.time32("ms"),
            pa.time64("us"),
            pa.timestamp("ms", "UTC"),
            pa.timestamp("us", "UTC"),
            pa.timestamp("ms"),
            pa.timestamp("us"),
        ]
    ),
    st.integers(1, 38).flatmap(lambda p: st.integers(0, p).map(lambda s: pa.decimal128(p, s))),
    st.integers(1, 20).map(pa.binary),
)


def fields(types: st.SearchStrategy[Any]) -> st.SearchStrategy[list[pa.Field]]:
    """One to four fields with different names."""
    return st.lists(st.tuples(NAMES, types, st.booleans()), min_size=1, max_size=4, unique_by=lambda f: f[0]).map(
        lambda made: [pa.field(name, data_type, nullable=nullable) for name, data_type, nullable in made]
    )


def nested(types: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    item = st.tuples(types, st.booleans())
    return st.one_of(
        item.map(lambda made: pa.list_(pa.field("element", made[0], nullable=made[1]))),
        item.map(lambda made: pa.map_(pa.string(), pa.field("value", made[0], nullable=made[1]))),
        fields(types).map(pa.struct),
    )


TYPES = st.recursive(SCALARS, nested, max_leaves=6)
SCHEMAS = fields(TYPES).map(pa.schema)


@st.composite
def tables(draw: st.DrawFn, schemas: st.SearchStrategy[pa.Schema] = SCHEMAS) -> pa.Table:
    """A table of up to three rows, with nulls only where the schema allows them."""
    schema = draw(schemas)
    rows = draw(st.lists(st.tuples(*(values(field) for field in schema)), max_size=3))
    columns = [pa.array([row[at] for row in rows], field.type) for at, field in enumerate(schema)]
    return pa.Table.from_arrays(columns, schema=schema)


def values(field: pa.Field) -> st.SearchStrategy[Any]:
    """Python values of a field, of the kind that pyarrow and fastavro both take."""
    plain = _values(field.type)
    return st.none() | plain if field.nullable else plain


def _values(data_type: pa.DataType) -> st.SearchStrategy[Any]:
    types = pa.types
    if types.is_struct(data_type):
        return st.fixed_dictionaries({child.name: values(child) for child in data_type.fields})
    if types.is_map(data_type):
        entries = st.dictionaries(st.text("ab", max_size=3), values(data_type.item_field), max_size=3)
        return entries.map(lambda made: list(made.items()))
    if types.is_list(data_type):
        return st.lists(values(data_type.value_field), max_size=3)
    if types.is_decimal(data_type):
        limit = 10**data_type.precision - 1
        return st.integers(-limit, limit).map(lambda n: Decimal(n).scaleb(-data_type.scale, _WIDE))
    if types.is_timestamp(data_type):
        zone = dt.timezone.utc if data_type.tz else None
        moments = st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30))
        cut = 1000 if data_type.unit == "ms" else 1
        return moments.map(lambda at: at.replace(microsecond=at.microsecond // cut * cut, tzinfo=zone))
    if types.is_time(data_type):
        cut = 1000 if data_type.unit == "ms" else 1
        return st.times().map(lambda at: at.replace(microsecond=at.microsecond // cut * cut))
    if types.is_fixed_size_binary(data_type):
        return st.binary(min_size=data_type.byte_width, max_size=data_type.byte_width)
    return _PLAIN[data_type]


_WIDE = Context(prec=76)
_PLAIN: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.bool_(): st.booleans(),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float32(): st.floats(width=32, allow_nan=False),
    pa.float64(): st.floats(allow_nan=False),
    pa.string(): st.text(max_size=5),
    pa.binary(): st.binary(max_size=5),
    pa.date32(): st.dates(),
}
