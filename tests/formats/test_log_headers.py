"""Headers of log blocks: an entry that is not text, or not known, is refused with the reason."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyhudi.errors import CorruptFile, UnsupportedTable
from pyhudi.formats.log.envelope import BlockFrame, BlockType, HeaderKey, encode_block, scan_frames

HEADER = {HeaderKey.INSTANT_TIME: "INSTANT", HeaderKey.SCHEMA: "SCHEMAS"}
BLOCK = encode_block(BlockType.AVRO_DATA, HEADER, b"content")


@pytest.mark.parametrize("text", [b"INSTANT", b"SCHEMAS"])
@pytest.mark.parametrize("damage", [b"\xff", b"\xc3", b"\xed\xa0\x80"], ids=["no byte of UTF-8", "cut", "surrogate"])
def test_a_header_entry_that_is_no_text_is_refused_with_the_file(text: bytes, damage: bytes) -> None:
    damaged = BLOCK.replace(text, text[: -len(damage)] + damage)

    with pytest.raises(CorruptFile, match=r"^p/x\.log\.1.*: a header entry is not UTF-8 \("):
        list(scan_frames(pa.BufferReader(damaged), "p/x.log.1"))


def test_a_header_entry_of_any_letters_comes_back() -> None:
    (frame,) = scan_frames(pa.BufferReader(BLOCK.replace(b"SCHEMAS", "é😀s".encode())), "p/x.log.1")

    assert isinstance(frame, BlockFrame)
    assert frame.header == {**HEADER, HeaderKey.SCHEMA: "é😀s"}


def test_a_header_entry_of_another_release_is_refused_by_its_number() -> None:
    number = len(HeaderKey) + 3
    key = HeaderKey.SCHEMA.value.to_bytes(4, "big") + (7).to_bytes(4, "big")
    assert BLOCK.count(key) == 1

    with pytest.raises(UnsupportedTable, match=rf"^p/x\.log\.1.*: header entry {number} is not known to this release"):
        list(scan_frames(pa.BufferReader(BLOCK.replace(key, number.to_bytes(4, "big") + key[4:])), "p/x.log.1"))
