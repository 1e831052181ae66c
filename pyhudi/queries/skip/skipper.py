"""Skipper: one kind of statistics or index of the metadata table that finds slices which a query need not open.

Skippers read the metadata table and may raise any HudiError: `skip.py` calls them, and turns an error into "nothing
skipped". A new kind is a class with this protocol, and its place in `skip.SKIPPERS`.
Source: docs/architecture.md, "How a table is read".
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from pyhudi.expressions.predicates import Predicate
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.file_group import FileGroupId
from pyhudi.queries.read_slice import ReadSlice

__all__ = ["Answer", "SkipRequest", "Skipper", "path_columns"]


@dataclass(frozen=True, slots=True)
class SkipRequest:
    """The filter of a query, and the metadata table that may show which slices have no row that passes it.

    `predicate`: bound to `schema`. `keys`: the record keys of all rows that can pass, None if the filter does not name
    them. `is_newest`: the query reads the newest state, and the metadata table describes its rows. `groups`: all file
    groups of the table; None where indexes of rows must not be used.
    """

    table: MetadataTable
    predicate: Predicate
    schema: pa.Schema
    keys: frozenset[str] | None
    is_newest: bool
    groups: Collection[FileGroupId] | None


@dataclass(frozen=True, slots=True)
class Answer:
    """`may_match`: for each slice, True if it may have a row that passes. `is_final`: later skippers are not called,
    because all remaining slices have such rows.
    """

    may_match: Sequence[bool]
    is_final: bool = False


class Skipper(Protocol):
    """Finds slices that a query need not open."""

    @property
    def name(self) -> str:
        """The name that `Scan.explain` shows."""
        ...

    def ask(self, request: SkipRequest, slices: Sequence[ReadSlice]) -> Answer | None:
        """Decide which slices may match; None if the metadata table can't tell.

        Raises: HudiError, when the metadata table can't be read.
        """
        ...


def path_columns(slices: Sequence[ReadSlice]) -> dict[str, Collection[str]]:
    """Partition path → the columns whose values come from the path, so that statistics of files don't apply to them."""
    columns = dict[str, Collection[str]]()
    for read in slices:
        path = read.file_slice.group.partition_path
        if path not in columns:
            columns[path] = read.from_path
    return columns
