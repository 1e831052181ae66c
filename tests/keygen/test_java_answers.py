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

from pyhudi.java.joda import FarYearError, format_instant
from pyhudi.java.joda_columns import read_local_times
from pyhudi.java.joda_parse import ParseError, parse_text
from pyhudi.java.key_text import text_of
from pyhudi.java.time_zones import FIRST_LOCAL_MS, LAST_LOCAL_MS, SkippedTimeError, Zone, java_zone

LINES = (Path(__file__).parent / "java_answers.tsv").read_text().split("\n")[:-1]
# Of the 500 printed and 1,541 read ones those in the years 1 to 9999, or refused by Joda-Time, too.
FORMATTED, READ = 452, 1530

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


def is_near(millis: str) -> bool:
    """Whether Joda-Time's instant is in the years 1 to 9999; no answer is so close to a bound that zones matter."""
    return FIRST_LOCAL_MS <= int(millis) <= LAST_LOCAL_MS


def test_instants_print_as_joda_time_prints_them() -> None:
    questions = [(question, answer) for question, answer in asked("F") if is_near(question[2])]
    wrong = [
        (question, found, answer)
        for question, answer in questions
        if (found := format_instant(question[0], int(question[2]), java_zone(question[1]))) != answer
    ]
    assert wrong == []
    assert len(questions) == FORMATTED


def test_instants_that_joda_time_prints_before_year_1_or_past_9999_are_refused() -> None:
    far = [question for question, _ in asked("F") if not is_near(question[2])]
    for pattern, zone, millis in far:
        with pytest.raises(FarYearError, match=rf"{millis} are a time outside the years 1 to 9999"):
            format_instant(pattern, int(millis), java_zone(zone))
    assert len(far) == 500 - FORMATTED


def parsed(patterns: str, zone: str, text: str, year: str) -> str:
    try:
        millis, shown_in = parse_text(text, patterns.split(" || "), _zone(zone), int(year))
    except (ParseError, SkippedTimeError):
        return "error"
    return f"{millis}\t{shown_in.id}"


def _zone(name: str) -> Zone | None:
    return java_zone(name) if name else None


def test_text_is_read_as_joda_time_reads_it() -> None:
    questions = [(q, answer) for q, answer in asked("P") if answer == "error" or is_near(answer.split("\t")[0])]
    wrong = [(q, found, answer) for q, answer in questions if (found := parsed(*q)) != answer]
    assert wrong == []
    assert len(questions) == READ


def test_text_that_joda_time_reads_as_before_year_1_or_past_9999_is_refused() -> None:
    far = [q for q, answer in asked("P") if answer != "error" and not is_near(answer.split("\t")[0])]
    for patterns, zone, text, year in far:
        with pytest.raises(ParseError, match=r"must be in \[1,9999\] \(format ['\"]"):
            parse_text(text, patterns.split(" || "), _zone(zone), int(year))
    assert len(far) == 1541 - READ


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("G YYYY", "BC 44"),
        ("G", "BC"),
        ("yyyy", "-44"),
        ("yyyy-MM-dd", "0000-01-01"),
        ("yyyy", "10000"),
        ("yy", "12024"),
        ("x", "10000"),
        ("CCC", "100"),
        ("C", "0"),
        ("xxxx ww e", "9999 52 7"),
        ("yyyy-MM-dd e", "9999-12-31 6"),
    ],
)
def test_every_field_that_leads_out_of_the_years_1_to_9999_is_refused(pattern: str, text: str) -> None:
    with pytest.raises(ParseError, match=rf"must be in \[1,99(99)?\] \(format '{pattern}'\)"):
        parse_text(text, [pattern], None, 2026)


@pytest.mark.parametrize(
    ("pattern", "text", "millis"),
    [
        ("yyyy-MM-dd", "0001-01-01", FIRST_LOCAL_MS),
        ("yyyy-MM-dd HH:mm:ss.SSS", "9999-12-31 23:59:59.999", LAST_LOCAL_MS),
        ("xxxx-ww-e", "9999-52-5", LAST_LOCAL_MS // 86_400_000 * 86_400_000),
        ("yyyy D", "9999 365", LAST_LOCAL_MS // 86_400_000 * 86_400_000),
        ("yyyyyy", "002024", 1_704_067_200_000),
    ],
)
def test_the_first_and_last_days_are_read_and_printed(pattern: str, text: str, millis: int) -> None:
    for zone in ("UTC", "GMT+5", "GMT-11"):
        offset = java_zone(zone).offset_at(0)
        assert parse_text(text, [pattern], java_zone(zone), 2026) == (millis - offset, java_zone(zone))
        assert format_instant(pattern, millis - offset, java_zone(zone)) == text


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
