"""Instant times that increase across all processes that write to a table.

A time is drawn under the table's lock, and the lock is held until every machine's clock must have passed it (the
greatest expected difference between two clocks): the next writer, on any machine, draws a greater one.
Source: docs/formats/timeline.md, "Instant times", "Completion times"; Hudi's "TrueTime".
"""

from __future__ import annotations

from datetime import datetime, timezone, tzinfo

from pyhudi.locks import LockProvider, hold
from pyhudi.model.instant import format_instant_time, next_instant_time
from pyhudi.storage.clock import Clock

__all__ = ["InstantTimes"]


class InstantTimes:
    """Draws requested and completion times for one writer.

    Args: `zone`: the timeline's zone, None for the machine's. `lock`: the table's lock; it is taken to draw a time
    unless this provider holds it already; None when the caller excludes others otherwise. `skew_ms`: greatest expected
    difference between two machines' clocks, in milliseconds; None takes the lock provider's default (1 in one process,
    else 200).
    """

    def __init__(
        self,
        clock: Clock,
        zone: tzinfo | None = None,
        lock: LockProvider | None = None,
        skew_ms: int | None = None,
        lock_timeout_s: float = 60.0,
    ) -> None:
        self._clock, self._zone, self._lock = clock, zone, lock
        if skew_ms is None:
            skew_ms = lock.default_skew_ms if lock is not None else 1
        self._skew_ms = skew_ms
        self._lock_timeout_s = lock_timeout_s
        self._last = ""

    def draw(self, after: str | None = None) -> str:
        """Draw a new time of 17 digits, greater than all times that this object drew and than `after`.

        `after`: the latest time on the timeline (`Timeline.latest_time`), read under the lock. If the clock is behind
        it (set back, or in a repeated daylight-saving hour), the time one millisecond later is used.
        Raises LockTimeout; TableError when an instant on the timeline is not a time, so that no time can follow it.
        """
        if self._lock is None or self._lock.is_held:
            return self._draw(after)
        with hold(self._lock, self._lock_timeout_s):
            return self._draw(after)

    def draw_completion(self, after: str) -> str:
        """Draw a completion time, greater than `after` (the requested time, or the latest on the timeline).

        The wait comes before publication: when the completed file appears, every clock has passed its time.
        """
        return self.draw(after)

    def _draw(self, after: str | None) -> str:
        now_ms = self._clock.now_ms()
        moment = datetime.fromtimestamp(now_ms // 1000, timezone.utc).replace(microsecond=now_ms % 1000 * 1000)
        time = format_instant_time(moment, self._zone)
        floor = max(self._last, after or "")
        if time <= floor:
            time = next_instant_time(floor)
        self._clock.sleep_s(self._skew_ms / 1000)
        self._last = time
        return time
