"""Upsert: rows replace the stored rows of their key, by the table's merge mode; new keys are inserted.

Rows whose `_hoodie_is_deleted` is true delete their key. Source: docs/formats/merging.md, "Deletes",
"Two versions of a key".
"""

from __future__ import annotations

from pyhudi.actions.writes.keyed_write import KeyedWrite, Rules
from pyhudi.engine.base import Frame
from pyhudi.model.commit import OperationType
from pyhudi.model.options import WriteOptions

__all__ = ["upsert"]


def upsert(frame: Frame, options: WriteOptions) -> KeyedWrite:
    """The action.

    With `hoodie.combine.before.upsert=false` the caller promises that no key is there twice; rows that break it are all
    inserted when their key is new, and refused when it is stored.
    """
    return KeyedWrite(frame, Rules(OperationType.UPSERT, combines=options.combine_before_upsert))
