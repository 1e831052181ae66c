"""What can still be read: how far back cleaning has left the files of the table.

Source: spec, timeline 4.7 (clean metadata), 5.2 (what readers of archived time get), 6.5 (savepoints).
"""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.formats.instant_files import decode_avro_record
from pyhudi.meta_client import MetaClient
from pyhudi.model.instant import ActionKind, State
from pyhudi.timeline.write import TimelineWriter

__all__ = ["Retention", "load_retention"]


@dataclass(frozen=True, slots=True)
class Retention:
    """`earliest`: the earliest commit that the last clean kept, None when nothing was cleaned, or by file versions.
    `saved`: savepointed commits; `newest`: the newest commit. These can be read however much was cleaned.
    """

    earliest: str | None = None
    saved: frozenset[str] = frozenset()
    commits: tuple[str, ...] = ()

    def is_readable(self, instant_time: str) -> bool:
        """Can the table be read as of this instant time?"""
        if self.earliest is None or instant_time >= self.earliest:
            return True
        # What is seen is the newest commit until then.
        seen = max((time for time in self.commits if time <= instant_time), default=None)
        return seen is not None and (seen in self.saved or seen == self.commits[-1])


def load_retention(meta: MetaClient) -> Retention:
    """Read the last clean's metadata, if there is one."""
    timeline = meta.timeline.completed()
    saved = frozenset(i.requested_time for i in timeline.of([ActionKind.SAVEPOINT]))
    commits = tuple(i.requested_time for i in timeline.commits())
    cleans = timeline.of([ActionKind.CLEAN]).instants
    if not cleans:
        return Retention(None, saved, commits)
    body = TimelineWriter(meta.storage, meta.config).read_body(cleans[-1], State.COMPLETED)
    earliest = None
    if body:
        where = f"{meta.storage.root}: clean {cleans[-1].requested_time}"
        earliest = decode_avro_record(body, where).get("earliestCommitToRetain") or None
    return Retention(earliest, saved, commits)
