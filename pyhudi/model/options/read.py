"""ReadOptions: what one read asks for, typed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyhudi.caller_warnings import warn_caller
from pyhudi.model.options.memory import MemoryOptions, memory_options
from pyhudi.model.options.spec import Door, HudiOptionWarning
from pyhudi.model.options.table import resolve
from pyhudi.model.options.values import Values

__all__ = ["ReadOptions"]

_SCHEMA_HISTORY = "hoodie.schema.on.read.enable"


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Options of a read. `as_of`: instant time, timestamp or date as text, None = now. `merger_classes`: paths of the
    caller's mergers.
    """

    query_type: str = "snapshot"
    as_of: str | None = None
    merger_classes: tuple[str, ...] = ()
    memory: MemoryOptions = field(default_factory=MemoryOptions)

    @classmethod
    def parse(cls, options: Mapping[str, object], session: Mapping[str, object] | None = None) -> ReadOptions:
        """From option text; see `resolve` for spellings, warnings and errors."""
        values = Values(resolve(options, session, Door.READ))
        if values.given.get(_SCHEMA_HISTORY) == "false":
            warn_caller(
                f"No effect in this release: {_SCHEMA_HISTORY}=false. Columns of a table that has a schema history are "
                "matched by it.",
                HudiOptionWarning,
            )
        return cls(
            query_type=values.must("hoodie.datasource.query.type"),
            as_of=values.text("as.of.instant"),
            merger_classes=values.names("hoodie.write.record.merge.custom.implementation.classes"),
            memory=memory_options(values),
        )
