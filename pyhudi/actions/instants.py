"""New instants of a table: their times, drawn as its options say, and their requested files. Hold the lock.

Source: docs/formats/timeline.md, "Instant times", "Completion times", "Steps of an instant".
"""

from __future__ import annotations

from pyhudi.actions.action import ActionContext
from pyhudi.model.instant import ActionKind, Instant
from pyhudi.timeline.instant_time import InstantTimes
from pyhudi.transaction.instants import TimelineWriter

__all__ = ["draw_completion_time", "draw_time", "instant_times", "request"]


def instant_times(context: ActionContext) -> InstantTimes:
    """Times for this table; the expected skew of clocks is the lock provider's unless the caller gave one."""
    options = context.options
    given = "hoodie.time.generator.max_expected_clock_skew_ms" in options.explicit
    return InstantTimes(
        context.clock,
        context.meta.config.timeline_zone,
        context.lock,
        options.max_clock_skew_ms if given else None,
        options.lock.wait_timeout_s,
    )


def draw_time(now: ActionContext) -> str:
    """The requested time of a new instant. `now`: the table as read under the lock."""
    return instant_times(now).draw(now.meta.timeline.latest_time)


def draw_completion_time(instant: Instant, now: ActionContext, *, after: str | None = None) -> str:
    """The completion time of an inflight instant, later than all times on the timeline, and than `after`. `now` as in
    `draw_time`.
    """
    latest = max(filter(None, (instant.requested_time, now.meta.timeline.latest_time, after)))
    return instant_times(now).draw_completion(latest)


def request(action: ActionKind, body: bytes, now: ActionContext) -> Instant:
    """A new instant with its requested file; `body` is the plan of a table service. `now` as in `draw_time`."""
    return TimelineWriter(now.meta.storage, now.meta.config).request(draw_time(now), action, body)
