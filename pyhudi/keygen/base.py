"""KeyGenerator: the protocol, and the look-up of its columns in a batch.

A key generator gives every row a record key (who the row is) and a partition path (the folder it lives in). It is a
small frozen value that pickles, so that executors can use it, and it is pure: a row has the same key in any batch.
Source: docs/formats/keys.md, "Which generator", "Record keys", "Partition paths".
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Protocol, runtime_checkable

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import KeyGenError
from pyhudi.redaction import is_text

__all__ = ["BuiltInKey", "KeyColumns", "KeyGenerator", "UserKeyGenerator", "missing_field", "read_field", "top_level"]


@dataclass(frozen=True, slots=True)
class KeyColumns:
    """Keys of one batch: two string arrays as long as the batch, without nulls."""

    record_key: pa.Array
    partition_path: pa.Array


@runtime_checkable
class KeyGenerator(Protocol):
    """The interface of a key generator for the write path."""

    @property
    def type_name(self) -> str:
        """Name in the registry ("SIMPLE"), or "module:Class" for a user's class."""
        ...

    @property
    def input_columns(self) -> tuple[str, ...]:
        """Top-level columns that a batch must have; () if the generator can't say, and so needs all of them."""
        ...

    def columns(self, batch: pa.RecordBatch, *, partition_id: int = 0, first_row: int = 0) -> KeyColumns:
        """Return keys of the rows of `batch`.

        Args:    partition_id: number of the task's partition; first_row: rows of that partition before this batch.
                 Both matter to automatic keys and to row numbers in messages only.
        Raises:  KeyGenError when a row has no usable key or partition path.
        """
        ...


@runtime_checkable
class UserKeyGenerator(Protocol):
    """The interface of a user's class, named "my_package.keys:HashedKey" as the key generator class.

    It is made as `Class.from_options(options)` when it has that class method, else as
    `Class(record_fields=(...), partition_fields=(...))`, with the names as configured. The instance must pickle.
    """

    def columns(self, batch: pa.RecordBatch) -> KeyColumns:
        """Return keys of the rows of `batch`. A key depends on its row only: no counters, no clock, no randomness."""
        ...


class BuiltInKey:
    """Base of the generators of this package: columns from the two halves."""

    __slots__ = ()

    @property
    @abstractmethod
    def type_name(self) -> str: ...

    @property
    @abstractmethod
    def input_columns(self) -> tuple[str, ...]: ...

    @abstractmethod
    def record_key(self, batch: pa.RecordBatch, first_row: int = 0) -> pa.Array:
        """Return a string array without nulls. `first_row`: number of the first row, for messages."""

    @abstractmethod
    def partition_path(self, batch: pa.RecordBatch, first_row: int = 0) -> pa.Array:
        """Return a string array without nulls. `first_row`: number of the first row, for messages."""

    def columns(self, batch: pa.RecordBatch, *, partition_id: int = 0, first_row: int = 0) -> KeyColumns:
        return KeyColumns(self.record_key(batch, first_row), self.partition_path(batch, first_row))


def top_level(*field_lists: Iterable[str]) -> tuple[str, ...]:
    """Return top-level columns of dotted field names, each once, in order."""
    return tuple(dict.fromkeys(name.partition(".")[0] for fields in field_lists for name in fields))


def read_field(batch: pa.RecordBatch | pa.Table, path: str) -> pa.Array | None:
    """Read the column of a dotted field name, null where an enclosing struct is null; None if the schema lacks it."""
    first, *rest = path.split(".")
    index = batch.schema.get_field_index(first) if is_text(path) else -1
    if index < 0:
        return None
    column = batch.column(index)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    for name in rest:
        if not pa.types.is_struct(column.type) or column.type.get_field_index(name) < 0:
            return None
        column = pc.struct_field(column, name)
    return column


def missing_field(path: str, schema: pa.Schema, option: str) -> KeyGenError:
    """Return the error for a field that the data doesn't have."""
    near = get_close_matches(path, schema.names, n=1)
    spelled = [name for name in schema.names if name.lower() == path.lower()] or near
    hint = f" Did you mean {spelled[0]!r}?" if spelled else ""
    return KeyGenError(
        f"Key field {path!r} is not in the data.{hint} Columns: {', '.join(schema.names)}. "
        f"Field names are case-sensitive; correct {option} or add the column."
    )
