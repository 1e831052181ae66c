"""Options of a pipeline whose rows are change events, in the words of `apply_changes`. docs/apply-changes.md."""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.model.options.declare import option
from pyhudi.model.options.spec import Kind, OptionScope

__all__ = ["ApplyOptions"]

_STREAM = frozenset({OptionScope.STREAM})
_PREFIX = "hoodie.pyhudi.streamer.apply.changes."


@dataclass(frozen=True, slots=True)
class ApplyOptions:
    """Options of applying change events. `keys`: () where rows are rows."""

    keys: tuple[str, ...] = option(
        f"{_PREFIX}keys",
        (),
        "Rows are change events of these keys, and are applied to the table (docs/apply-changes.md).",
        Kind.NAMES,
        scopes=_STREAM,
    )
    sequence_by: str | None = option(
        f"{_PREFIX}sequence.by", None, "The column that orders the events of a key.", Kind.TEXT, scopes=_STREAM
    )
    deletes: str | None = option(
        f"{_PREFIX}as.deletes",
        None,
        "The condition of events that delete their key: `op = 'd'`.",
        Kind.TEXT,
        scopes=_STREAM,
    )
    scd_type: str = option(
        f"{_PREFIX}scd.type",
        "1",
        "1: the table has the newest row of each key. 2: all of them, with `__START_AT` and `__END_AT`.",
        choices=("1", "2"),
        scopes=_STREAM,
    )
    columns: tuple[str, ...] = option(
        f"{_PREFIX}column.list", (), "The columns that the table stores. Unset: all.", Kind.NAMES, scopes=_STREAM
    )
    except_columns: tuple[str, ...] = option(
        f"{_PREFIX}except.column.list", (), "Columns that the table does not store.", Kind.NAMES, scopes=_STREAM
    )
    tracked: tuple[str, ...] = option(
        f"{_PREFIX}track.history.column.list",
        (),
        "Type 2: the columns whose changes open a new row. Unset: all but the keys.",
        Kind.NAMES,
        scopes=_STREAM,
    )
    untracked: tuple[str, ...] = option(
        f"{_PREFIX}track.history.except.column.list",
        (),
        "Type 2: columns whose changes update the newest row.",
        Kind.NAMES,
        scopes=_STREAM,
    )
