"""Numeric operators and functions.

Source: Spark's SQL reference, "ANSI Compliance", "Operators"; DecimalType's rules of precision and scale.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.expressions.casts import cast, exact
from pyhudi.expressions.functions.registry import NUMBER, Arguments, Row, Rule, call, constant_whole, once, same_type
from pyhudi.expressions.tree import Expression, TypedLiteral
from pyhudi.expressions.types import (
    BINARY,
    BOOLEAN,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    NOTHING,
    STRING,
    bounded_decimal,
    common_type,
    duckdb_type,
    is_integral,
    is_number,
    name_of,
)

__all__ = ["MACROS", "ROWS", "divided_exactly", "negated"]

_UNSCALED = "CAST(replace(CAST({{{0}}} AS VARCHAR), '.', '') AS HUGEINT)"
_MOST_ROUNDED = 15  # digits after the point to which a double can be rounded

MACROS: Mapping[str, str] = {
    "spark_divide(x, y)": (
        "CASE WHEN y = 0 AND x IS NOT NULL THEN error('Division by zero; try_divide(x, y) is NULL then.') "
        "WHEN y <> 0 OR isnan(y) THEN x / y END"
    ),
    "spark_modulo(x, y)": "CASE WHEN y = 0 AND x IS NOT NULL THEN error('Remainder by zero.') WHEN y <> "
    "0 THEN x % y END",
    "spark_whole_divide(x, y)": "CASE WHEN y = 0 AND x IS NOT NULL THEN error('Division by zero.') WHEN "
    "y <> 0 THEN x // y END",
    "spark_divide_exact(n, d)": (
        "CASE WHEN d = 0 AND n IS NOT NULL THEN error('Division by zero; try_divide(x, y) is NULL then.') "
        "WHEN d <> 0 THEN ((2 * abs(n) + abs(d)) // (2 * abs(d))) * (CASE WHEN (n < 0) = (d < 0) THEN 1 ELSE "
        "-1 END) END"
    ),
    "spark_power(x, y)": (  # in C, 1 to the power of anything is 1
        "CASE WHEN x IS NOT NULL AND (isnan(y) OR (abs(x) = 1 AND isinf(y))) THEN CAST('nan' AS DOUBLE) "
        "ELSE pow(x, y) END"
    ),
    "spark_wrap(v, half)": "((v + half) % (2 * half) + 2 * half) % (2 * half) - half",
    "spark_power_of_2(n)": "CAST(pow(2, n) AS HUGEINT)",
    "spark_double_to_long(v)": ("CASE WHEN isnan(v) THEN 0 ELSE CAST(v AS BIGINT) END"),
}


def _number_types(name: str, arguments: Arguments) -> list[Expression]:
    """Convert two arguments to numbers: a text beside a number is cast to one."""
    left, right = arguments
    kinds = [value.type for value in arguments]
    if kinds.count(STRING) == 1:
        other = kinds[1 - kinds.index(STRING)]
        shared = common_type([STRING, other]) if is_number(other) else None
        if shared is not None:
            return [cast(value, shared) if value.type == STRING else value for value in arguments]
    if kinds.count(NOTHING) == 1:
        other = kinds[1 - kinds.index(NOTHING)]
        return [cast(value, other) if value.type == NOTHING else value for value in arguments]
    if kinds == [NOTHING, NOTHING]:
        return [cast(left, DOUBLE), cast(right, DOUBLE)]
    if not all(map(is_number, kinds)):
        raise ConfigError(f"{name} takes two numbers, found {name_of(kinds[0])} and {name_of(kinds[1])}.")
    return list(arguments)


def _two(name: str, arguments: Arguments) -> tuple[Expression, Expression]:
    if len(arguments) != 2:
        raise ConfigError(f"{name} takes 2 arguments, found {len(arguments)}.")
    left, right = _number_types(name, arguments)
    kinds = (left.type, right.type)
    if any(map(pa.types.is_decimal, kinds)) and not {FLOAT, DOUBLE} & set(kinds):
        return exact(left), exact(right)
    both, _ = same_type(name, [left, right])
    return both[0], both[1]


def _exact_type(value: Expression) -> pa.Decimal128Type:
    assert isinstance(value.type, pa.Decimal128Type), value
    return value.type


def _tried(text: str) -> str:
    """Make a sum NULL if it fails. The two values are computed outside of TRY, so their own errors remain errors."""
    inner = text.replace("{0}", "v.a").replace("{1}", "v.b")
    return f"list_transform([struct_pack(a := {{0}}, b := {{1}})], lambda v: TRY({inner}))[1]"


def _sum_type(left: pa.Decimal128Type, right: pa.Decimal128Type) -> pa.Decimal128Type:
    scale = max(left.scale, right.scale)
    return bounded_decimal(max(left.precision - left.scale, right.precision - right.scale) + scale + 1, scale)


def _sum(sign: str, kernel: str, tries: bool = False) -> Rule:
    def rule(name: str, arguments: Arguments) -> Expression:
        left, right = _two(name, arguments)
        kind = left.type
        text = f"({{0}} {sign} {{1}})"
        if isinstance(kind, pa.Decimal128Type):
            kind = _sum_type(kind, _exact_type(right))
            of = duckdb_type(kind)
            text = f"CAST(CAST({{0}} AS {of}) {sign} CAST({{1}} AS {of}) AS {of})"
        return call(name, _tried(text) if tries else text, kind, left, right, arrow=None if tries else kernel)

    return rule


def _product(tries: bool = False) -> Rule:
    def rule(name: str, arguments: Arguments) -> Expression:
        left, right = _two(name, arguments)
        kind = left.type
        text = "({0} * {1})"
        if isinstance(kind, pa.Decimal128Type):
            one, other = kind, _exact_type(right)
            if one.scale + other.scale > 38:
                raise ConfigError(f"{name} of decimals with more than 38 digits after the point needs Spark.")
            kind = bounded_decimal(one.precision + other.precision + 1, one.scale + other.scale)
            # DuckDB multiplies at the width of the wider side.
            wide = pa.decimal128(max(one.precision, 19), one.scale)
            left_text = "{0}" if one.precision + other.precision <= 18 else f"CAST({{0}} AS {duckdb_type(wide)})"
            text = f"CAST({left_text} * {{1}} AS {duckdb_type(kind)})"
        arrow = None if tries or (isinstance(kind, pa.Decimal128Type) and kind.precision == 38) else "multiply_checked"
        return call(name, _tried(text) if tries else text, kind, left, right, arrow=arrow)

    return rule


def divided_exactly(left: pa.Decimal128Type, right: pa.Decimal128Type, to: pa.Decimal128Type) -> str:
    """DuckDB's text of {0} / {1} for decimals, rounded half up to a decimal. Raises ConfigError for too many digits."""
    shift = to.scale + right.scale - left.scale
    if shift < 0 or shift > 37:
        raise ConfigError("a division of decimals with that many digits needs Spark.")
    dividend = f"{_UNSCALED.format(0)} * CAST('1{'0' * shift}' AS HUGEINT)"
    quotient = f"spark_divide_exact({dividend}, {_UNSCALED.format(1)})"
    return f"CAST(spark_digits_to_exact({quotient}, {to.scale}) AS {duckdb_type(to)})"


