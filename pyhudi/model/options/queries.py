"""Options of reads.

Source: Hudi's documented keys; sides taken are in docs/compatibility.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.model.options.declare import option, row
from pyhudi.model.options.spec import ON_READ, ON_READ_AND_WRITE

__all__ = ["METADATA", "SCHEMA_HISTORY", "QueryOptions"]

METADATA = "hoodie.metadata.enable"

SCHEMA_HISTORY = row(
    "hoodie.schema.on.read.enable",
    False,
    "Reading follows the schema history of a table that has one, and warns of false. Writing with true is refused.",
    scopes=ON_READ_AND_WRITE,
)


@dataclass(frozen=True)  # no slots: ReadOptions has several bases
class QueryOptions:
    """`as_of`: instant time, timestamp or date as text, None = now."""

    query_type: str = option(
        "hoodie.datasource.query.type",
        "snapshot",
        "What a read returns. On copy-on-write tables read_optimized is the same as snapshot.",
        aliases=("hoodie.datasource.view.type",),
        choices=("snapshot", "read_optimized"),
        later=("incremental",),
        scopes=ON_READ,
    )
    as_of: str | None = option(
        "as.of.instant", None, "Read the table as it was then: an instant time, a timestamp or a date.", scopes=ON_READ
    )
    use_metadata: bool = option(
        METADATA,
        True,
        "Queries take files and column statistics from the metadata table, if it is up to date. Writes take it out.",
        scopes=ON_READ_AND_WRITE,
    )
