"""The table services that a complete write's options ask for, in Hudi's order.

A service is one row of AFTER_WRITE: its name and a function that runs it as the options ask and returns the completed
instants. An error here only causes a warning: the write is visible already and can't fail.
Source: docs/formats/writers.md, "Steps of a write".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from pyhudi.actions.action import ActionContext
from pyhudi.actions.result import WriteResult
from pyhudi.errors import WriteConflict
from pyhudi.listeners import notify_afterwards
from pyhudi.services.archive.archiving import archive_after_write
from pyhudi.services.clean.cleaning import clean_after_write
from pyhudi.services.cluster.calls import cluster_after_write
from pyhudi.services.compact.compaction import compact_after_write
from pyhudi.services.partition_ttl import expire_after_write
from pyhudi.warnings import warn_caller

__all__ = ["AFTER_WRITE", "serve_after_write", "served"]

AFTER_WRITE: Mapping[str, Callable[[ActionContext], tuple[str, ...]]] = {
    "clean": clean_after_write,
    "archiving": archive_after_write,
    "compaction": compact_after_write,
    "clustering": cluster_after_write,
    "partition ttl": expire_after_write,
}


def served(result: WriteResult, context: ActionContext) -> WriteResult:
    """The result of a complete write, after the services that its options want; `context` as in `serve_after_write`."""
    services, seconds = serve_after_write(context)
    return replace(result, services=services, seconds={**result.seconds, **seconds}) if services else result


def serve_after_write(context: ActionContext) -> tuple[Mapping[str, tuple[str, ...]], Mapping[str, float]]:
    """Run the services. `context`: the table as it was before the write.

    Returns: service → completed instants, for services with any; service → seconds.
    """
    # The checkpoint of a Streamer's batch and applied changes are in the table; services are no batches.
    stream = replace(context.options.stream, streamer_after=None, changes_after=None)
    options = replace(context.options, stream=stream)
    context = replace(context, options=options)
    instants_of: dict[str, tuple[str, ...]] = {}
    seconds: dict[str, float] = {}
    for name, service in AFTER_WRITE.items():
        started_s = context.clock.monotonic_s()
        instants = _served(name, service, context)
        if instants:
            instants_of[name], seconds[name] = instants, context.clock.monotonic_s() - started_s
    return instants_of, seconds


def _served(name: str, service: Callable[[ActionContext], tuple[str, ...]], context: ActionContext) -> tuple[str, ...]:
    try:
        with notify_afterwards():
            return service(context)
    except WriteConflict:
        return ()  # other processes are changing the table; the next write tries again
    except Exception as error:  # of any class: our fault must not make a complete write look failed
        warn_caller(
            f"{context.meta.storage.root}: the write is complete, but the {name} after it failed. It will be tried "
            f"again after the next write. {type(error).__name__}: {error}",
        )
        return ()
