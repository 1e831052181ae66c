"""Rows of the option table: time to live of partitions.

Source: Hudi's documented keys; sides taken are in docs/compatibility.md.
"""

from __future__ import annotations

from pyhudi.model.options.row import honoured
from pyhudi.model.options.spec import Kind, OptionSpec

__all__ = ["TTL_OPTIONS"]

_GROUP = "Partition time to live"
KEEP_BY_TIME = "KEEP_BY_TIME"
KEEP_BY_CREATION_TIME = "KEEP_BY_CREATION_TIME"

TTL_OPTIONS: tuple[OptionSpec, ...] = (
    honoured(
        _GROUP,
        "hoodie.partition.ttl.inline",
        Kind.FLAG,
        "false",
        "Writes delete the partitions that have expired when they are complete.",
    ),
    honoured(
        _GROUP,
        "hoodie.partition.ttl.management.strategy.type",
        Kind.TEXT,
        KEEP_BY_TIME,
        "What the age of a partition counts from: KEEP_BY_TIME its newest base file, KEEP_BY_CREATION_TIME its first "
        "commit.",
        choices=(KEEP_BY_TIME, KEEP_BY_CREATION_TIME),
    ),
    honoured(
        _GROUP,
        "hoodie.partition.ttl.strategy.class",
        Kind.TEXT,
        None,
        "The same by the name of Hudi's class, KeepByTimeStrategy or KeepByCreationTimeStrategy.",
    ),
    honoured(
        _GROUP,
        "hoodie.partition.ttl.strategy.days.retain",
        Kind.INTEGER,
        "-1",
        "Days after which a partition expires; none does at 0 or less.",
    ),
    honoured(
        _GROUP,
        "hoodie.partition.ttl.strategy.partition.selected",
        Kind.NAMES,
        None,
        "The partition paths that may expire; unset: all of them.",
    ),
    honoured(
        _GROUP,
        "hoodie.partition.ttl.strategy.max.delete.partitions",
        Kind.INTEGER,
        "1000",
        "Partitions that are deleted at once, the oldest ones first; the others go the next time.",
    ),
)
