"""The regular expression between date formats comes from options or from a table: it is run in linear time."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pyhudi.errors import ConfigError
from pyhudi.keygen.timestamp import TimeSettings


def formats(text: str, delimiter: str) -> tuple[str, ...]:
    return TimeSettings.parse(
        {
            "timestamp.type": "DATE_STRING",
            "input.dateformat": text,
            "input.dateformat.list.delimiter.regex": delimiter,
            "output.dateformat": "yyyy",
        }
    ).input_formats


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("yyyy,MM", ""),
        ("yyyy;MM", ";"),
        ("yyyy|MM", r"\|"),
        ("yyyy | MM", r"\s*\|\s*"),
        ("yyyy|,MM", "[|,]+"),
        ("yyyy<>MM", "(<)(>)"),  # groups are no formats
        (",yyyy,,MM,", ","),
    ],
)
def test_formats_are_split(text: str, delimiter: str) -> None:
    assert formats(text, delimiter) == ("yyyy", "MM")


def test_an_expression_that_matches_no_text_splits_everywhere() -> None:
    assert formats("HmH", "x*") == ("H", "m", "H")


@pytest.mark.parametrize("delimiter", ["(?=,)", r"(,)\1", ",*+", "(", "((((a{100}){100}){100}){100})", "\ud800"])
def test_an_expression_that_can_explode_is_refused(delimiter: str) -> None:
    with pytest.raises(ConfigError, match="linear time"):
        formats("yyyy,MM", delimiter)


def test_an_expression_that_would_explode_takes_no_time() -> None:
    program = """
import resource
resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
from pyhudi.keygen.timestamp import TimeSettings
TimeSettings.parse({
    "timestamp.type": "DATE_STRING", "input.dateformat": "'" + "a" * 5000 + "'", "output.dateformat": "yyyy",
    "input.dateformat.list.delimiter.regex": "(a+)+,",
})
"""
    subprocess.run([sys.executable, "-c", program], check=True)
