"""CommitOptions: what goes into commits beside their files, typed."""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.model.options.values import Values

__all__ = ["CommitOptions", "commit_options"]


@dataclass(frozen=True, slots=True)
class CommitOptions:
    """`rolling_keys`: keys of extra metadata that every commit carries on, found in one of the newest `lookback`."""

    allow_empty: bool = True
    rolling_keys: tuple[str, ...] = ()
    lookback: int = 10


def commit_options(values: Values) -> CommitOptions:
    """The options of a write or of a call of a service."""
    return CommitOptions(
        allow_empty=values.flag("hoodie.allow.empty.commit"),
        rolling_keys=values.names("hoodie.write.rolling.metadata.keys"),
        lookback=values.integer("hoodie.write.rolling.metadata.timeline.lookback.commits", minimum=1),
    )
