"""The events that were read lately, as a commit notes them: a queue may bring one again, also after its batch is in the
table, and then it brings no row. Kept are digests of the newest ones, eight bytes each.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import xxhash

from pyhudi.errors import CorruptFile
from pyhudi.streamer.checkpoints import Start

__all__ = ["READ_EVENTS", "ReadEvents", "digest_of"]

READ_EVENTS = "pyhudi.streamer.read.events"  # a key of extra metadata
_NOTED_MAX = 5_000


@dataclass(frozen=True)
class ReadEvents:
    """`digests`: the oldest first."""

    digests: dict[int, None]

    @classmethod
    def of(cls, start: Start) -> ReadEvents:
        """As the commit of the checkpoint notes them; none where it was given by hand."""
        text = "" if start.is_given else (start.notes or {}).get(READ_EVENTS, "")
        try:
            numbers = np.frombuffer(base64.b64decode(text, validate=True), "<u8")
        except (ValueError, binascii.Error) as error:
            raise CorruptFile(f"The commit {start.after}: {READ_EVENTS} can't be read: {error}.") from error
        return cls(dict.fromkeys(numbers.tolist()))

    def __contains__(self, digest: int) -> bool:
        return digest in self.digests

    def with_more(self, digests: Iterable[int]) -> ReadEvents:
        """With newer ones; the oldest are forgotten."""
        known = [*dict.fromkeys([*self.digests, *digests])]
        return ReadEvents(dict.fromkeys(known[-_NOTED_MAX:]))

    def note(self) -> str:
        """The text of the commit."""
        return base64.b64encode(np.fromiter(self.digests, "<u8", len(self.digests)).tobytes()).decode()


def digest_of(*parts: str) -> int:
    """Of the parts that tell an event from all others."""
    return xxhash.xxh64_intdigest("\0".join(parts).encode())
