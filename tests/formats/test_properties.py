"""Properties text against java.util.Properties itself and against every hoodie.properties that real Hudi wrote."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.errors import CorruptFile
from pyhudi.formats.properties import (
    PROPERTIES_BYTES_MAX,
    date_comment,
    ends_with_line,
    parse_properties,
    print_properties,
    readable_properties,
)
from pyhudi.model.new_table import CHECKSUM_KEY, has_valid_checksum, table_checksum

JAVA = json.loads((Path(__file__).parent / "java_properties.json").read_text())

# Java strings are UTF-16: a lone half of a pair can't be told from a character, so leave those out.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@pytest.mark.parametrize(("key", "value", "line"), JAVA["store"])
def test_a_printed_line_is_the_one_that_java_writes(key: str, value: str, line: str) -> None:
    assert print_properties({key: value}).decode("iso-8859-1") == line


@pytest.mark.parametrize(("text", "expected"), JAVA["load"])
def test_a_parsed_text_is_what_java_reads(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text.encode("iso-8859-1"), "test") == expected


@pytest.mark.parametrize(
    ("data", "properties", "is_cut"),
    [
        (b"a=1\nb=2\n", {"a": "1", "b": "2"}, False),
        (b"a=1\nb=2", {"a": "1"}, True),
        (b"a=1\rb=2\r", {"a": "1", "b": "2"}, False),
        (b"a=1\r\nb", {"a": "1"}, True),
        (b"a=1\nb=2\\\n", {"a": "1"}, True),  # a backslash continues the line
        (b"a=1\nb=2\\\\\n", {"a": "1", "b": "2\\"}, False),
        (b"a=1\nb=2\\\n 3\nc=4", {"a": "1", "b": "23"}, True),
        (b"a=1\n\x00\x00=\nb=\\u00\nc=3\n", {"a": "1", "c": "3"}, False),
        (b"", {}, False),
        (b"a=1", {}, True),
    ],
)
def test_of_damaged_text_whole_lines_are_read(data: bytes, properties: dict[str, str], is_cut: bool) -> None:
    assert readable_properties(data, "test") == properties
    assert ends_with_line(data) is not is_cut


@given(st.dictionaries(TEXTS, TEXTS, max_size=5))
def test_properties_survive_print_and_parse(properties: dict[str, str]) -> None:
    assert parse_properties(print_properties(properties, ("made by a test",)), "test") == properties


@given(st.binary(max_size=60))
def test_any_bytes_are_parsed_or_refused(data: bytes) -> None:
    with suppress(CorruptFile):
        parsed = parse_properties(data, "test")
        assert parse_properties(print_properties(parsed), "again") == parsed


def test_every_golden_table_has_a_checksum_that_we_agree_with(shared: Path) -> None:
    checked = 0
    for archive in sorted((shared / "golden").glob("*/*.zip")):
        with zipfile.ZipFile(archive) as table:
            for name in table.namelist():
                if name.endswith("/.hoodie/hoodie.properties"):
                    properties = parse_properties(table.read(name), name)
                    assert has_valid_checksum(properties), name
                    checked += 1
    assert checked >= 200


def test_the_checksum_of_a_table_without_database_hashes_a_leading_dot() -> None:
    # From the golden table 1.2.0/keys_typed.
    assert table_checksum({"hoodie.table.name": "keys_typed"}) == "253243284"


def test_the_checksum_is_printed_last_so_that_a_cut_file_lacks_it() -> None:
    printed = print_properties({"z": "1", CHECKSUM_KEY: "7", "a": "2"})

    assert printed.decode().splitlines() == ["a=2", "z=1", f"{CHECKSUM_KEY}=7"]


def test_a_broken_unicode_escape_is_refused_with_the_file_name() -> None:
    with pytest.raises(CorruptFile, match=r"hoodie\.properties.*'12x4'"):
        parse_properties(b"a=\\u12x4\n", "hoodie.properties")


def test_a_block_of_zero_bytes_is_refused() -> None:
    with pytest.raises(CorruptFile, match="at byte 4"):
        parse_properties(b"a=b\n\x00\x00\x00", "hoodie.properties")


def test_dates_are_printed_as_java_util_date_does() -> None:
    assert date_comment(1752368736123) == "Sun Jul 13 01:05:36 UTC 2025"


def test_lines_that_go_on_and_on_are_read_in_linear_time() -> None:
    """One line of 1 MB: a second of processor time, in a process of its own; joined line by line it were minutes."""
    program = """
import resource
resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
from pyhudi.formats.properties import parse_properties
found = parse_properties(b"a=" + b"b\\\\\\n" * 500_000, "test")
assert found == {"a": "b" * 500_000}
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"a=b\\\n  c\n", "bc"),
        (b"a=b\\\\\\\n\\\n!c\n", "b\\!c"),
        (b"a=b\\\n\nc=d\n", "b"),
        (b"a=b\\\n#c\n", "b#c"),
        (b"a=b\\", "b"),
        (b"a=~\nb=c", "~"),
        (b"\\\n\\\na=b", "b"),
    ],
)
def test_continued_lines_are_joined_as_java_does(text: bytes, value: str) -> None:
    assert parse_properties(text, "test")["a"] == value


def test_a_file_that_is_too_large_to_be_properties_is_refused() -> None:
    with pytest.raises(CorruptFile, match="at most"):
        parse_properties(b"#" + b"x" * PROPERTIES_BYTES_MAX, "test")


def test_half_a_surrogate_pair_in_a_table_name_is_hashed_as_java_does() -> None:
    assert table_checksum({"hoodie.table.name": "\ud800"}) == table_checksum({"hoodie.table.name": "?"})
