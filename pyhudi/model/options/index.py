"""Options of the index and of the bloom filters in files.

Source: Hudi's documented keys; sides taken are in docs/compatibility.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pyhudi.errors import ConfigError
from pyhudi.model.buckets import ENGINE, HASH_FIELDS, INDEX_TYPE, NUMBER, engine_of_index
from pyhudi.model.options.declare import Values, computed, option, own_texts, parse, row
from pyhudi.model.options.spec import Kind

__all__ = ["INDEX_TYPE", "BucketOptions", "IndexOptions", "bucket_options", "index_options"]

_NUM_MIN = "hoodie.bucket.index.min.num.buckets"
_NUM_MAX = "hoodie.bucket.index.max.num.buckets"

_SIMPLE_MOVES = row(
    "hoodie.simple.index.update.partition.path", True, "GLOBAL_SIMPLE: a row whose partition changed moves."
)
_BLOOM_MOVES = row(
    "hoodie.bloom.index.update.partition.path", True, "GLOBAL_BLOOM: a row whose partition changed moves."
)
_RECORD_MOVES = row(
    "hoodie.record.index.update.partition.path",
    False,
    "GLOBAL_RECORD_LEVEL_INDEX: a row whose partition changed moves.",
)
_BUCKET_ENGINE = row(
    ENGINE,
    "SIMPLE",
    "BUCKET: SIMPLE has a fixed number of buckets; CONSISTENT_HASHING, for merge-on-read tables, begins with "
    "`hoodie.bucket.index.num.buckets` in each partition and lets clustering split and merge them.",
    choices=("SIMPLE", "CONSISTENT_HASHING"),
)


@dataclass(frozen=True)  # no slots: WriteOptions has several bases
class IndexOptions:
    """`update_partition_path`: global index → whether a row with a changed partition moves.

    `index_own_texts`: options of a user's index, key → text.
    """

    index_type: str = option(
        INDEX_TYPE,
        "SIMPLE",
        "How keys are found: SIMPLE, GLOBAL_SIMPLE, BLOOM, GLOBAL_BLOOM, BUCKET, INMEMORY, or by the metadata table's "
        "record index: GLOBAL_RECORD_LEVEL_INDEX (older name RECORD_INDEX), RECORD_LEVEL_INDEX; or your own class as "
        "`module:Class`.",
        aliases=("hoodie.index.class",),
        keyword="index",
    )
    update_partition_path: Mapping[str, bool] = computed(dict, _SIMPLE_MOVES, _BLOOM_MOVES, _RECORD_MOVES)
    bucket_num: int = option(
        NUMBER,
        256,
        "BUCKET: number of buckets in each partition. The table stores it, and it never changes; with consistent "
        "hashing it is the initial number.",
        keyword="buckets",
        minimum=1,
    )
    bucket_hash_fields: tuple[str, ...] = option(
        HASH_FIELDS,
        (),
        "BUCKET: key fields that choose the bucket. Unset: the record key.",
    )
    bloom_enabled: bool = option(
        "hoodie.parquet.bloom.filter.enabled",
        True,
        "Write a bloom filter of the record keys into file footers.",
        keyword="bloom_filter",
    )
    bloom_num_entries: int | None = option(
        "hoodie.index.bloom.num_entries",
        None,
        "Number of keys that a bloom filter is sized for. Unset: the number of keys in its file, up to 60000.",
        kind=Kind.INTEGER,
        minimum=1,
    )
    bloom_fpp: float = option("hoodie.index.bloom.fpp", 1e-9, "False positive rate of a bloom filter.")
    bloom_kind: str = option(
        "hoodie.bloom.index.filter.type", "DYNAMIC_V0", "Kind of bloom filter.", choices=("SIMPLE", "DYNAMIC_V0")
    )
    bloom_max_entries: int = option(
        "hoodie.bloom.index.filter.dynamic.max.entries",
        100000,
        "Number of keys up to which a dynamic bloom filter grows.",
        minimum=1,
    )
    index_own_texts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BucketOptions:
    """`consistent`: file groups are nodes of a ring; the others define when a clustering splits and merges them.

    `num_min`, `num_max` None: a partition's initial number of buckets.
    """

    consistent: bool = computed(bool, _BUCKET_ENGINE)
    num_min: int | None = option(
        _NUM_MIN,
        None,
        "CONSISTENT_HASHING: minimum number of buckets after merges by clustering. Unset: a partition's initial "
        "number.",
        kind=Kind.INTEGER,
        minimum=1,
    )
    num_max: int | None = option(
        _NUM_MAX,
        None,
        "CONSISTENT_HASHING: maximum number of buckets after splits by clustering. Unset: a partition's initial "
        "number.",
        kind=Kind.INTEGER,
        minimum=1,
    )
    split_threshold: float = option(
        "hoodie.bucket.index.split.threshold",
        2.0,
        "CONSISTENT_HASHING: clustering splits buckets larger than this multiple of the maximum file size.",
    )
    merge_threshold: float = option(
        "hoodie.bucket.index.merge.threshold",
        0.2,
        "CONSISTENT_HASHING: clustering merges neighbours smaller than this fraction of the maximum file size.",
    )


def index_options(values: Values) -> IndexOptions:
    """The options of a write."""
    options = parse(IndexOptions, values)
    return replace(
        options,
        index_type="BUCKET" if engine_of_index(options.index_type) else options.index_type,
        update_partition_path={
            "GLOBAL_SIMPLE": values.flag(_SIMPLE_MOVES),
            "GLOBAL_BLOOM": values.flag(_BLOOM_MOVES),
            "GLOBAL_RECORD_LEVEL_INDEX": values.flag(_RECORD_MOVES),
        },
        index_own_texts=own_texts(INDEX_TYPE, options.index_type, values),
    )


def bucket_options(values: Values) -> BucketOptions:
    """The options of a write or of a call of clustering. Raises ConfigError."""
    options = parse(BucketOptions, values)
    if options.num_min is not None and options.num_max is not None and options.num_min > options.num_max:
        raise ConfigError(f"{_NUM_MIN}={options.num_min} is more than {_NUM_MAX}={options.num_max}.")
    by_engine = values.text(_BUCKET_ENGINE) == "CONSISTENT_HASHING"
    return replace(options, consistent=by_engine or bool(engine_of_index(parse(IndexOptions, values).index_type)))
