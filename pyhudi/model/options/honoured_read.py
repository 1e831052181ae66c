"""Options of reading that this release honours. Source: Hudi's documented read keys."""

from __future__ import annotations

from pyhudi.model.options.row import honoured
from pyhudi.model.options.spec import Door, Kind, OptionSpec

__all__ = ["READ_OPTIONS"]

_READ = "Reading"

READ_OPTIONS: tuple[OptionSpec, ...] = (
    honoured(
        _READ,
        "hoodie.datasource.query.type",
        Kind.TEXT,
        "snapshot",
        "What a read returns. On copy-on-write tables read_optimized is the same as snapshot.",
        "hoodie.datasource.view.type",
        choices=("snapshot", "read_optimized"),
        later=("incremental",),
        doors=frozenset({Door.READ}),
    ),
    honoured(
        _READ,
        "as.of.instant",
        Kind.TEXT,
        None,
        "Read the table as it was then: an instant time, a timestamp or a date.",
        doors=frozenset({Door.READ}),
    ),
    honoured(
        _READ,
        "hoodie.schema.on.read.enable",
        Kind.FLAG,
        "false",
        "Reading follows the schema history of a table that has one, and warns of false. Writing with true is refused.",
        doors=frozenset({Door.READ, Door.WRITE}),
    ),
)
