"""Functions and operators on dates, moments, local times and intervals.

Source: Spark's SQL reference, "Date and Timestamp Functions"; java.time.LocalDateTime.until.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta

import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.expressions.casts import cast, implicit_cast
from pyhudi.expressions.functions.date_patterns import printed, read_time
from pyhudi.expressions.functions.registry import Arguments, Row, Rule, call, constant_text, once
from pyhudi.expressions.tree import Expression, TypedColumn, TypedLiteral
from pyhudi.expressions.types import (
    DATE,
    DAYS,
    DAYS_TO_SECONDS,
    DOUBLE,
    INT,
    LOCAL_TIME,
    LONG,
    MOMENT,
    STRING,
    YEARS_TO_MONTHS,
    is_integral,
    is_number,
    is_time,
    name_of,
)

__all__ = ["MACROS", "ROWS", "ZONED", "extracted", "interval_of", "time_arithmetic"]

MACROS: Mapping[str, str] = {
    "spark_local(t)": "CAST(t AS TIMESTAMP)",
    "spark_whole_micros(t)": (
        "CASE WHEN epoch_ns(t) % 1000 <> 0 THEN error('a time has nanoseconds, which Spark has not') ELSE t END"
    ),
    "spark_end_day(a, b)": (
        "CASE WHEN CAST(b AS DATE) > CAST(a AS DATE) AND CAST(b AS TIME) < CAST(a AS TIME) THEN CAST(b AS DATE) - 1 "
        "WHEN CAST(b AS DATE) < CAST(a AS DATE) AND CAST(b AS TIME) > CAST(a AS TIME) THEN CAST(b AS DATE) + 1 "
        "ELSE CAST(b AS DATE) END"
    ),
    "spark_packed(d)": "(year(d) * 12 + month(d)) * 32 + day(d)",
    "spark_months(a, b)": "(spark_packed(spark_end_day(a, b)) - spark_packed(CAST(a AS DATE))) // 32",
    "spark_next_day(d, n)": "CAST(d + CAST((n - isodow(d) + 6) % 7 + 1 AS INTEGER) AS DATE)",
}

_MICROS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 604_800_000_000,
}
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}


def _part(text: str, kind: pa.DataType = DATE, result: pa.DataType = INT) -> Row:
    return Row(f"CAST({text} AS INTEGER)" if result == INT else text, result, (kind,))


_ISO_YEAR, _SECOND = "isoyear({0})", "floor(second({0}))"
_FIELDS: Mapping[str, Rule] = {
    **dict.fromkeys(("YEAR", "Y", "YEARS", "YR", "YRS"), _part("year({0})")),
    **dict.fromkeys(("YEAROFWEEK",), _part(_ISO_YEAR)),
    **dict.fromkeys(("QUARTER", "QTR"), _part("quarter({0})")),
    **dict.fromkeys(("MONTH", "MON", "MONS", "MONTHS"), _part("month({0})")),
    **dict.fromkeys(("WEEK", "W", "WEEKS"), _part("weekofyear({0})")),
    **dict.fromkeys(("DAY", "D", "DAYS"), _part("day({0})")),
    **dict.fromkeys(("DAYOFWEEK", "DOW"), _part("dayofweek({0}) + 1")),
    **dict.fromkeys(("DAYOFWEEK_ISO", "DOW_ISO"), _part("isodow({0})")),
    **dict.fromkeys(("DOY",), _part("dayofyear({0})")),
    **dict.fromkeys(("HOUR", "H", "HOURS", "HR", "HRS"), _part("hour({0})", MOMENT)),
    **dict.fromkeys(("MINUTE", "M", "MIN", "MINS", "MINUTES"), _part("minute({0})", MOMENT)),
    **dict.fromkeys(
        ("SECOND", "S", "SEC", "SECONDS", "SECS"),
        Row(
            "CAST((epoch_us({0}) % 60000000 + 60000000) % 60000000 / 1000000 AS DECIMAL(8,6))",
            pa.decimal128(8, 6),
            (MOMENT,),
        ),
    ),
}


def extracted(name: str, field: str, value: Expression) -> Expression:
    """Make EXTRACT(field FROM value). Raises ConfigError for an unknown field."""
    rule = _FIELDS.get(field.upper())
    if rule is None:
        raise ConfigError(f"{name} takes no field {field!r} without Spark.")
    return rule(name, [value])


def _date_part(name: str, arguments: Arguments) -> Expression:
    if len(arguments) != 2:
        raise ConfigError(f"{name} takes 2 arguments, found {len(arguments)}.")
    return extracted(name, constant_text(name, arguments[0], "the field"), arguments[1])


def unit_of(name: str, value: Expression) -> str:
    """The unit that a function's first argument names, a word without quotes. Raises ConfigError."""
    if isinstance(value, TypedColumn) and len(value.path) == 1 and value.type == pa.null():
        return value.path[0].upper()
    raise ConfigError(f"{name} takes a unit first, such as DAY.")


