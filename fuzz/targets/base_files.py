"""Base files: Parquet and ORC, with footers, key ranges and statistics."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from fuzz.golden import golden_files
from fuzz.mutation import Mutator
from fuzz.target import Target
from fuzz.targets.avro import ROWS, SCHEMA
from pyhudi.errors import HudiError
from pyhudi.expressions.predicates import Column
from pyhudi.expressions.statistics.ranges import may_match
from pyhudi.expressions.where import parse_where
from pyhudi.formats.base import BaseFileOptions, BaseFileReader, Footer, new_base_file, open_base_file
from pyhudi.formats.base.ranges import KeyRange, Ranges
from pyhudi.formats.bloom import BloomFilter
from pyhudi.index.key_lookup import FindKeys
from pyhudi.index.stored_keys import Candidate, StoredKeys
from pyhudi.model.file_group import BaseFile
from pyhudi.model.keys import RECORD_KEY
from pyhudi.storage import MemoryStorage

__all__ = ["TARGETS", "parquet_footer"]

_TIME = "20240101000000000"
_WHERE = parse_where(
    "_hoodie_record_key >= 'k1' AND ts < 5 AND price < 2 AND day > DATE '2020-01-01' AND place.zip = 5"
)
_TAIL_BYTES = 4  # length of the footer in front of the magic at the end


def _base_file(extension: str) -> Callable[[bytes], None]:
    def run(data: bytes) -> None:
        storage = MemoryStorage()
        path = f"p/a-0_0-1-2_{_TIME}{extension}"
        storage.write(path, data)
        with open_base_file(storage, path) as reader:
            _read(reader)
        file = BaseFile(path, "p", "a-0", _TIME, len(data))
        stored = StoredKeys(storage, None, pa.schema([]), None)
        list(FindKeys(stored, {"p": pa.array(["k1", "zz"])}, True).hits(Candidate(file), pa.array(["k1", "zz"])))

    return run


def _read(reader: BaseFileReader) -> None:
    """All that readers and writers ask of a base file; what is refused does not hide the rest."""
    _ = reader.schema, reader.num_rows, reader.plain_bytes, reader.low_cardinality_columns(), reader.plain_columns()
    footer = reader.footer
    for call in (
        lambda: sum(len(batch) for batch in reader.batches()),
        lambda: list(reader.batches(["ts", "place"], may_match=_may_match)),
        lambda: list(reader.batches([RECORD_KEY], dictionaries=[RECORD_KEY])),
        lambda: list(reader.numbered_batches([RECORD_KEY], 2)),
        lambda: reader.column("ts"),
        lambda: _bloom(footer),
    ):
        try:
            call()
        except HudiError:
            continue


def _may_match(ranges: Ranges) -> bool:
    known = may_match(_WHERE, lambda operand: ranges(operand) if isinstance(operand, Column) else None)
    return known and ranges(Column(("x",))) is not None


def _bloom(footer: Footer) -> None:
    keys = KeyRange()
    keys.include(footer.min_key or "", footer.max_key or "")
    if footer.bloom_base64:
        BloomFilter.from_base64(footer.bloom_base64, footer.bloom_type).might_contain(pa.array(["a"]))


def _made(format_name: str) -> list[bytes]:
    storage, path = MemoryStorage(), f"x.{format_name.lower()}"
    bloom = BloomFilter.build(ROWS.column(RECORD_KEY), 10, 1e-3, "DYNAMIC_V0", 100)
    found = []
    for codec in ("zstd", "uncompressed") if format_name == "PARQUET" else ("zstd",):
        writer = new_base_file(storage, path, ROWS.schema, BaseFileOptions(format=format_name, codec=codec))
        writer.write(pa.table(ROWS))
        writer.write(pa.table(ROWS))
        writer.close(Footer("k0", "k3", bloom.to_base64(), "DYNAMIC_V0", SCHEMA))
        found.append(storage.read(path))
    return found


def parquet_footer(data: bytes, mutator: Mutator) -> bytes:
    """Damage to the metadata at the end; its length fits again."""
    size = int.from_bytes(data[-8:-4], "little")
    if data[-4:] != b"PAR1" or not 0 < size <= len(data) - 8:
        return mutator.damaged(data)
    metadata = mutator.damaged(data[-8 - size : -8])
    return data[: -8 - size] + metadata + len(metadata).to_bytes(_TAIL_BYTES, "little") + b"PAR1"


def _orc_tail(data: bytes, mutator: Mutator) -> bytes:
    size = mutator.random.choice((30, 200, 2000))
    return data[:-size] + mutator.damaged(data[-size:])


TARGETS = (
    Target(
        "parquet",
        _base_file(".parquet"),
        lambda: [*_made("PARQUET"), *golden_files(r"(?!\.hoodie)(.*/)?[^/]*\.parquet")],
        (parquet_footer, parquet_footer),
        (b"PAR1", b"ARROW:schema", b"org.apache.hudi.bloomfilter"),
    ),
    Target(
        "orc",
        _base_file(".orc"),
        lambda: [*_made("ORC"), *golden_files(r"(?!\.hoodie)(.*/)?[^/]*\.orc")],
        (_orc_tail, _orc_tail),
        (b"ORC", b"org.apache.hudi.bloomfilter", b"\xff" * 10),
    ),
)
