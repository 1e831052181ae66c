"""Joda-Time patterns and Java texts against what Joda-Time 2.14.1 and Java 17 answered.

`java_answers.tsv` has a question and an answer per line: F pattern, zone, milliseconds (format); P patterns, zone,
text, current year (parse; the answer is milliseconds and zone); D and f bits of a double and a float; S milliseconds
(java.sql.Timestamp in UTC); L days (java.time.LocalDate).
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from pyhudi.java.calendar import SkippedTimeError, Zone, java_zone
from pyhudi.java.joda import format_instant
from pyhudi.java.joda_columns import read_local_times
from pyhudi.java.joda_parse import ParseError, parse_text
from pyhudi.java.key_text import text_of

LINES = (Path(__file__).parent / "java_answers.tsv").read_text().split("\n")[:-1]
ANSWERS = [(question.split("\t"), answer) for question, answer in (line.split("\t=>\t") for line in LINES)]


@pytest.fixture(autouse=True)
def unknown_zones_are_meant() -> None:
    warnings.filterwarnings("ignore", message="Time zone .* is not a name")


def asked(kind: str) -> list[tuple[list[str], str]]:
    return [(question[1:], answer) for question, answer in ANSWERS if question[0] == kind]


def test_there_are_thousands_of_answers() -> None:
    assert {kind: len(asked(kind)) for kind in "FPDfSL"} == {
        "F": 500,
        "P": 1541,
        "D": 1182,
        "f": 567,
        "S": 200,
        "L": 150,
    }


def test_instants_print_as_joda_time_prints_them() -> None:
    wrong = [
        (question, found, answer)
        for question, answer in asked("F")
        if (found := format_instant(question[0], int(question[2]), java_zone(question[1]))) != answer
    ]
    assert wrong == []


def parsed(patterns: str, zone: str, text: str, year: str) -> str:
    try:
        millis, shown_in = parse_text(text, patterns.split(" || "), _zone(zone), int(year))
    except (ParseError, SkippedTimeError):
        return "error"
    return f"{millis}\t{shown_in.id}"


def _zone(name: str) -> Zone | None:
    return java_zone(name) if name else None


def test_text_is_read_as_joda_time_reads_it() -> None:
    wrong = [(q, found, answer) for q, answer in asked("P") if (found := parsed(*q)) != answer]
    assert wrong == []


def test_whole_columns_are_read_as_joda_time_reads_each_text() -> None:
    read = 0
    for (patterns, zone, text, _), answer in asked("P"):
        local, known = read_local_times(pa.array([text]), patterns.split(" || ")[0], _zone(zone), None)
        if known[0]:
            assert answer != "error", (patterns, zone, text)
            millis, shown_in = answer.split("\t")
            own_offset = Zone(shown_in, _offset_ms(shown_in)) if shown_in[0] in "+-" else java_zone(shown_in)
            if "Z" in patterns and zone:
                own_offset = java_zone(zone)
            assert local[0] == int(millis) + own_offset.offset_at(int(millis)), (patterns, zone, text)
            read += 1
    assert read > 150


def _offset_ms(text: str) -> int:
    minutes = int(text[1:3]) * 60 + int(text[4:6])
    return (-minutes if text[0] == "-" else minutes) * 60_000


@pytest.mark.parametrize(("kind", "bits", "numbers"), [("D", "int64", pa.float64()), ("f", "int32", pa.float32())])
def test_floating_point_numbers_print_as_java_17_prints_them(kind: str, bits: str, numbers: pa.DataType) -> None:
    questions = asked(kind)
    column = pa.array(np.array([int(q[0]) for q, _ in questions], bits)).view(numbers)

    assert text_of(column).to_pylist() == [answer for _, answer in questions]


def test_timestamps_print_as_java_sql_timestamp() -> None:
    questions = asked("S")
    column = pa.array([int(q[0]) for q, _ in questions], pa.timestamp("ms", tz="UTC"))

    assert text_of(column, consistent_timestamps=True).to_pylist() == [answer for _, answer in questions]


def test_modern_timestamps_take_the_fast_way_to_the_same_text() -> None:
    questions = [(q, answer) for q, answer in asked("S") if int(q[0]) > 0]
    column = pa.array([int(q[0]) for q, _ in questions], pa.timestamp("ms", tz="UTC"))

    assert text_of(column, consistent_timestamps=True).to_pylist() == [answer for _, answer in questions]


def test_dates_print_as_java_time_local_date() -> None:
    questions = asked("L")
    column = pa.array([int(q[0]) for q, _ in questions], pa.int32()).cast(pa.date32())

    assert text_of(column).to_pylist() == [answer for _, answer in questions]