def _division(tries: bool = False) -> Rule:
    def rule(name: str, arguments: Arguments) -> Expression:
        left, right = _two(name, arguments)
        if isinstance(left.type, pa.Decimal128Type):
            one, other = left.type, _exact_type(right)
            scale = max(6, one.scale + other.precision + 1)
            kind = bounded_decimal(one.precision - one.scale + other.scale + scale, scale)
            text = divided_exactly(one, other, kind)
            text = f"CASE WHEN {{1}} <> 0 THEN {text} END" if tries else text
            return call(name, text, kind, left, right)
        left, right = cast(left, DOUBLE), cast(right, DOUBLE)
        text = "CASE WHEN {1} <> 0 THEN {0} / {1} END" if tries else "spark_divide({0}, {1})"
        return call(name, text, DOUBLE, left, right, arrow=None if tries else "divide_checked")

    return rule


def _remainder_type(left: pa.Decimal128Type, right: pa.Decimal128Type) -> pa.Decimal128Type:
    scale = max(left.scale, right.scale)
    return bounded_decimal(min(left.precision - left.scale, right.precision - right.scale) + scale, scale)


def _remainder(positive: bool = False) -> Rule:
    def rule(name: str, arguments: Arguments) -> Expression:
        left, right = _two(name, arguments)
        kind, text = left.type, "spark_modulo({0}, {1})"
        one, other = "{0}", "{1}"
        if isinstance(kind, pa.Decimal128Type):
            wide = duckdb_type(_sum_type(kind, _exact_type(right)))
            kind = _remainder_type(kind, _exact_type(right))
            one, other = f"CAST({{0}} AS {wide})", f"CAST({{1}} AS {wide})"
        text = f"spark_modulo({one}, {other})"
        if positive:
            text = f"CASE WHEN {text} < 0 THEN spark_modulo({text} + {other}, {other}) ELSE {text} END"
        return call(name, f"CAST({text} AS {duckdb_type(kind)})", kind, left, right)

    return rule


