"""Delete: the rows name keys, and the stored rows with these keys are deleted; unknown keys change nothing.

The frame needs the key and partition columns only. Without the partition columns its keys are looked for everywhere
(`delete_keys.py`). Source: docs/formats/merging.md, "Deletes".
"""

from __future__ import annotations

from pyhudi.actions.writes.keyed_write import KeyedWrite, Rules
from pyhudi.engine.base import Frame
from pyhudi.model.commit import OperationType

__all__ = ["delete"]


def delete(frame: Frame) -> KeyedWrite:
    """The action."""
    return KeyedWrite(frame, Rules(OperationType.DELETE, deletes=True))
