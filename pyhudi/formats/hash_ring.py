"""Consistent hashing: which node of a partition's ring a key belongs to, and the file that holds the ring.

A node has the hash values after the previous node's value up to its own; the last value is 2^31 - 1. Each node is a
file group. Source: docs/formats/indexes.md, "Consistent hashing".
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyhudi.errors import ConfigError, CorruptFile
from pyhudi.formats.json_text import parse_json, pretty_json
from pyhudi.formats.timeline.bodies import LONG_MAX, Body, Fields
from pyhudi.java.hashes import bucket_text, xx_hash32
from pyhudi.model.filenames import new_file_id

__all__ = [
    "DELETE",
    "INITIAL_RING",
    "MAX_HASH",
    "NORMAL",
    "REPLACE",
    "RING_BYTES_MAX",
    "HashNode",
    "HashRing",
    "decode_nodes",
    "decode_ring",
    "encode_nodes",
    "encode_ring",
    "initial_ring",
    "places_on_ring",
]

INITIAL_RING = "00000000000000"  # instant of a ring that no resize has made
MAX_HASH = 0x7FFFFFFF
NORMAL, REPLACE, DELETE = "NORMAL", "REPLACE", "DELETE"
_TAGS = frozenset({NORMAL, REPLACE, DELETE})
_NODES_MAX = 1_000_000
RING_BYTES_MAX = 256 << 20  # some 100 bytes per node, twice that in another JSON layout


@dataclass(frozen=True, slots=True)
class HashNode:
    """One node. `tag`: in plans of a resize, REPLACE marks a new node, DELETE one that is merged into the next."""

    value: int
    file_id_prefix: str | None
    tag: str = NORMAL

    @property
    def file_id(self) -> str:
        """The file group of the node."""
        return new_file_id(self.file_id_prefix or "")


@dataclass(frozen=True, slots=True)
class HashRing:
    """The ring of one partition, nodes by value. `bucket_num`: the table's initial number, not that of the nodes."""

    partition_path: str
    instant: str
    bucket_num: int
    sequence: int
    nodes: tuple[HashNode, ...]

    def node_of(self, file_id: str) -> HashNode | None:
        """Return the node of this file group."""
        return next((node for node in self.nodes if node.file_id == file_id), None)

    def before(self, value: int) -> HashNode:
        """Return the node before that of a value; the last one precedes the first."""
        lower = [node for node in self.nodes if node.value < value]
        return lower[-1] if lower else self.nodes[-1]

    def changed(self, children: Sequence[HashNode], instant: str) -> HashRing:
        """Return the ring after a resize: nodes of a plan are inserted, replaced by value, or removed (DELETE)."""
        by_value = {node.value: node for node in self.nodes}
        for child in children:
            if child.tag == DELETE:
                by_value.pop(child.value, None)
            else:
                by_value[child.value] = replace(child, tag=NORMAL)
        nodes = tuple(by_value[value] for value in sorted(by_value))
        return replace(self, instant=instant, sequence=self.sequence + 1, nodes=nodes)


def places_on_ring(record_keys: pa.Array, hash_fields: Sequence[str], values: Sequence[int]) -> npt.NDArray[np.int64]:
    """Return the node number of each record key. `values`: the nodes' values, ascending."""
    hashes = xx_hash32(bucket_text(record_keys, hash_fields)) & np.uint32(MAX_HASH)
    places = np.searchsorted(np.asarray(values, np.uint32), hashes, side="left")
    return np.where(places == len(values), 0, places).astype(np.int64)


def initial_ring(partition_path: str, bucket_num: int) -> HashRing:
    """Return the first ring of a partition: evenly spaced nodes, with ids that are the same for every writer."""
    if not 1 <= bucket_num <= _NODES_MAX:
        raise ConfigError(f"A bucket index needs 1 to {_NODES_MAX} buckets, found {bucket_num}.")
    step = (MAX_HASH + bucket_num - 1) // bucket_num
    nodes = []
    start = 0
    for number in range(1, bucket_num + 1):
        end = min(step * number, MAX_HASH)
        nodes.append(HashNode(end, _named_uuid(struct.pack(">qq", start, end) + partition_path.encode())))
        start = end
    return HashRing(partition_path, INITIAL_RING, bucket_num, 0, tuple(nodes))


