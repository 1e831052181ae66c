"""Table services beside the batches of a stream or a pipeline: which they are, and what a batch leaves to them.

A batch plans a compaction or a clustering at its end. A thread executes the plans while the next batches are written;
whose thread, and what its errors do, say the callers. Source: docs/streaming.md, "Table services".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from pyhudi.actions.action import ActionContext
from pyhudi.model.options import WriteOptions
from pyhudi.services.clean.cleaning import clean_after_write
from pyhudi.services.cluster.calls import cluster_waiting
from pyhudi.services.compact.compaction import compact_waiting

__all__ = ["Service", "compacts_beside", "left_by_batches", "services_beside"]

Service: TypeAlias = Callable[[ActionContext], tuple[str, ...]]

_INLINE, _SCHEDULE_INLINE = "hoodie.compact.inline", "hoodie.compact.schedule.inline"
_CLEANS = "hoodie.clean.automatic"


def compacts_beside(options: WriteOptions) -> bool:
    """True if batches with these options leave compactions. Explicit inline compaction runs within them."""
    inline = _INLINE in options.explicit and options.compaction.inline
    return options.stream.async_compaction and not options.stream.disable_compaction and not inline


def services_beside(options: WriteOptions) -> tuple[Service, ...]:
    """The services to run, one after the other; each executes what is planned, and plans nothing."""
    services: list[Service] = []
    if options.table_type == "MERGE_ON_READ" and compacts_beside(options):
        services.append(compact_waiting)
    if options.clustering.async_enabled and not options.clustering.inline:
        services.append(cluster_waiting)
    if options.stream.async_clean and options.cleaning.automatic:
        services.append(clean_after_write)
    return tuple(services)


def left_by_batches(options: WriteOptions) -> dict[str, object]:
    """The options with which a batch leaves work to the services."""
    stream, compaction = options.stream, options.compaction
    left: dict[str, object] = {}
    if stream.disable_compaction:
        left |= {_INLINE: False, _SCHEDULE_INLINE: False}
    elif compacts_beside(options):
        left |= {_INLINE: False, _SCHEDULE_INLINE: compaction.inline or compaction.schedule_inline}
    if stream.async_clean:
        left[_CLEANS] = False
    return left