def _difference(name: str, arguments: Arguments) -> Expression:
    if len(arguments) == 2:
        return Row("CAST({0} - {1} AS INTEGER)", INT, (DATE, DATE))(name, arguments)
    if len(arguments) != 3:
        raise ConfigError(f"{name} takes 3 arguments, found {len(arguments)}.")
    unit = unit_of(name, arguments[0])
    if unit in _MONTHS:
        text = f"spark_months(spark_local({{0}}), spark_local({{1}})) // {_MONTHS[unit]}"
    elif unit in _MICROS:
        text = f"(epoch_us(spark_local({{1}})) - epoch_us(spark_local({{0}}))) // {_MICROS[unit]}"
    else:
        raise ConfigError(f"{name} knows no unit {unit}.")
    return Row(f"CAST({text} AS BIGINT)", LONG, (MOMENT, MOMENT))(name, arguments[1:])


def _added(sign: int) -> Rule:
    def rule(name: str, arguments: Arguments) -> Expression:
        if len(arguments) == 2:
            if not is_integral(arguments[1].type) and arguments[1].type != STRING:
                raise ConfigError(f"{name} takes a whole number of days, found {name_of(arguments[1].type)}.")
            text = f"CAST({{0}} {'+' if sign > 0 else '-'} {{1}} AS DATE)"
            return Row(text, DATE, (DATE, INT))(name, arguments)
        if len(arguments) != 3 or sign < 0:
            raise ConfigError(f"{name} takes 2 arguments, found {len(arguments)}.")
        unit, value = unit_of(name, arguments[0]), arguments[2]
        if unit in _MONTHS:
            step = f"to_months(CAST({{1}} * {_MONTHS[unit]} AS INTEGER))"
        elif unit in ("DAY", "WEEK"):
            step = f"to_days(CAST({{1}} * {7 if unit == 'WEEK' else 1} AS INTEGER))"
        elif unit in _MICROS:
            step = f"to_microseconds(CAST({{1}} AS BIGINT) * {_MICROS[unit]})"
        else:
            raise ConfigError(f"{name} knows no unit {unit}.")
        kind = LOCAL_TIME if value.type == LOCAL_TIME else MOMENT
        return Row(f"({{0}} + {step})", kind, (kind, INT))(name, [value, arguments[1]])

    return rule


def time_arithmetic(sign: str, left: Expression, right: Expression) -> Expression | None:
    """Make a sum or difference with a date, a time or an interval in it; None if it has none of these."""
    kinds = (left.type, right.type)
    intervals = (DAYS, DAYS_TO_SECONDS, YEARS_TO_MONTHS)
    if sign == "+" and is_time(right.type) and (left.type in intervals or is_integral(left.type)):
        return time_arithmetic(sign, right, left)
    if not any(is_time(kind) or kind in intervals for kind in kinds):
        return None
    if is_time(left.type) and right.type in intervals:
        return _moved(sign, left, right)
    if left.type == DATE and (is_integral(right.type) or right.type == pa.null()):
        return call(sign, f"CAST({{0}} {sign} {{1}} AS DATE)", DATE, left, cast(right, INT))
    if sign == "-" and kinds == (DATE, DATE):
        return call(sign, "to_days(CAST({0} - {1} AS INTEGER))", DAYS, left, right)
    if sign == "-" and is_time(left.type) and is_time(right.type):
        kind = MOMENT if MOMENT in kinds else LOCAL_TIME
        sides = [cast(left, kind), cast(right, kind)]
        return call(sign, "to_microseconds(epoch_us({0}) - epoch_us({1}))", DAYS_TO_SECONDS, *sides)
    raise ConfigError(f"{name_of(left.type)} {sign} {name_of(right.type)} needs Spark, or Spark refuses it.")