def _named_uuid(name: bytes) -> str:
    """Return Java's `UUID.nameUUIDFromBytes`."""
    return str(UUID(bytes=hashlib.md5(name, usedforsecurity=False).digest(), version=3))


# ---- bytes -----------------------------------------------------------------------------------------------------------


def encode_ring(ring: HashRing) -> bytes:
    """Encode the content of a `.hashing_meta` file."""
    body = {
        "version": 0,
        "partitionPath": ring.partition_path,
        "instant": ring.instant,
        "numBuckets": ring.bucket_num,
        "seqNo": ring.sequence,
        "nodes": [_node_dict(node) for node in ring.nodes],
    }
    return pretty_json(body).encode()


def encode_nodes(nodes: Sequence[HashNode]) -> str:
    """Encode nodes as a plan holds them."""
    return pretty_json([_node_dict(node) for node in nodes])


def decode_ring(data: bytes, where: str) -> HashRing:
    """Decode the ring in a `.hashing_meta` file. Raises CorruptFile."""
    body = _json(data, where)
    if not isinstance(body, Mapping):
        raise CorruptFile(f"{where}: expected a JSON object of hashing metadata, found {type(body).__name__}.")
    fields = Fields(body, where)
    nodes = sorted(_nodes(body.get("nodes"), where), key=lambda node: node.value)
    values = [node.value for node in nodes]
    if not nodes or len(set(values)) != len(values) or any(not node.file_id_prefix for node in nodes):
        raise CorruptFile(f"{where}: expected nodes with different values and a file group each, found {values[:5]}.")
    return HashRing(
        fields.text("partitionPath"),
        fields.text("instant") or INITIAL_RING,
        _integer(body.get("numBuckets", len(nodes)), where),
        _integer(body.get("seqNo", 0), where),
        tuple(nodes),
    )


def decode_nodes(text: str, where: str) -> tuple[HashNode, ...]:
    """Decode nodes of a plan. Raises CorruptFile."""
    return tuple(_nodes(_json(text.encode(errors="surrogatepass"), where), where))


def _node_dict(node: HashNode) -> Body:
    return {"value": node.value, "fileIdPrefix": node.file_id_prefix, "tag": node.tag}


def _json(data: bytes, where: str) -> object:
    return parse_json(data, where, "the JSON of a ring")


def _nodes(listed: object, where: str) -> list[HashNode]:
    if not isinstance(listed, list) or len(listed) > _NODES_MAX:
        raise CorruptFile(f"{where}: expected a list of at most {_NODES_MAX} nodes, found {type(listed).__name__}.")
    return [_node(node, where) for node in listed]


def _node(body: object, where: str) -> HashNode:
    if not isinstance(body, Mapping):
        raise CorruptFile(f"{where}: expected a node, found {type(body).__name__}.")
    value, prefix = _integer(body.get("value"), where), body.get("fileIdPrefix")
    tag = Fields(body, where).text("tag") or NORMAL
    if not 0 <= value <= MAX_HASH or tag not in _TAGS:
        raise CorruptFile(f"{where}: a node has value {value} and tag {tag!r}.")
    if prefix is not None and (not isinstance(prefix, str) or not _is_plain(prefix)):
        raise CorruptFile(f"{where}: a node has the file id {prefix!r}, which can't be one.")
    return HashNode(value, prefix, tag)


def _is_plain(prefix: str) -> bool:
    return 0 < len(prefix) <= 255 and not set(prefix) & set("/\\._\x00")


def _integer(value: object, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not -LONG_MAX <= value <= LONG_MAX:
        raise CorruptFile(f"{where}: expected a number of 64 bits, found {type(value).__name__}.")
    return value