def _whole_division(name: str, arguments: Arguments) -> Expression:
    left, right = _two(name, arguments)
    if is_integral(left.type):
        return call(name, "spark_whole_divide({0}, {1})", LONG, cast(left, LONG), cast(right, LONG))
    if not pa.types.is_decimal(left.type):
        raise ConfigError(f"{name} takes whole numbers and decimals, found {name_of(left.type)}.")
    scales = [_exact_type(value).scale for value in (left, right)]
    shifts = [_digits(at, max(scales) - scale) for at, scale in enumerate(scales)]
    return call(name, f"CAST(spark_whole_divide({shifts[0]}, {shifts[1]}) AS BIGINT)", LONG, left, right)


def _digits(place: int, shift: int) -> str:
    """The digits of a decimal as one integer, followed by zeros."""
    return f"{_UNSCALED.format(place)} * CAST('1{'0' * shift}' AS HUGEINT)"


def negated(name: str, arguments: Arguments) -> Expression:
    """Negate a number; a text is read as a double."""
    [value] = _row_number(name, arguments)
    if isinstance(value, TypedLiteral) and isinstance(value.value, int | float) and value.value is not None:
        return TypedLiteral(-value.value, value.type)
    return call(name, f"CAST(-({{0}}) AS {duckdb_type(value.type)})", value.type, value, arrow="negate_checked")


def _row_number(name: str, arguments: Arguments) -> list[Expression]:
    if len(arguments) != 1:
        raise ConfigError(f"{name} takes 1 argument, found {len(arguments)}.")
    value = NUMBER(arguments[0])
    if value is None:
        raise ConfigError(f"{name} takes a number, found {name_of(arguments[0].type)}.")
    return [value]


def _same(name: str, text: str, arrow: str | None = None) -> Rule:
    def rule(called: str, arguments: Arguments) -> Expression:
        [value] = _row_number(called, arguments)
        return call(called, text, value.type, value, arrow=arrow)

    return rule


def _bits(sign: str) -> Rule:
    def rule(name: str, arguments: Arguments) -> Expression:
        left, right = _two(name, arguments)
        if not is_integral(left.type):
            raise ConfigError(f"{name} takes whole numbers, found {name_of(left.type)}.")
        text = "xor({0}, {1})" if sign == "^" else f"({{0}} {sign} {{1}})"
        return call(name, text, left.type, left, right)

    return rule


def _bit_not(name: str, arguments: Arguments) -> Expression:
    [value] = _row_number(name, arguments)
    if not is_integral(value.type):
        raise ConfigError(f"{name} takes a whole number, found {name_of(value.type)}.")
    return call(name, f"CAST(~({{0}}) AS {duckdb_type(value.type)})", value.type, value)


def _shift(body: str) -> Rule:
    """The rule for shifts of 32-bit or 64-bit integers as in Java: bits beyond the width are lost."""

    def rule(name: str, arguments: Arguments) -> Expression:
        if len(arguments) != 2:
            raise ConfigError(f"{name} takes 2 arguments, found {len(arguments)}.")
        value = arguments[0]
        if not is_integral(value.type) or not is_integral(arguments[1].type):
            raise ConfigError(f"{name} takes whole numbers.")
        kind = LONG if value.type == LONG else INT
        bits = 64 if kind == LONG else 32
        half = f"CAST('{2 ** (bits - 1)}' AS HUGEINT)"
        whole = "CAST({0} AS HUGEINT)"
        factor = f"spark_power_of_2({{1}} & {bits - 1})"
        text = body.format(value=whole, factor=factor, half=half)
        return call(name, f"CAST({text} AS {duckdb_type(kind)})", kind, cast(value, kind), cast(arguments[1], INT))

    return rule


