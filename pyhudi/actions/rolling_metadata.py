"""Rolling metadata: extra metadata that every commit and clean copies, so that the newest one has it.

For each key of `hoodie.write.rolling.metadata.keys` that an instant has no value of its own for, the newest value among
the last commits and cleans is taken. It is looked up under the table's lock, right before the instant is complete.
Source: Hudi's documentation of rolling extra metadata (1.2).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import islice

from pyhudi.meta_client import MetaClient
from pyhudi.model.commit import CommitMetadata
from pyhudi.model.instant import ActionKind, Instant
from pyhudi.model.options.operation import CommitOptions

__all__ = ["with_rolling_metadata", "with_rolling_values"]


def with_rolling_metadata(body: CommitMetadata, meta: MetaClient, options: CommitOptions) -> CommitMetadata:
    """The body of a commit with the values that it carries on. `meta`: the table as it is now."""
    if not options.rolling_keys:
        return body
    return replace(body, extra_metadata=with_rolling_values(body.extra_metadata, meta, options))


def with_rolling_values(extra: Mapping[str, str], meta: MetaClient, options: CommitOptions) -> dict[str, str]:
    """Extra metadata with the values that it carries on; an empty text counts as no value."""
    found = dict(extra)
    missing = {key for key in options.rolling_keys if not found.get(key)}
    newest_first = (i for i in reversed(meta.timeline.completed().instants) if _has_metadata(i))
    for instant in islice(newest_first, options.lookback if missing else 0):
        earlier = _extra_metadata(instant, meta)
        found |= {key: earlier[key] for key in missing if earlier.get(key)}
        missing -= found.keys()
        if not missing:
            break
    return found


def _has_metadata(instant: Instant) -> bool:
    return instant.action is ActionKind.CLEAN or instant.action.is_write


def _extra_metadata(instant: Instant, meta: MetaClient) -> Mapping[str, str]:
    if instant.action is not ActionKind.CLEAN:
        return meta.commits.metadata(instant).extra_metadata
    return meta.reader.clean_metadata(instant).extra_metadata