def _moved(sign: str, value: Expression, interval: Expression) -> Expression:
    if value.type == DATE:
        if interval.type == DAYS_TO_SECONDS:
            raise ConfigError("a date and an interval with hours needs Spark.")
        return call(sign, f"CAST({{0}} {sign} {{1}} AS DATE)", DATE, value, interval)
    return call(sign, f"({{0}} {sign} {{1}})", value.type, value, interval)


_SINGULAR = {f"{unit}S": unit for unit in (*_MICROS, *_MONTHS)}


def interval_of(number: str, unit: str) -> TypedLiteral:
    """Make the constant of INTERVAL number unit. Raises ConfigError for other forms."""
    unit = _SINGULAR.get(unit.upper(), unit.upper())
    try:
        value = int(number.strip())
    except ValueError:
        raise ConfigError(f"INTERVAL {number!r} {unit} needs Spark; a whole number of one unit is known.") from None
    if unit in ("DAY", "WEEK"):
        return TypedLiteral(timedelta(days=value * (7 if unit == "WEEK" else 1)), DAYS)
    if unit in _MICROS:
        return TypedLiteral(timedelta(microseconds=value * _MICROS[unit]), DAYS_TO_SECONDS)
    if unit in _MONTHS:
        months = pa.MonthDayNano((value * _MONTHS[unit], 0, 0))  # type: ignore[call-arg, arg-type]
        return TypedLiteral(months, YEARS_TO_MONTHS)
    raise ConfigError(f"INTERVAL in {unit} needs Spark.")


_TRUNCATED = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "year"),
    "QUARTER": "quarter",
    **dict.fromkeys(("MONTH", "MM", "MON"), "month"),
    "WEEK": "week",
}
_TRUNCATED_TIMES = {
    **_TRUNCATED,
    **dict.fromkeys(("DAY", "DD"), "day"),
    **{unit: unit.lower() for unit in ("HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND")},
}


def _trunc(name: str, arguments: Arguments) -> Expression:
    if len(arguments) != 2:
        raise ConfigError(f"{name} takes 2 arguments, found {len(arguments)}.")
    unit = _TRUNCATED.get(constant_text(name, arguments[1], "the unit").upper())
    text = "CAST(NULL AS DATE)" if unit is None else f"CAST(date_trunc('{unit}', {{0}}) AS DATE)"
    return Row(text, DATE, (DATE,))(name, arguments[:1])


def _date_trunc(name: str, arguments: Arguments) -> Expression:
    if len(arguments) != 2:
        raise ConfigError(f"{name} takes 2 arguments, found {len(arguments)}.")
    unit = _TRUNCATED_TIMES.get(constant_text(name, arguments[0], "the unit").upper())
    text = "CAST(NULL AS TIMESTAMPTZ)" if unit is None else f"date_trunc('{unit}', {{0}})"
    return Row(text, MOMENT, (MOMENT,))(name, arguments[1:])


_WEEKDAY_NAMES = {
    form: at
    for at, names in enumerate(
        ("MO MON MONDAY", "TU TUE TUESDAY", "WE WED WEDNESDAY", "TH THU THURSDAY", "FR FRI FRIDAY", "SA SAT SATURDAY",
         "SU SUN SUNDAY"), 1
    )
    for form in names.split()
}  # fmt: skip


def _next_day(name: str, arguments: Arguments) -> Expression:
    if len(arguments) != 2:
        raise ConfigError(f"{name} takes 2 arguments, found {len(arguments)}.")
    day = _WEEKDAY_NAMES.get(constant_text(name, arguments[1], "the day").strip().upper())
    if day is None:
        raise ConfigError(f"{name} takes the name of a day such as 'MON'.")
    return Row(f"spark_next_day({{0}}, {day})", DATE, (DATE,))(name, arguments[:1])


def formatted(zone: str, name: str, arguments: Arguments) -> Expression:
    """Make date_format in a session's zone. Raises ConfigError."""
    if len(arguments) != 2:
        raise ConfigError(f"{name} takes 2 arguments, found {len(arguments)}.")
    body = printed(constant_text(name, arguments[1], "the pattern"), zone)
    text = once(body.replace("(t)", "(v)").replace("(t,", "(v,")).replace("[{0}]", "[CAST({0} AS TIMESTAMP)]")
    return Row(text, STRING, (MOMENT,))(name, arguments[:1])


