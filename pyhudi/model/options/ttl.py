"""TtlOptions: when partitions are too old to keep, typed."""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.errors import ConfigError
from pyhudi.model.options.values import Values

__all__ = ["KEEP_BY_CREATION_TIME", "KEEP_BY_TIME", "TtlOptions", "ttl_options"]

KEEP_BY_TIME = "KEEP_BY_TIME"
KEEP_BY_CREATION_TIME = "KEEP_BY_CREATION_TIME"

_CLASS = "hoodie.partition.ttl.strategy.class"
_STRATEGY_OF = {"KeepByTimeStrategy": KEEP_BY_TIME, "KeepByCreationTimeStrategy": KEEP_BY_CREATION_TIME}


@dataclass(frozen=True, slots=True)
class TtlOptions:
    """`days_retained` 0 or less: nothing expires. `partitions`: those that may expire; () for all of them."""

    inline: bool = False
    strategy: str = KEEP_BY_TIME
    days_retained: int = -1
    partitions: tuple[str, ...] = ()
    partitions_max: int = 1000


def ttl_options(values: Values) -> TtlOptions:
    """The options of a write or of a call. Raises ConfigError for a strategy that is not Hudi's own."""
    return TtlOptions(
        inline=values.flag("hoodie.partition.ttl.inline"),
        strategy=_strategy(values),
        days_retained=values.integer("hoodie.partition.ttl.strategy.days.retain"),
        partitions=values.names("hoodie.partition.ttl.strategy.partition.selected"),
        partitions_max=values.integer("hoodie.partition.ttl.strategy.max.delete.partitions", minimum=1),
    )


def _strategy(values: Values) -> str:
    named = values.text(_CLASS)
    strategy = values.must("hoodie.partition.ttl.management.strategy.type")
    if named is None:
        return strategy
    found = _STRATEGY_OF.get(named.rpartition(".")[2])
    if found is None:
        raise ConfigError(
            f"{_CLASS}={named}: known are Hudi's own, {' and '.join(_STRATEGY_OF)}. For a rule of your own call "
            "HudiTable.delete_partitions with the partitions that it picks."
        )
    return found
