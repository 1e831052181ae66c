"""The lookup of the index, or only its class, that a call's options name.

The class describes an index (`Index`), so no code outside this package compares names.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyhudi.errors import ConfigError
from pyhudi.index import INDEXES
from pyhudi.index.base import Index, IndexSettings
from pyhudi.model.buckets import TableBuckets, engine_of_index
from pyhudi.model.options import WriteOptions

__all__ = ["chosen_buckets", "chosen_index", "index_class", "index_name"]


def index_name(options: WriteOptions) -> str:
    """The registered name, or "module:Class" of a user's class. Raises ConfigError for an unknown name."""
    name = INDEXES.canonical(options.index_type)
    return "CONSISTENT_BUCKET" if name == "BUCKET" and options.buckets.consistent else name


def index_class(options: WriteOptions) -> type[Index]:
    """The class, for its attributes.

    An unknown name gets a class with the attributes of most indexes: key look-ups refuse it, and work without look-ups
    accepts it. Raises ConfigError for a user's class that can't be imported or is not an index.
    """
    name = options.index_type
    is_built_in = ":" in name or name in INDEXES.aliases or name.upper() in INDEXES.entries
    return _loaded(index_name(options)) if is_built_in else Index


def chosen_buckets(options: WriteOptions) -> TableBuckets | None:
    """The buckets that the options define; None for another index."""
    if engine_of_index(options.index_type) is None:
        return None
    return TableBuckets(options.bucket_num, options.buckets.consistent, options.bucket_hash_fields)


def chosen_index(options: WriteOptions, record_key_fields: Sequence[str] = ()) -> Index:
    """The index. Raises ConfigError for an unknown one."""
    name = index_name(options)
    settings = IndexSettings(
        update_partition_path=options.update_partition_path.get(name, True),
        bucket_num=options.bucket_num,
        bucket_hash_fields=options.bucket_hash_fields or tuple(record_key_fields),
        options=options,
    )
    return _loaded(name)(settings)


def _loaded(name: str) -> type[Index]:
    index = INDEXES.load(name)
    if not (isinstance(index, type) and issubclass(index, Index)):
        raise ConfigError(
            f"hoodie.index.type={name}: expected a class that derives from pyhudi.index.base.Index, found {index!r}. "
            f"See docs/contributing/add-an-index.md."
        )
    return index