def from_unixtime(zone: str, name: str, arguments: Arguments) -> Expression:
    """Make from_unixtime in a session's zone. Raises ConfigError."""
    if not 1 <= len(arguments) <= 2:
        raise ConfigError(f"{name} takes 1 or 2 arguments, found {len(arguments)}.")
    pattern = constant_text(name, arguments[1], "the pattern") if len(arguments) == 2 else "yyyy-MM-dd HH:mm:ss"
    seconds = implicit_cast(arguments[0], LONG)
    if seconds is None:
        raise ConfigError(f"{name} takes a whole number of seconds, found {name_of(arguments[0].type)}.")
    return formatted(zone, name, [cast(seconds, MOMENT), TypedLiteral(pattern, STRING)])


def _read(to: pa.DataType, *, tries: bool = False) -> Rule:
    """The rule for to_date, to_timestamp and others, with or without a pattern."""

    def rule(name: str, arguments: Arguments) -> Expression:
        if not 1 <= len(arguments) <= 2:
            raise ConfigError(f"{name} takes 1 or 2 arguments, found {len(arguments)}.")
        kind = DATE if to == DATE else MOMENT
        if len(arguments) == 1 or arguments[0].type != STRING:
            value = implicit_cast(arguments[0], kind) if not is_number(arguments[0].type) else None
            if value is None:
                raise ConfigError(f"{name} takes no argument of type {name_of(arguments[0].type)} here.")
            moment = cast(arguments[0], kind, tries=tries)
        else:
            regex, time = read_time(constant_text(name, arguments[1], "the pattern"))
            quoted = regex.replace("'", "''")
            other = "CAST('not in the pattern: ' || v AS TIMESTAMPTZ)"
            whole = f"CASE WHEN regexp_full_match(v, '{quoted}') THEN {time} ELSE {other} END"
            text = f"list_transform([{{0}}], lambda v: {f'TRY({whole})' if tries else whole})[1]"
            if kind == DATE:
                text = f"CAST({text} AS DATE)"
            moment = call(name, text, kind, arguments[0])
        if to == LONG:  # the fraction of a second is truncated, also before 1970
            return call(name, "(epoch_us({0}) // 1000000)", LONG, moment)
        return moment

    return rule


def _unix_timestamp(name: str, arguments: Arguments) -> Expression:
    if not arguments:
        raise ConfigError(f"{name} without arguments needs Spark.")
    whole = arguments
    if arguments[0].type == STRING and len(arguments) == 1:
        whole = [arguments[0], TypedLiteral("yyyy-MM-dd HH:mm:ss", STRING)]
    return _read(LONG)(name, whole)


def _only(kind: pa.DataType, text: str, result: pa.DataType) -> Rule:
    """The rule for a function of a type to which Spark casts no other type implicitly."""

    def rule(name: str, arguments: Arguments) -> Expression:
        if len(arguments) != 1 or arguments[0].type not in (kind, pa.null()):
            raise ConfigError(f"{name} takes one {name_of(kind)}.")
        return Row(text, result, (kind,))(name, arguments)

    return rule


_SECONDS = pa.decimal128(16, 6)


def _make_timestamp(name: str, arguments: Arguments) -> Expression:
    text = (
        "CAST(make_timestamp({0}, {1}, {2}, {3}, {4}, 0) + to_microseconds(CASE WHEN {5} < 60 AND {5} >= 0 "
        "THEN CAST({5} * 1000000 AS BIGINT) ELSE error('seconds from 0 to 59.999999') END) AS TIMESTAMPTZ)"
    )
    return Row(text, MOMENT, (INT, INT, INT, INT, INT, _SECONDS))(name, arguments)


def _zone_text(name: str, value: Expression) -> str:
    zone = constant_text(name, value, "the zone")
    if not zone or not all(char.isalnum() or char in "/_+-" for char in zone) or zone[0] in "+-":
        raise ConfigError(f"{name} takes the name of a zone such as 'Europe/Berlin' without Spark, found {zone!r}.")
    return zone


def _zone_shift(text: str) -> Rule:
    def rule(name: str, arguments: Arguments) -> Expression:
        if len(arguments) != 2:
            raise ConfigError(f"{name} takes 2 arguments, found {len(arguments)}.")
        shifted = text.replace("ZONE", _zone_text(name, arguments[1]))
        return Row(shifted, MOMENT, (MOMENT,))(name, arguments[:1])

    return rule


