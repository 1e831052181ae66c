"""BucketOptions: consistent hashing, the engine of the bucket index whose buckets can be split and merged."""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.errors import ConfigError
from pyhudi.model.options.values import Values

__all__ = ["BucketOptions", "bucket_options", "is_consistent"]

_INDEX = "hoodie.bucket.index."
_NAMES = ("CONSISTENT_BUCKET", "HoodieSparkConsistentBucketIndex")


@dataclass(frozen=True, slots=True)
class BucketOptions:
    """`consistent`: file groups are nodes of a ring; the rest says when a clustering splits and merges them.

    `num_min`, `num_max` None: the number of buckets that a partition began with.
    """

    consistent: bool = False
    num_min: int | None = None
    num_max: int | None = None
    split_threshold: float = 2.0
    merge_threshold: float = 0.2


def is_consistent(values: Values) -> bool:
    """Does the index type itself say that buckets are nodes of a ring?"""
    return values.must("hoodie.index.type").rpartition(".")[2] in _NAMES


def bucket_options(values: Values) -> BucketOptions:
    """The options of a write or of a call of clustering. Raises ConfigError."""
    options = BucketOptions(
        consistent=values.must("hoodie.index.bucket.engine") == "CONSISTENT_HASHING" or is_consistent(values),
        num_min=_given(values, f"{_INDEX}min.num.buckets"),
        num_max=_given(values, f"{_INDEX}max.num.buckets"),
        split_threshold=values.number(f"{_INDEX}split.threshold"),
        merge_threshold=values.number(f"{_INDEX}merge.threshold"),
    )
    if options.num_min is not None and options.num_max is not None and options.num_min > options.num_max:
        raise ConfigError(
            f"{_INDEX}min.num.buckets={options.num_min} is more than {_INDEX}max.num.buckets={options.num_max}."
        )
    return options


def _given(values: Values, key: str) -> int | None:
    return None if values.text(key) is None else values.integer(key, minimum=1)
