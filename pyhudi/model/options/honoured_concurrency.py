"""Rows of the option table: several writers of one table.

Source: Hudi's documented keys; sides taken are in docs/compatibility.md.
"""

from __future__ import annotations

from pyhudi.model.options.row import honoured
from pyhudi.model.options.spec import Kind, OptionSpec

__all__ = ["CONCURRENCY_OPTIONS"]

FLAG, INTEGER, TEXT = Kind.FLAG, Kind.INTEGER, Kind.TEXT

_GROUP = "Many writers"

CONCURRENCY_OPTIONS: tuple[OptionSpec, ...] = (
    honoured(
        _GROUP,
        "hoodie.write.concurrency.mode",
        TEXT,
        "SINGLE_WRITER",
        "Many writers: optimistic (the second of two that changed one file group gives way) or, for buckets of "
        "merge-on-read tables, non-blocking (both append). They need a lock provider, and roll back only writers "
        "without a heartbeat.",
        choices=("SINGLE_WRITER", "OPTIMISTIC_CONCURRENCY_CONTROL", "NON_BLOCKING_CONCURRENCY_CONTROL"),
    ),
    honoured(
        _GROUP,
        "hoodie.write.num.retries.on.conflict.failures",
        INTEGER,
        "0",
        "With many writers: how often a write that gave way is run again, from the table as it is then.",
    ),
    honoured(
        _GROUP,
        "hoodie.write.lock.conflict.resolution.strategy",
        TEXT,
        None,
        "What counts as a conflict: SIMPLE (same file group), PREFER_WRITER (plans of table services made meanwhile "
        "give way), BUCKET (same bucket), Hudi's class names of these, or `module:Class`. Default: BUCKET with that "
        "index, else SIMPLE.",
    ),
    honoured(
        _GROUP,
        "hoodie.write.concurrency.early.conflict.detection.enable",
        FLAG,
        "false",
        "Before a file is made, look whether another live writer has announced one of its file group, and give way.",
    ),
    honoured(
        _GROUP,
        "hoodie.write.concurrency.early.conflict.check.commit.conflict",
        FLAG,
        "false",
        "Before files are made, look also at commits completed since the write began.",
    ),
    honoured(
        _GROUP,
        "hoodie.write.concurrency.schema.conflict.resolution.enable",
        FLAG,
        "true",
        "Two writes may not change the schema in different ways; one that did not change it takes over the other's.",
    ),
)
