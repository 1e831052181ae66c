"""Rows of the option table: consistent hashing of the bucket index.

Source: Hudi's documented keys.
"""

from __future__ import annotations

from pyhudi.model.options.row import honoured
from pyhudi.model.options.spec import Kind, OptionSpec

__all__ = ["BUCKET_OPTIONS"]

_GROUP = "Index"

BUCKET_OPTIONS: tuple[OptionSpec, ...] = (
    honoured(
        _GROUP,
        "hoodie.index.bucket.engine",
        Kind.TEXT,
        "SIMPLE",
        "BUCKET: SIMPLE has a fixed number of buckets; CONSISTENT_HASHING, for merge-on-read tables, begins with "
        "`hoodie.bucket.index.num.buckets` in each partition and lets clustering split and merge them.",
        choices=("SIMPLE", "CONSISTENT_HASHING"),
    ),
    honoured(
        _GROUP,
        "hoodie.bucket.index.min.num.buckets",
        Kind.INTEGER,
        None,
        "CONSISTENT_HASHING: clustering merges no further; unset: the number that a partition began with.",
    ),
    honoured(
        _GROUP,
        "hoodie.bucket.index.max.num.buckets",
        Kind.INTEGER,
        None,
        "CONSISTENT_HASHING: clustering splits no further; unset: the number that a partition began with.",
    ),
    honoured(
        _GROUP,
        "hoodie.bucket.index.split.threshold",
        Kind.NUMBER,
        "2.0",
        "CONSISTENT_HASHING: buckets of more than so many times the largest file size are split.",
    ),
    honoured(
        _GROUP,
        "hoodie.bucket.index.merge.threshold",
        Kind.NUMBER,
        "0.2",
        "CONSISTENT_HASHING: neighbours below this part of the largest file size are merged.",
    ),
)
