"""Log block COMMAND: no content; its header names the instant to roll back.

Source: docs/formats/log.md, "Command block"; docs/formats/timeline.md, "Rollback".
"""

from __future__ import annotations

from collections.abc import Mapping

from pyhudi.errors import UnsupportedTable
from pyhudi.formats.log.envelope import BlockType, HeaderKey, encode_block

__all__ = ["rollback_block", "rollback_target"]

ROLLBACK = "0"


def rollback_target(header: Mapping[HeaderKey, str], where: str = "log block") -> str:
    """Return the instant whose earlier blocks in this slice the command rolls back."""
    command, target = header.get(HeaderKey.COMMAND_BLOCK_TYPE), header.get(HeaderKey.TARGET_INSTANT_TIME)
    if command != ROLLBACK or not target:
        raise UnsupportedTable(f"{where}: command block {command!r} for {target!r}; only rollback (0) is known.")
    return target


def rollback_block(instant_time: str, target_instant_time: str) -> bytes:
    """Return a whole block, frame included, by which the rollback `instant_time` rolls back its target."""
    header = {
        HeaderKey.INSTANT_TIME: instant_time,
        HeaderKey.COMMAND_BLOCK_TYPE: ROLLBACK,
        HeaderKey.TARGET_INSTANT_TIME: target_instant_time,
    }
    return encode_block(BlockType.COMMAND, header, b"")
