"""Where a round begins, and what its commit notes. Source: Hudi's StreamerCheckpointUtils.

--ignore-checkpoint, other than the one noted      begin as if new
--checkpoint, other than the one noted             begin there
else the stored checkpoint, if it is not empty
    else what a provider says
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from pyhudi.actions.streamer_checkpoints import (
    IGNORED,
    NO_CHECKPOINT,
    RESET_V1,
    RESET_V2,
    TEXT_V1,
    TEXT_V2,
    StreamerCheckpoint,
)
from pyhudi.errors import ConfigError
from pyhudi.model.options.streamer.streamer import StreamerOptions
from pyhudi.model.options.streaming import STREAMER_AFTER, STREAMER_NOTES

__all__ = ["Start", "batch_options", "start_of"]


@dataclass(frozen=True, slots=True)
class Start:
    """Where a round begins. `text`: None as if new. `is_given`: it is the configuration's, not a commit's. `is_v2`: of
    the second form. `notes`: all that the commit of the checkpoint notes, the source's own among them. `after`: that
    commit.
    """

    text: str | None
    is_given: bool = False
    is_v2: bool = False
    notes: Mapping[str, str] | None = None
    after: str = NO_CHECKPOINT


def start_of(
    options: StreamerOptions,
    newest: StreamerCheckpoint | None,
    first: Callable[[], Start] | None,
    *,
    has_commits: bool,
) -> Start:
    """The start of the next round. `first`: asked where there is none yet.

    Raises ConfigError where a table with commits has none.
    """
    after = NO_CHECKPOINT if newest is None else newest.instant_time
    if options.skips_checkpoint:
        return Start(None, after=after)
    ignored = None if newest is None else newest.ignored
    if options.ignore_checkpoint is not None and options.ignore_checkpoint != ignored:
        return Start(None, after=after)
    if options.checkpoint is not None and (newest is None or options.checkpoint != newest.reset):
        return Start(options.checkpoint, is_given=True, after=after)
    if newest is not None and newest.text:
        return Start(newest.text, is_v2=newest.is_v2, notes=newest.notes, after=after)
    if first is not None and options.ignore_checkpoint is None:
        return replace(first(), after=after)
    if has_commits and options.ignore_checkpoint is None:
        raise ConfigError(
            "the table has commits, and none has a checkpoint of a Streamer: a round from the beginning might bring "
            'rows again. Say checkpoint = "…" to begin there, or ignore-checkpoint = "any text" to read all. '
            "Nothing was written."
        )
    return Start(None, after=after)


def batch_options(
    options: StreamerOptions, start: Start, text: str | None, notes: Mapping[str, str], *, is_v2: bool
) -> dict[str, str]:
    """Options of the write by which the checkpoint, if there is one, comes into the table in the commit of its rows."""
    noted = {**notes} if text is None else {TEXT_V2 if is_v2 else TEXT_V1: text, **notes}
    if options.checkpoint is not None:
        noted[RESET_V2 if is_v2 else RESET_V1] = options.checkpoint
    if options.ignore_checkpoint is not None:
        noted[IGNORED] = options.ignore_checkpoint
    if options.skips_checkpoint:
        noted = {}
    return {STREAMER_AFTER: start.after, STREAMER_NOTES: json.dumps(noted), "hoodie.allow.empty.commit": "true"}