def _convert_timezone(name: str, arguments: Arguments) -> Expression:
    if len(arguments) != 3:
        raise ConfigError(f"{name} without Spark takes 3 arguments, found {len(arguments)}.")
    source, target = (_zone_text(name, zone) for zone in arguments[:2])
    return Row(f"timezone('{target}', timezone('{source}', {{0}}))", LOCAL_TIME, (LOCAL_TIME,))(name, arguments[2:])


def _seconds(name: str, arguments: Arguments) -> Expression:
    [value] = arguments
    if pa.types.is_decimal(value.type):
        return call(name, "make_timestamptz(CAST(trunc({0} * 1000000) AS BIGINT))", MOMENT, value)
    kind = LONG if is_integral(value.type) else DOUBLE
    return cast(cast(value, kind), MOMENT)


# Functions whose text depends on the session's zone.
ZONED: Mapping[str, Callable[[str, str, Arguments], Expression]] = {
    "date_format": formatted,
    "from_unixtime": from_unixtime,
}
ROWS: Mapping[str, Rule] = {
    "year": _FIELDS["YEAR"],
    "quarter": _FIELDS["QUARTER"],
    "month": _FIELDS["MONTH"],
    "weekofyear": _FIELDS["WEEK"],
    "day": _FIELDS["DAY"],
    "dayofmonth": _FIELDS["DAY"],
    "dayofweek": _FIELDS["DOW"],
    "weekday": _part("isodow({0}) - 1"),
    "dayofyear": _FIELDS["DOY"],
    "hour": _FIELDS["HOUR"],
    "minute": _FIELDS["MINUTE"],
    "second": _part(_SECOND, MOMENT),
    "dayname": Row("strftime({0}, '%a')", STRING, (DATE,)),
    "monthname": Row("strftime({0}, '%b')", STRING, (DATE,)),
    "date_part": _date_part,
    "datepart": _date_part,
    "date_add": _added(1),
    "dateadd": _added(1),
    "timestampadd": _added(1),
    "date_sub": _added(-1),
    "datediff": _difference,
    "date_diff": _difference,
    "timestampdiff": _difference,
    "add_months": Row("CAST({0} + to_months({1}) AS DATE)", DATE, (DATE, INT)),
    "last_day": Row("last_day({0})", DATE, (DATE,)),
    "next_day": _next_day,
    "trunc": _trunc,
    "date_trunc": _date_trunc,
    "to_date": _read(DATE),
    "to_timestamp": _read(MOMENT),
    "try_to_date": _read(DATE, tries=True),
    "try_to_timestamp": _read(MOMENT, tries=True),
    "unix_timestamp": _unix_timestamp,
    "to_unix_timestamp": _unix_timestamp,
    "unix_seconds": _only(MOMENT, "CAST(spark_floor_divide(epoch_us({0}), 1000000) AS BIGINT)", LONG),
    "unix_millis": _only(MOMENT, "CAST(spark_floor_divide(epoch_us({0}), 1000) AS BIGINT)", LONG),
    "unix_micros": _only(MOMENT, "epoch_us({0})", LONG),
    "unix_date": _only(DATE, "CAST({0} - DATE '1970-01-01' AS INTEGER)", INT),
    "date_from_unix_date": Row("CAST(DATE '1970-01-01' + {0} AS DATE)", DATE, (INT,)),
    "timestamp_seconds": _seconds,
    "timestamp_millis": Row("make_timestamptz({0} * 1000)", MOMENT, (LONG,)),
    "timestamp_micros": Row("make_timestamptz({0})", MOMENT, (LONG,)),
    "make_date": Row("make_date({0}, {1}, {2})", DATE, (INT, INT, INT)),
    "make_timestamp": _make_timestamp,
    "from_utc_timestamp": _zone_shift("timezone('UTC', timezone('ZONE', {0}))"),
    "to_utc_timestamp": _zone_shift("timezone('ZONE', timezone('UTC', {0}))"),
    "convert_timezone": _convert_timezone,
    "current_date": Row("current_date", DATE),
    "curdate": Row("current_date", DATE),
    "current_timestamp": Row("now()", MOMENT),
    "now": Row("now()", MOMENT),
    "localtimestamp": Row("CAST(now() AS TIMESTAMP)", LOCAL_TIME),
}
