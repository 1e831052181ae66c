"""The events that were read lately, as a commit notes them: a queue may bring one again, also after its batch is in the
table, and then it brings no row. Kept are digests, eight bytes each, some 5,000 of them:

    pinned   of batches whose process may have died before it said to the queue that they are done
    recent   of other batches, the newest ones
    last     of the commit's own batch
"""

from __future__ import annotations

import base64
import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import xxhash

from pyhudi.errors import CorruptFile
from pyhudi.streamer.checkpoints import Start

__all__ = ["READ_EVENTS", "ReadEvents", "digest_of"]

READ_EVENTS = "pyhudi.streamer.read.events"  # a key of extra metadata
_NOTED_MAX = 5_000
_PINNED_MAX = 4_000
_PARTS = ("pinned", "recent", "last")


@dataclass(frozen=True)
class ReadEvents:
    """The oldest first. `text`: what the commit notes."""

    pinned: Sequence[int] = ()
    recent: Sequence[int] = ()
    last: Sequence[int] = ()
    text: str = ""

    @classmethod
    def of(cls, start: Start) -> ReadEvents:
        """As the commit of the checkpoint notes them; none where it was given by hand."""
        text = "" if start.is_given else (start.notes or {}).get(READ_EVENTS, "")
        if not text:
            return cls()
        try:
            noted = json.loads(text)
            pinned, recent, last = (
                np.frombuffer(base64.b64decode(noted[name], validate=True), "<u8").tolist() for name in _PARTS
            )
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptFile(f"The commit {start.after}: {READ_EVENTS} can't be read: {error}.") from error
        return cls(pinned, recent, last, text)

    @property
    def digests(self) -> frozenset[int]:
        """All of them."""
        return frozenset((*self.pinned, *self.recent, *self.last))

    def with_batch(self, new: Iterable[int], again: Collection[int] = (), *, is_last_done: bool = True) -> ReadEvents:
        """With a batch of new ones, and of some that came again; the oldest are forgotten.

        Args:    is_last_done: the queue knows that the batch before is done.
        """
        batch = [*dict.fromkeys((*again, *new))]
        pinned = [one for one in (*self.pinned, *(() if is_last_done else self.last)) if one not in again]
        recent = [one for one in (*self.recent, *(self.last if is_last_done else ())) if one not in again]
        pinned = pinned[-_PINNED_MAX:]
        room = max(0, _NOTED_MAX - len(pinned) - len(batch))
        return ReadEvents(pinned, recent[len(recent) - min(room, len(recent)) :], batch)

    def note(self) -> str:
        """The text of the commit."""
        parts = (self.pinned, self.recent, self.last)
        packed = {
            name: base64.b64encode(np.array(part, "<u8").tobytes()).decode()
            for name, part in zip(_PARTS, parts, strict=True)
        }
        return json.dumps(packed)


def digest_of(*parts: str) -> int:
    """Of the parts that tell an event from all others."""
    return xxhash.xxh64_intdigest("\0".join(parts).encode())