def _rounded(even: bool = False) -> Rule:
    def rule(name: str, arguments: Arguments) -> Expression:
        if len(arguments) not in (1, 2):
            raise ConfigError(f"{name} takes 1 or 2 arguments, found {len(arguments)}.")
        digits = constant_whole(name, arguments[1], "the digits") if len(arguments) == 2 else 0
        [value] = _row_number(name, arguments[:1])
        kind = value.type
        if digits < 0 or digits > _MOST_ROUNDED:
            raise ConfigError(
                f"{name} to {digits} digits needs Spark; without it 0 to {_MOST_ROUNDED} digits are known."
            )
        if is_integral(kind):
            return value
        if isinstance(kind, pa.Decimal128Type):
            scale = min(digits, kind.scale)
            to = pa.decimal128(min(kind.precision - kind.scale + 1 + scale, 38), scale)
            inner = f"round_even({{0}}, {scale})" if even else "{0}"
            return call(name, f"CAST({inner} AS {duckdb_type(to)})", to, value)
        # Like BigDecimal: rounds the digits that the double prints.
        exact_text = f"CAST(CAST(v AS VARCHAR) AS DECIMAL(38,{_MOST_ROUNDED + 3 if even else digits}))"
        inner = f"round_even({exact_text}, {digits})" if even else exact_text
        near = f"CAST(CAST({inner} AS VARCHAR) AS {duckdb_type(kind)})"
        return call(name, once(f"CASE WHEN isfinite(v) AND abs(v) < 1e18 THEN {near} ELSE v END"), kind, value)

    return rule


def _up_or_down(function: str) -> Rule:
    def rule(name: str, arguments: Arguments) -> Expression:
        [value] = _row_number(name, arguments)
        kind = value.type
        if is_integral(kind):
            return cast(value, LONG)
        if isinstance(kind, pa.Decimal128Type):
            to = bounded_decimal(kind.precision - kind.scale + 1, 0)
            return call(name, f"CAST({function}({{0}}) AS {duckdb_type(to)})", to, value)
        return call(name, f"spark_double_to_long({function}(CAST({{0}} AS DOUBLE)))", LONG, value)

    return rule


def _double(text: str) -> Row:
    return Row(text, DOUBLE, (DOUBLE,))


def _extreme(function: str) -> Rule:
    def rule(name: str, arguments: Arguments) -> Expression:
        if len(arguments) < 2:
            raise ConfigError(f"{name} takes at least 2 arguments, found {len(arguments)}.")
        values, kind = same_type(name, arguments, texts_give_way=False)
        if pa.types.is_list(kind) or pa.types.is_map(kind) or pa.types.is_struct(kind):
            raise ConfigError(f"{name} of {name_of(kind)} needs Spark.")
        places = ", ".join(f"{{{at}}}" for at in range(len(values)))
        return call(name, f"{function}({places})", kind, *values)

    return rule


def _hex(name: str, arguments: Arguments) -> Expression:
    if len(arguments) != 1:
        raise ConfigError(f"{name} takes 1 argument, found {len(arguments)}.")
    value = arguments[0]
    if value.type in (STRING, BINARY):
        return call(name, "hex({0})", STRING, value)
    return Row("hex({0})", STRING, (LONG,))(name, arguments)


def _bit_count(name: str, arguments: Arguments) -> Expression:
    if len(arguments) == 1 and not is_integral(arguments[0].type) and arguments[0].type != NOTHING:
        raise ConfigError(f"{name} takes a whole number, found {name_of(arguments[0].type)}.")
    return Row("CAST(bit_count({0}) AS INTEGER)", INT, (LONG,))(name, arguments)


def _log(name: str, arguments: Arguments) -> Expression:
    if len(arguments) == 2:
        text = "CASE WHEN {0} > 0 AND {1} > 0 THEN ln({1}) / ln({0}) END"
        return Row(text, DOUBLE, (DOUBLE, DOUBLE))(name, arguments)
    return _LN(name, arguments)


