"""TtlOptions: when partitions are too old to keep.

Source: Hudi's documented keys; sides taken are in docs/compatibility.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyhudi.errors import ConfigError
from pyhudi.model.options.declare import Values, option, parse, row

__all__ = ["KEEP_BY_CREATION_TIME", "KEEP_BY_TIME", "TtlOptions", "ttl_options"]

KEEP_BY_TIME = "KEEP_BY_TIME"
KEEP_BY_CREATION_TIME = "KEEP_BY_CREATION_TIME"

_CLASS = row(
    "hoodie.partition.ttl.strategy.class",
    None,
    "The same by the name of Hudi's class, KeepByTimeStrategy or KeepByCreationTimeStrategy.",
)
_STRATEGY_OF = {"KeepByTimeStrategy": KEEP_BY_TIME, "KeepByCreationTimeStrategy": KEEP_BY_CREATION_TIME}


@dataclass(frozen=True, slots=True)
class TtlOptions:
    """`days_retained` 0 or less: nothing expires. `partitions`: those that may expire; () for all of them."""

    inline: bool = option(
        "hoodie.partition.ttl.inline", False, "Writes delete the partitions that have expired when they are complete."
    )
    strategy: str = option(
        "hoodie.partition.ttl.management.strategy.type",
        KEEP_BY_TIME,
        "What the age of a partition counts from: KEEP_BY_TIME its newest base file, KEEP_BY_CREATION_TIME its "
        "first commit.",
        choices=(KEEP_BY_TIME, KEEP_BY_CREATION_TIME),
        also=(_CLASS,),
    )
    days_retained: int = option(
        "hoodie.partition.ttl.strategy.days.retain", -1, "Days after which a partition expires; none does at 0 or less."
    )
    partitions: tuple[str, ...] = option(
        "hoodie.partition.ttl.strategy.partition.selected",
        (),
        "The partition paths that may expire; unset: all of them.",
    )
    partitions_max: int = option(
        "hoodie.partition.ttl.strategy.max.delete.partitions",
        1000,
        "Partitions that are deleted at once, the oldest ones first; the others go the next time.",
        minimum=1,
    )


def ttl_options(values: Values) -> TtlOptions:
    """The options of a write or of a call. Raises ConfigError for a strategy that is not Hudi's own."""
    options = parse(TtlOptions, values)
    named = values.text(_CLASS)
    if named is None:
        return options
    found = _STRATEGY_OF.get(named.rpartition(".")[2])
    if found is None:
        raise ConfigError(
            f"{_CLASS.key}={named}: known are Hudi's own, {' and '.join(_STRATEGY_OF)}. For a rule of your own call "
            "HudiTable.delete_partitions with the partitions that it picks."
        )
    return replace(options, strategy=found)
