"""Tables whose file groups are buckets, and their properties and options.

Hudi's writers use every property of a table as the default of the option with its key, so the index options are stored
under the options' keys. Source: docs/formats/indexes.md, "Buckets".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["BUCKET_KEYS", "ENGINE", "HASH_FIELDS", "INDEX_TYPE", "NUMBER", "TableBuckets", "engine_of_index"]

INDEX_TYPE = "hoodie.index.type"
ENGINE = "hoodie.index.bucket.engine"
NUMBER = "hoodie.bucket.index.num.buckets"
HASH_FIELDS = "hoodie.bucket.index.hash.field"
BUCKET_KEYS = (INDEX_TYPE, ENGINE, NUMBER, HASH_FIELDS)

_SIMPLE = ("BUCKET", "HoodieSimpleBucketIndex")
_CONSISTENT = ("CONSISTENT_BUCKET", "HoodieSparkConsistentBucketIndex")


@dataclass(frozen=True, slots=True)
class TableBuckets:
    """`is_consistent`: file groups are nodes of a ring, which begins with `number` of them. `hash_fields`: key fields
    that choose the bucket, () for the record key.
    """

    number: int
    is_consistent: bool = False
    hash_fields: tuple[str, ...] = ()

    @property
    def engine(self) -> str:
        return "CONSISTENT_HASHING" if self.is_consistent else "SIMPLE"

    def properties(self) -> dict[str, str]:
        """The table's properties, equal to the options of a write."""
        fields = {HASH_FIELDS: ",".join(self.hash_fields)} if self.hash_fields else {}
        return {INDEX_TYPE: "BUCKET", ENGINE: self.engine, NUMBER: str(self.number), **fields}

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> TableBuckets | None:
        """The buckets that properties define; None if they define none, or lack their number."""
        kind, number = engine_of_index(properties.get(INDEX_TYPE, "")), properties.get(NUMBER, "")
        if kind is None or not number.isdecimal() or int(number) < 1:
            return None
        consistent = kind == "CONSISTENT_HASHING" or properties.get(ENGINE, "").upper() == "CONSISTENT_HASHING"
        fields = tuple(name.strip() for name in properties.get(HASH_FIELDS, "").split(",") if name.strip())
        return cls(int(number), consistent, fields)


def engine_of_index(index_type: str) -> str | None:
    """The engine that the name of an index type implies: "" for either engine, None for an index without buckets."""
    name = index_type.rpartition(".")[2]
    if name in _CONSISTENT or name.upper() in _CONSISTENT:
        return "CONSISTENT_HASHING"
    return "" if name in _SIMPLE or name.upper() in _SIMPLE else None