_LN = _double("CASE WHEN {0} > 0 THEN ln({0}) END")
_ONE_DOUBLE = {
    "acos": "CASE WHEN abs({0}) <= 1 THEN acos({0}) WHEN {0} IS NOT NULL THEN CAST('nan' AS DOUBLE) END",
    "asin": "CASE WHEN abs({0}) <= 1 THEN asin({0}) WHEN {0} IS NOT NULL THEN CAST('nan' AS DOUBLE) END",
    "atan": "atan({0})",
    "cbrt": "cbrt({0})",
    "cos": "cos({0})",
    "cosh": "cosh({0})",
    "degrees": "degrees({0})",
    "exp": "exp({0})",
    "log10": "CASE WHEN {0} > 0 THEN log10({0}) END",
    "log2": "CASE WHEN {0} > 0 THEN log2({0}) END",
    "radians": "radians({0})",
    "rint": once("CASE WHEN isfinite(v) THEN round_even(v, 0) ELSE v END"),
    "sign": "CASE WHEN isnan({0}) THEN {0} ELSE CAST(sign({0}) AS DOUBLE) END",
    "sin": "sin({0})",
    "sinh": "sinh({0})",
    "sqrt": "CASE WHEN {0} < 0 THEN CAST('nan' AS DOUBLE) ELSE sqrt({0}) END",
    "tan": "tan({0})",
    "tanh": "tanh({0})",
}

ROWS: Mapping[str, Rule] = {
    **{name: _double(text) for name, text in _ONE_DOUBLE.items()},
    "+": _sum("+", "add_checked"),
    "-": _sum("-", "subtract_checked"),
    "*": _product(),
    "/": _division(),
    "%": _remainder(),
    "mod": _remainder(),
    "pmod": _remainder(positive=True),
    "div": _whole_division,
    "try_add": _sum("+", "", tries=True),
    "try_subtract": _sum("-", "", tries=True),
    "try_multiply": _product(tries=True),
    "try_divide": _division(tries=True),
    "negative": negated,
    "positive": _same("positive", "{0}"),
    "abs": _same("abs", "abs({0})", "abs_checked"),
    "&": _bits("&"),
    "|": _bits("|"),
    "^": _bits("^"),
    "~": _bit_not,
    "shiftleft": _shift("spark_wrap({value} * {factor}, {half})"),
    "shiftright": _shift("spark_floor_divide({value}, {factor})"),
    "shiftrightunsigned": _shift(
        "spark_wrap((CASE WHEN {value} < 0 THEN {value} + 2 * {half} ELSE {value} END) // {factor}, {half})"
    ),
    "round": _rounded(),
    "bround": _rounded(even=True),
    "ceil": _up_or_down("ceil"),
    "ceiling": _up_or_down("ceil"),
    "floor": _up_or_down("floor"),
    "ln": _LN,
    "log": _log,
    "signum": _double(_ONE_DOUBLE["sign"]),
    "hypot": Row("sqrt({0} * {0} + {1} * {1})", DOUBLE, (DOUBLE, DOUBLE)),
    "power": Row("spark_power({0}, {1})", DOUBLE, (DOUBLE, DOUBLE)),
    "pow": Row("spark_power({0}, {1})", DOUBLE, (DOUBLE, DOUBLE)),
    "atan2": Row("atan2({0}, {1})", DOUBLE, (DOUBLE, DOUBLE)),
    "e": Row("CAST('2.718281828459045' AS DOUBLE)", DOUBLE),
    "rand": Row("random()", DOUBLE),
    "random": Row("random()", DOUBLE),
    "pi": Row("pi()", DOUBLE),
    "factorial": Row("CASE WHEN {0} BETWEEN 0 AND 20 THEN CAST(factorial({0}) AS BIGINT) END", LONG, (INT,)),
    "greatest": _extreme("greatest"),
    "least": _extreme("least"),
    "hex": _hex,
    "bin": Row("bin({0})", STRING, (LONG,)),
    "bit_count": _bit_count,
    "isnan": Row("coalesce(isnan({0}), false)", BOOLEAN, (DOUBLE,)),
    "nanvl": Row("CASE WHEN isnan({0}) THEN {1} ELSE {0} END", DOUBLE, (DOUBLE, DOUBLE)),
}
