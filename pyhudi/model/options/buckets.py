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
    """`consistent`: file groups are nodes of a ring; the rest says when a clustering splits and merges them."""

    consistent: bool = False
    num_min: int = 256
    num_max: int = 256
    split_threshold: float = 2.0
    merge_threshold: float = 0.2


def is_consistent(values: Values) -> bool:
    """Does the index type itself say that buckets are nodes of a ring?"""
    return values.must("hoodie.index.type").rpartition(".")[2] in _NAMES


def bucket_options(values: Values) -> BucketOptions:
    """The options of a write or of a call of clustering. Raises ConfigError."""
    num = values.integer(f"{_INDEX}num.buckets", minimum=1)
    least, most = values.text(f"{_INDEX}min.num.buckets"), values.text(f"{_INDEX}max.num.buckets")
    options = BucketOptions(
        consistent=values.must("hoodie.index.bucket.engine") == "CONSISTENT_HASHING" or is_consistent(values),
        num_min=num if least is None else values.integer(f"{_INDEX}min.num.buckets", minimum=1),
        num_max=num if most is None else values.integer(f"{_INDEX}max.num.buckets", minimum=1),
        split_threshold=values.number(f"{_INDEX}split.threshold"),
        merge_threshold=values.number(f"{_INDEX}merge.threshold"),
    )
    if options.num_min > options.num_max:
        raise ConfigError(
            f"{_INDEX}min.num.buckets={options.num_min} is more than {_INDEX}max.num.buckets={options.num_max}; what "
            f"is not given is {_INDEX}num.buckets={num}."
        )
    return options
