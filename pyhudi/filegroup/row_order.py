"""The order of rows in new files: by columns in turn, or along a space-filling curve through them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import ConfigError
from pyhudi.filegroup.space_curves import bits_of, coordinates, hilbert_index, ordered_values, z_index

__all__ = ["RowOrder"]

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RowOrder:
    """A layout: LINEAR, ZORDER or HILBERT by `columns` (nested ones with dots). No columns: rows stay as they come.

    `sample_size`: curves by ranks in a sample of so many rows; None: by the values themselves.
    """

    columns: tuple[str, ...] = ()
    layout: str = "LINEAR"
    sample_size: int | None = None

    def check(self, schema: pa.Schema) -> None:
        """Raises ConfigError when rows of this schema can't be ordered so."""
        if self.columns:
            keys = self.keys(schema.empty_table())
            for column in keys.columns:
                ordered_values(column)
            self.positions(keys)

    def keys(self, rows: pa.Table) -> pa.Table:
        """The columns that decide, under plain names. Raises ConfigError when one is not there."""
        return pa.table(
            [_column(rows, name) for name in self.columns], names=[str(n) for n in range(len(self.columns))]
        )

    def positions(self, keys: pa.Table) -> Positions:
        """Row numbers in the order in which rows should be; equal ones stay as they are."""
        names = keys.column_names
        if self.layout == "LINEAR" or len(names) == 1:
            try:
                order = pc.sort_indices(keys, [(name, "ascending") for name in names])
            except (pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
                raise ConfigError(f"Rows can't be sorted by {', '.join(self.columns)}: {error}.") from error
            return np.asarray(order.to_numpy(), np.int64)
        bits = bits_of(len(names))
        axes = []
        for name in names:
            values = ordered_values(keys.column(name))
            axes.append(coordinates(values, bits, self._sample(values)))
        curve = hilbert_index if self.layout == "HILBERT" else z_index
        return np.argsort(curve(axes, bits), kind="stable")

    def _sample(self, values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64] | None:
        """Evenly spread rows: the same ones in every run."""
        if self.sample_size is None:
            return None
        step = max(1, len(values) // self.sample_size)
        return values[::step]


def _column(rows: pa.Table, path: str) -> pa.ChunkedArray:
    top, *rest = [path] if path in rows.column_names else path.split(".")
    if top not in rows.column_names:
        raise ConfigError(
            f"hoodie.clustering.plan.strategy.sort.columns names {path!r}, which the table doesn't have; its columns: "
            f"{', '.join(name for name in rows.column_names if not name.startswith('_hoodie_'))}."
        )
    column = rows.column(top)
    for name in rest:
        if not pa.types.is_struct(column.type) or column.type.get_field_index(name) < 0:
            raise ConfigError(f"hoodie.clustering.plan.strategy.sort.columns names {path!r}: no field {name!r} there.")
        column = pc.struct_field(column, name)
    # Sorting wants values; the few of a dictionary are spread out for it.
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column
