"""A user's key generator, named by its class: "my_package.keys:HashedKey".

Its answers are checked before they reach the table: two string arrays as long as the batch, no nulls, no empty keys, no
path that leaves the table's folder.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import KeyGenError
from pyhudi.formats.damage import check_text_column
from pyhudi.keygen.base import KeyColumns, UserKeyGenerator
from pyhudi.keygen.partition_path import place
from pyhudi.keygen.settings import KeySettings

__all__ = ["UserKey"]


@dataclass(frozen=True, slots=True)
class UserKey:
    """Wraps the user's instance."""

    type_name: str
    generator: UserKeyGenerator

    @classmethod
    def make(cls, name: str, user_class: type, settings: KeySettings) -> UserKey:
        """Make the instance. Raises KeyGenError when the class does not have the shape of UserKeyGenerator."""
        try:
            if hasattr(user_class, "from_options"):
                generator = user_class.from_options(dict(settings.options))
            else:
                generator = user_class(record_fields=settings.record_fields, partition_fields=settings.partition_fields)
        except TypeError as error:
            raise KeyGenError(
                f"Key generator {name} can't be made: {error}. Give the class a class method from_options(options), or "
                f"a constructor that takes record_fields and partition_fields (tuples of names)."
            ) from error
        if not callable(getattr(generator, "columns", None)):
            raise KeyGenError(
                f"Key generator {name} has no method columns(batch) -> KeyColumns; see docs/key-generators.md."
            )
        return cls(name, generator)

    @property
    def input_columns(self) -> tuple[str, ...]:
        """The `input_columns` of the user's class; () if it has none, so that it gets all columns."""
        return tuple(getattr(self.generator, "input_columns", ()))

    def columns(self, batch: pa.RecordBatch, *, partition_id: int = 0, first_row: int = 0) -> KeyColumns:
        answer = self.generator.columns(batch)
        key = self._check_column(getattr(answer, "record_key", None), "record_key", batch.num_rows, first_row)
        path = self._check_column(getattr(answer, "partition_path", None), "partition_path", batch.num_rows, first_row)
        if batch.num_rows and pc.min(pc.binary_length(key)).as_py() == 0:
            row = first_row + pc.index(pc.binary_length(key), 0).as_py()
            raise KeyGenError(f"Key generator {self.type_name} gave an empty record key for row {row}.")
        encoded = path.dictionary_encode()
        place(encoded.indices, cast("list[str]", encoded.dictionary.to_pylist()), "", self.type_name, first_row)
        return KeyColumns(key, path)

    def _check_column(self, column: object, name: str, rows: int, first_row: int) -> pa.Array:
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        if not isinstance(column, pa.Array) or len(column) != rows:
            shape = f"{len(column)} values" if isinstance(column, pa.Array) else type(column).__name__
            raise KeyGenError(
                f"Key generator {self.type_name}: {name} must be an Arrow string array with {rows} values, "
                f"one per row; found {shape}."
            )
        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            raise KeyGenError(f"Key generator {self.type_name}: {name} has type {column.type}, expected string.")
        if column.null_count:
            row = first_row + pc.index(column.is_null(), True).as_py()
            raise KeyGenError(f"Key generator {self.type_name} gave no {name} (null) for row {row}.")
        check_text_column(name, column, first_row)
        return column.cast(pa.string())
