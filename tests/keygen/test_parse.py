"""From keys and paths back to values."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pyhudi import keygen
from pyhudi.errors import KeyGenError
from pyhudi.keygen.parse import partition_values, record_key_values, split_partition_path
from pyhudi.keygen.partition_path import url_decode, url_encode
from tests.support.sweeps import examples

WRITE = "hoodie.datasource.write."
values = st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=6)


@given(st.text(st.characters(codec="utf-8")))
def test_url_encoding_can_be_undone(text: str) -> None:
    assert url_decode(url_encode(text)) == text


def test_a_percent_without_two_hex_digits_stays() -> None:
    assert url_decode("50%25 or 50% or %zz%2") == "50% or 50% or %zz%2"


@pytest.mark.parametrize("hive", [True, False])
@settings(max_examples=examples(50), deadline=None)
@given(first=values, second=values)
def test_encoded_partition_paths_give_their_values_back(hive: bool, first: str | None, second: str | None) -> None:
    assume(not {first, second} & {"__HIVE_DEFAULT_PARTITION__", ".", "..", ".hoodie"})
    options = {
        WRITE + "recordkey.field": "id",
        WRITE + "partitionpath.field": "a,b.c",
        WRITE + "partitionpath.urlencode": "true",
        WRITE + "hive_style_partitioning": str(hive).lower(),
    }
    nested = pa.array([{"c": second}], pa.struct([("c", pa.string())]))
    batch = pa.record_batch({"id": ["k"], "a": pa.array([first], pa.string()), "b": nested})
    path = keygen.from_options(options).columns(batch).partition_path[0].as_py()

    # The empty string and null share the default partition.
    assert partition_values(path, ["a", "b.c"], hive, True) == (first or None, second or None)


@pytest.mark.parametrize(
    ("path", "fields", "hive", "expected"),
    [
        ("x", ["p"], False, ("x",)),
        ("p=x", ["p"], True, ("x",)),
        ("p=a=b", ["p"], True, ("a=b",)),
        ("a/b/c", ["p"], False, ("a/b/c",)),
        ("p=2024/01/15", ["p"], True, ("2024/01/15",)),
        ("p=a/b/q=1", ["p", "q"], True, ("a/b", "1")),
        ("us/1", ["p", "q"], False, ("us", "1")),
        ("p=us/q=1", ["p", "q"], False, ("us", "1")),
        ("default/__HIVE_DEFAULT_PARTITION__", ["p", "q"], False, ("default", None)),
        ("", [], False, ()),
    ],
)
def test_partition_paths_are_divided_among_their_fields(
    path: str, fields: list[str], hive: bool, expected: tuple[str | None, ...]
) -> None:
    assert partition_values(path, fields, hive, False) == expected


def test_below_version_5_the_default_partition_has_another_name() -> None:
    assert partition_values("default/x", ["p", "q"], False, False, old_default=True) == (None, "x")


def test_slash_separated_dates_come_back_with_dashes() -> None:
    assert partition_values("2024/01/15", ["d"], False, False, slash_dates=True) == ("2024-01-15",)


def test_a_path_that_does_not_fit_its_fields_is_not_guessed() -> None:
    assert split_partition_path("us/2024/01/15", ["region", "ts"], False) is None
    with pytest.raises(KeyGenError, match="can't be divided among the partition fields region, ts"):
        partition_values("us/2024/01/15", ["region", "ts"], False, False)
    with pytest.raises(KeyGenError, match="can't be divided"):
        partition_values("a/b", [], False, False)


@pytest.mark.parametrize(
    ("key", "fields", "expected"),
    [
        ("a", ["id"], ("a",)),
        ("12:30,x", ["id"], ("12:30,x",)),
        ("id:a:2,b", ["id"], ("a:2,b",)),
        ("id:a,n:1", ["id", "n"], ("a", "1")),
        ("id:__null__,n:__empty__", ["id", "n"], (None, "")),
        ("at:2024-01-15 09:30:00.0,who:x,y", ["at", "who"], ("2024-01-15 09:30:00.0", "x,y")),
        ("a.b:k,id:i", ["a.b", "id"], ("k", "i")),
    ],
)
def test_record_keys_give_their_values_back(key: str, fields: list[str], expected: tuple[str | None, ...]) -> None:
    assert record_key_values(key, fields) == expected


@pytest.mark.parametrize("key", ["a", "id:a", "n:1,id:a", "id:a n:1"])
def test_a_key_of_another_form_is_refused(key: str) -> None:
    with pytest.raises(KeyGenError, match=r"does not have the form id:\.{3},n:\.{3}"):
        record_key_values(key, ["id", "n"])


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(st.none() | st.text("abc-/ é", max_size=4), min_size=2, max_size=4).filter(any))
def test_keys_without_colons_and_commas_can_be_undone(parts: list[str | None]) -> None:
    fields = [f"f{number}" for number in range(len(parts))]
    batch = pa.record_batch({field: pa.array([part], pa.string()) for field, part in zip(fields, parts, strict=True)})
    options = {WRITE + "recordkey.field": ",".join(fields)}
    key = keygen.from_options(options).columns(batch).record_key[0].as_py()

    assert record_key_values(key, fields) == tuple(parts)


def test_the_form_of_single_complex_keys_is_seen_in_a_sample() -> None:
    assert keygen.detect_single_key_encoding(["id:a", "id:b"], "id") == "FIELD_PREFIXED"
    assert keygen.detect_single_key_encoding(["a", "x:b"], "id") == "VALUE_ONLY"
    assert keygen.detect_single_key_encoding([], "id") is None
    with pytest.raises(KeyGenError, match="silent duplicates"):
        keygen.detect_single_key_encoding(["id:a", "b"], "id")
