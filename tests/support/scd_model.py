"""Change events, and the rows that they make: a model that sorts all events and goes through them one by one."""

from __future__ import annotations

from typing import Any

__all__ = ["Event", "history_of", "newest_of"]

Event = tuple[int, int, str, int, bool]  # key, tracked column, another column, sequence value, is it a delete?


def history_of(events: list[Event]) -> list[tuple[Any, ...]]:
    """The rows of SCD type 2: each event, in order, opens a row, goes on with it, or closes it."""
    rows: list[tuple[Any, ...]] = []
    for key in {event[0] for event in events}:
        current: tuple[Any, ...] | None = None
        for _, a, b, moment, is_delete in sorted((e for e in events if e[0] == key), key=lambda e: e[3]):
            if current is not None and not is_delete and current[1] == a:
                current = (key, a, b, current[3])
                continue
            if current is not None:
                rows.append((*current, moment))
            current = None if is_delete else (key, a, b, moment)
        if current is not None:
            rows.append((*current, None))
    return sorted(rows, key=repr)


def newest_of(events: list[Event]) -> list[tuple[Any, ...]]:
    """The rows of SCD type 1."""
    newest = {event[0]: event for event in sorted(events, key=lambda e: e[3])}
    return sorted(event[:4] for event in newest.values() if not event[4])
