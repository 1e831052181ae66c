"""Insert: rows are added without looking for their keys; small files are filled first.

`hoodie.datasource.insert.dup.policy` drop leaves out rows whose key the table holds, fail refuses them. Duplicates
inside the batch stay unless `hoodie.combine.before.insert` is set. Source: docs/formats/table-services.md,
"Where inserts go".
"""

from __future__ import annotations

from pyhudi.actions.writes.keyed_write import KeyedWrite, Rules
from pyhudi.engine.base import Frame
from pyhudi.model.commit import OperationType
from pyhudi.model.options import WriteOptions

__all__ = ["insert"]


def insert(frame: Frame, options: WriteOptions, *, operation: str = OperationType.INSERT) -> KeyedWrite:
    """The action. `operation`: the word for the commit, which a bulk insert into buckets changes."""
    policy = options.insert_dup_policy
    combines = options.combine_before_insert or (
        operation == OperationType.BULK_INSERT and options.combine_before_bulk_insert
    )
    rules = Rules(
        operation,
        tags=policy in ("drop", "fail"),
        combines=combines,
        match_keys=False,
        drop_known=policy == "drop",
        refuse_known=policy == "fail",
    )
    return KeyedWrite(frame, rules)
