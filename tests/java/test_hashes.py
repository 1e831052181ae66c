"""Java's string hash and bucket numbers, against Java and real Hudi."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.errors import ConfigError
from pyhudi.java.hashes import bucket_ids, java_string_hash

# java.util.Objects.hashCode of each text, by a JVM.
FROM_JAVA = {
    "": 0, "a": 97, "abcd": 2987074, "é": 233, "日本": 835047, "😀x": 54959989, "ключ-1": 1946026974,
    "ÿÿÿÿÿ": 243347775, "x" * 40 + "ü": 496293116, "\u0000z": 122,
    "polygenelubricants": -2147483648, "Hello, world": -476288596,
}  # fmt: skip


def test_hash_codes_are_javas() -> None:
    assert java_string_hash(pa.array(FROM_JAVA)).tolist() == list(FROM_JAVA.values())
    assert [int(java_string_hash(pa.array([text]))[0]) for text in FROM_JAVA] == list(FROM_JAVA.values())


def _by_the_book(text: str) -> int:
    value = 0
    units = text.encode("utf-16-le")
    for at in range(0, len(units), 2):
        value = (31 * value + int.from_bytes(units[at : at + 2], "little")) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


@given(
    st.lists(st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=30), max_size=40), st.integers(0, 5)
)
def test_hash_codes_follow_the_definition(texts: list[str | None], first: int) -> None:
    texts_array = pa.array(texts, pa.string()).slice(first)

    assert java_string_hash(texts_array).tolist() == [0 if t is None else _by_the_book(t) for t in texts[first:]]


def test_every_golden_bucket_is_found(shared: Path) -> None:
    cases = json.loads((shared / "golden" / "bucket-cases.json").read_text())["cases"]
    assert len(cases) > 200
    for case in cases:
        fields = case["index_key_fields"].split(",")
        found = bucket_ids(pa.array([case["record_key"]]), fields, case["num_buckets"])
        assert found.tolist() == [case["bucket"]], case


def test_a_column_of_all_golden_keys_gives_the_same_buckets_as_one_by_one(shared: Path) -> None:
    cases = json.loads((shared / "golden" / "bucket-cases.json").read_text())["cases"]
    for fields in {case["index_key_fields"] for case in cases}:
        group = [case for case in cases if case["index_key_fields"] == fields and case["num_buckets"] == 256]
        keys = pa.array([case["record_key"] for case in group])
        assert bucket_ids(keys, fields.split(","), 256).tolist() == [case["bucket"] for case in group]


def test_control_characters_in_keys_do_not_cut_them() -> None:
    keys = pa.array(["id:a\x01b\x02c,n:1", "id:a,n:1"])
    alone = [bucket_ids(pa.array([text]), ["id", "n"], 1 << 30)[0] for text in keys.to_pylist()]

    assert bucket_ids(keys, ["id", "n"], 1 << 30).tolist() == alone
    assert alone[0] == (31 * (31 + _by_the_book("a\x01b\x02c")) + _by_the_book("1")) % (1 << 31) % (1 << 30)


def test_a_bucket_number_needs_a_bucket() -> None:
    with pytest.raises(ConfigError, match="at least 1 bucket"):
        bucket_ids(pa.array(["a"]), ["id"], 0)
