"""ReadOptions: what one read asks for, typed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyhudi.caller_warnings import warn_caller
from pyhudi.model.options.catalogue import resolve
from pyhudi.model.options.damage import DamageOptions
from pyhudi.model.options.declare import Values, parse, part
from pyhudi.model.options.memory import MemoryOptions
from pyhudi.model.options.merging import MergerOptions
from pyhudi.model.options.queries import SCHEMA_HISTORY, QueryOptions
from pyhudi.model.options.spec import HudiOptionWarning, OptionScope

__all__ = ["ReadOptions"]


@dataclass(frozen=True)  # no slots: it has several bases
class ReadOptions(QueryOptions, MergerOptions):
    """Options of a read: those of its bases, the memory it may take, and what it does about damaged log files."""

    memory: MemoryOptions = part(MemoryOptions)
    damage: DamageOptions = part(DamageOptions)

    @classmethod
    def parse(cls, options: Mapping[str, object], session: Mapping[str, object] | None = None) -> ReadOptions:
        """From option text; see `resolve` for spellings, warnings and errors."""
        values = Values(resolve(options, session, OptionScope.READ))
        if values.given.get(SCHEMA_HISTORY.key) == "false":
            warn_caller(
                f"No effect in this release: {SCHEMA_HISTORY.key}=false. Columns of a table that has a schema history "
                "are matched by it.",
                HudiOptionWarning,
            )
        return parse(cls, values)
