"""Which of the caller's merger classes stands for a table's strategy id.

Class paths come from the caller's options alone. A table says an id, never a class: opening a table imports nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from pyhudi.errors import ConfigError
from pyhudi.registry import Registry

if TYPE_CHECKING:
    from pyhudi.merge.custom import Merger, RowMerger

    _MergerClass: TypeAlias = type[Merger] | type[RowMerger]

__all__ = ["find_merger", "merger_class"]

_MERGERS: Registry[_MergerClass] = Registry(kind="record merger", entries={})


def find_merger(paths: Sequence[str], strategy_id: str) -> str | None:
    """The first path whose class has this `strategy_id` (capitals don't matter), None when none has.

    Paths without ":" are Java classes, which other engines run; they are passed over. Raises ConfigError for a Python
    class that can't be imported or has no strategy id.
    """
    for path in paths:
        if ":" in path and str(merger_class(path).strategy_id).lower() == strategy_id.lower():
            return path
    return None


def merger_class(path: str) -> _MergerClass:
    """The class behind "module:Class". Raises ConfigError when it can't be imported or is no merger."""
    found = _MERGERS.load(path)
    if not isinstance(getattr(found, "strategy_id", None), str) or not callable(getattr(found, "merge", None)):
        raise ConfigError(
            f"{path} is no record merger: expected a class with the text strategy_id (a UUID) and a method "
            f"merge(older, newer, context); see docs/merging.md."
        )
    return found
