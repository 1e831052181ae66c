"""Single entries of a block, found by the bytes of their keys, are those that taking the block apart finds."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.formats.hfile.entries import decode_entries, encode_entry
from pyhudi.formats.hfile.single_entries import entries_of_pairs, pairs_in
from tests.support.sweeps import examples

# Keys are text: with zeros and small numbers in them they can look like lengths of other entries.
TEXT = st.one_of(
    st.text("ab\x00\x01\x0d\x05", max_size=4).map(str.encode),
    st.tuples(st.sampled_from([b"", b"a"]), st.sampled_from([b"a", b"b", b""])).map(
        lambda parts: parts[0] + encode_entry(parts[1], b"12345")[: 10 + len(parts[1])]
    ),
)
VALUES = st.one_of(st.text("ab\x00\x01\x0d", max_size=9).map(str.encode), TEXT)


def body_of(entries: dict[bytes, bytes]) -> bytes:
    return b"".join(encode_entry(*entry) for entry in sorted(entries.items()))


@settings(max_examples=examples(500), deadline=None)
@given(st.dictionaries(TEXT, VALUES, max_size=12), st.lists(TEXT, max_size=8, unique=True))
def test_what_is_said_plainly_is_what_taking_the_block_apart_finds(
    entries: dict[bytes, bytes], asked: list[bytes]
) -> None:
    body, keys = body_of(entries), sorted({*asked, *list(entries)[::2]})
    found = pairs_in(body, keys)
    assert decode_entries(body, "x").keys == sorted(entries)
    there = [key for key in keys if key in entries]
    assert found in (None, (there, [entries[key] for key in there]))


def test_a_key_that_ends_as_another_entry_is_not_taken_for_it() -> None:
    whole = encode_entry(b"b", b"12345")
    longer = whole[: 10 + 1]  # the lengths and the key of an entry, as a key of text
    for before in (b"", b"a", b"a\x00\x00"):
        for others in ({}, {b"a": b"1"}, {b"b": b"2"}):
            body = body_of({before + longer: b"12345", **others})
            assert pairs_in(body, [b"b"]) is None, (before, others)
            assert pairs_in(body_of({b"c" + b"x" * len(longer): b"12345", b"b": b"2"}), [b"b"]) == ([b"b"], [b"2"])


def test_a_key_within_a_value_is_left_to_taking_the_block_apart() -> None:
    body = body_of({b"a": b"about key-7 and others"})
    assert pairs_in(body, [b"key-7"]) is None
    assert pairs_in(body, [b"a"]) == ([b"a"], [b"about key-7 and others"])


def test_a_key_whose_bytes_are_nowhere_is_not_there() -> None:
    assert pairs_in(body_of({b"key-1": b"one", b"key-3": b"three"}), [b"key-2", b"key-3"]) == ([b"key-3"], [b"three"])


def test_lengths_that_do_not_fit_are_left_to_taking_the_block_apart() -> None:
    body = bytearray(body_of({b"key-1": b"one", b"key-2": b"two"}))
    second = body.index(b"key-2") - 10
    for place, byte in ((second + 3, 99), (second + 7, 99), (second + 4, 0xFF)):
        damaged = bytearray(body)
        damaged[place] = byte
        assert pairs_in(bytes(damaged), [b"key-2"]) is None, place
        assert pairs_in(bytes(damaged), [b"key-1"]) == ([b"key-1"], [b"one"])
    assert pairs_in(bytes(body[second + 4 :]), [b"key-2"]) is None  # the lengths are not there


def test_pairs_become_entries_with_nothing_else_in_their_content() -> None:
    entries = entries_of_pairs([b"a", b"bc", b"d"], [b"1", b"", b"345"])
    assert entries.content == b"a1bcd345"
    assert entries.keys == [b"a", b"bc", b"d"]
    assert [entries.value(row) for row in range(3)] == [b"1", b"", b"345"]
