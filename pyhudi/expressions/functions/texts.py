"""Text functions.

Source: Spark's SQL reference, "String Functions"; org.apache.spark.unsafe.types.UTF8String (positions, ends).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import ConfigError
from pyhudi.expressions.casts import cast, implicit_cast
from pyhudi.expressions.functions.regex import Regex, checked_regex, quoted_regex, replacement_of
from pyhudi.expressions.functions.registry import (
    Arguments,
    Row,
    Rule,
    call,
    constant_text,
    constant_whole,
    quoted_part,
    same_type,
)
from pyhudi.expressions.predicates import Column, Like
from pyhudi.expressions.tree import Expression, TypedCall, TypedLiteral
from pyhudi.expressions.types import BINARY, BOOLEAN, INT, LONG, NOTHING, STRING, is_integral, is_nested, name_of

__all__ = ["KERNELS", "MACROS", "ROWS", "like"]

MACROS: Mapping[str, str] = {
    "spark_start(s, p)": "CASE WHEN p > 0 THEN p - 1 WHEN p < 0 THEN length(s) + p ELSE 0 END",
    "spark_substring(s, p, n)": (
        "CASE WHEN s IS NULL OR p IS NULL THEN NULL WHEN spark_start(s, p) + n <= greatest(spark_start(s, "
        "p), 0) THEN '' "
        "ELSE substring(s, "
        "greatest(spark_start(s, p), 0) + 1, spark_start(s, p) + n - greatest(spark_start(s, p), 0)) END"
    ),
    "spark_left(s, n)": "CASE WHEN n <= 0 AND s IS NOT NULL THEN '' ELSE left(s, n) END",
    "spark_right(s, n)": "CASE WHEN n <= 0 AND s IS NOT NULL THEN '' ELSE right(s, n) END",
    "spark_locate(x, s, p)": (
        "CASE WHEN p IS NULL THEN 0 WHEN s IS NULL OR x IS NULL THEN NULL WHEN p <= 0 THEN 0 WHEN x = '' THEN 1 WHEN "
        "instr(substring(s, p), x) = 0 THEN 0 "
        "ELSE instr(substring(s, p), x) + p - 1 END"
    ),
    "spark_substring_index(x, y, n)": (
        "CASE WHEN x IS NULL THEN NULL WHEN n = 0 OR y = '' THEN '' WHEN n > 0 THEN "
        "array_to_string(string_split(x, y)[1:n], y) "
        "ELSE array_to_string(string_split(x, y)[n:], y) END"
    ),
    "spark_split_part(s, d, n)": (
        "CASE WHEN s IS NULL OR d IS NULL THEN NULL WHEN n = 0 THEN error('split_part counts from 1.') "
        "WHEN d = '' THEN (CASE WHEN n IN (1, -1) THEN s ELSE '' END) ELSE split_part(s, d, n) END"
    ),
    # DuckDB maps ASCII itself: an ASCII text has as many bytes as letters.
    "spark_upper_case(s)": "CASE WHEN strlen(s) = length(s) THEN upper(s) ELSE spark_upper(s) END",
    "spark_lower_case(s)": "CASE WHEN strlen(s) = length(s) THEN lower(s) ELSE spark_lower(s) END",
    "spark_like(s, p)": (
        r"CASE WHEN regexp_matches(p, '(^|[^\\])(\\\\)*(\\[^_%\\]|\\$)') "
        r"THEN error('a pattern of LIKE in which \ escapes another character than _, % or \') "
        r"ELSE s LIKE p ESCAPE '\' END"
    ),
    "spark_url_encode(x)": "replace(replace(replace(url_encode(x), '%20', '+'), '%2A', '*'), '~', '%7E')",
    "spark_url_decode(x)": "url_decode(replace(x, '+', ' '))",
    "spark_only_ascii(s, x)": (
        r"CASE WHEN regexp_matches(s, '[^\x00-\x7F]') "
        r"THEN error('\b of a regular expression, and letters beyond ASCII, need Spark') ELSE x END"
    ),
    "spark_plain_end(s, x)": (
        r"CASE WHEN regexp_matches(s, '[\n\r\x{85}\x{2028}\x{2029}]$') "
        "THEN error('$ of a regular expression, and a text that ends with the end of a line, need Spark') ELSE x END"
    ),
}


def _by_python(
    function: Callable[[str], str], ascii_function: Callable[[pa.Array], pa.Array] | None = None
) -> Callable[[pa.ChunkedArray | pa.Array], pa.Array]:
    """A kernel that calls a Python function for each distinct text, or Arrow's function if all texts are ASCII."""

    def kernel(values: pa.ChunkedArray | pa.Array) -> pa.Array:
        whole = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        if ascii_function is not None and pc.all(pc.string_is_ascii(whole)).as_py() is not False:
            return ascii_function(whole)
        different = whole.dictionary_encode()
        texts = [None if text is None else function(text) for text in different.dictionary.to_pylist()]
        return pa.array(texts, pa.string()).take(different.indices)

    return kernel


def _capitalised(text: str) -> str:
    """Capitalise each word between spaces: the first letter in title case, the others in lower case."""
    return " ".join(word[:1].title() + word[1:] for word in text.lower().split(" "))


def _reversed(values: pa.ChunkedArray | pa.Array) -> pa.Array:
    whole = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    turned: pa.Array = pc.call_function("utf8_reverse", [whole])  # type: ignore[attr-defined]
    return turned


# Python functions for DuckDB, from one text to one text. Java maps ß to SS, ﬁ to FI and İ to i̇, as Python does.
KERNELS: Mapping[str, Callable[[pa.ChunkedArray | pa.Array], pa.Array]] = {
    "spark_upper": _by_python(str.upper, pc.ascii_upper),
    "spark_lower": _by_python(str.lower, pc.ascii_lower),
    "spark_initcap": _by_python(_capitalised),
    "spark_reverse": _reversed,
}


def _length(text: str, binary: str) -> Rule:
    def rule(name: str, arguments: Arguments) -> Expression:
        if len(arguments) == 1 and arguments[0].type == BINARY:
            return call(name, f"CAST({binary} AS INTEGER)", INT, arguments[0])
        arrow = "utf8_length" if text == "length({0})" else None
        return Row(f"CAST({text} AS INTEGER)", INT, (STRING,), arrow)(name, arguments)

    return rule


def _trim(function: str) -> Rule:
    """The rule for trims. ltrim and rtrim take the characters first: ltrim('x', 'xxa'); btrim takes them last."""

    def rule(name: str, arguments: Arguments) -> Expression:
        if len(arguments) == 1:
            return Row(f"{function}({{0}}, ' ')", STRING, (STRING,))(name, arguments)
        text = f"{function}({{0}}, {{1}})" if name == "btrim" else f"{function}({{1}}, {{0}})"
        return Row(text, STRING, (STRING, STRING))(name, arguments)

    return rule


def _pad(function: str) -> Rule:
    def rule(name: str, arguments: Arguments) -> Expression:
        whole = [*arguments, TypedLiteral(" ", STRING)] if len(arguments) == 2 else list(arguments)
        if len(whole) != 3:
            raise ConfigError(f"{name} takes 2 or 3 arguments, found {len(arguments)}.")
        if not constant_text(name, whole[2], "what it pads with"):
            raise ConfigError(f"{name} with an empty text needs Spark.")
        return Row(f"{function}({{0}}, greatest({{1}}, 0), {{2}})", STRING, (STRING, INT, STRING))(name, whole)

    return rule


def _substring(name: str, arguments: Arguments) -> Expression:
    if arguments and arguments[0].type == BINARY:
        raise ConfigError(f"{name} of a BINARY needs Spark.")
    text = "spark_substring({0}, CAST({1} AS BIGINT), CAST({2} AS BIGINT))"
    return Row(text, STRING, (STRING, INT, INT), defaults=(TypedLiteral(2**31 - 1, INT),))(name, arguments)


def concat(name: str, arguments: Arguments) -> Expression:
    """Concatenate texts, or arrays; NULL if one of them is NULL."""
    if any(pa.types.is_list(value.type) for value in arguments):
        values, kind = same_type(name, arguments, texts_give_way=False)
        if any(value.type == NOTHING for value in arguments):
            raise ConfigError(f"{name} of an array and a NULL is refused by Spark.")
        null = " OR ".join(f"{{{at}}} IS NULL" for at in range(len(values)))
        parts = ", ".join(f"{{{at}}}" for at in range(len(values)))
        return call(name, f"CASE WHEN {null} THEN NULL ELSE list_concat({parts}) END", kind, *values)
    if not arguments:
        return TypedLiteral("", STRING)
    texts = [_text(name, value) for value in arguments]
    places = " || ".join(f"{{{at}}}" for at in range(len(texts)))
    return call(name, f"({places})", STRING, *texts, arrow="concat")


def _text(name: str, value: Expression) -> Expression:
    text = implicit_cast(value, STRING)
    if text is None:
        raise ConfigError(f"{name} takes no argument of type {name_of(value.type)} here.")
    return text


def _concat_ws(name: str, arguments: Arguments) -> Expression:
    if not arguments:
        raise ConfigError(f"{name} takes at least 1 argument, found 0.")
    separator, *parts = arguments
    lists, values = [], []
    for at, part in enumerate(parts, 1):
        is_list = pa.types.is_list(part.type)
        value = cast(part, pa.list_(STRING)) if is_list else _text(name, part)
        values.append(value)
        lists.append(f"coalesce({{{at}}}, CAST([] AS VARCHAR[]))" if is_list else f"[{{{at}}}]")
    if not lists:
        return call(name, "CASE WHEN {0} IS NOT NULL THEN '' END", STRING, _text(name, separator))
    whole = f"list_concat(CAST([] AS VARCHAR[]), {', '.join(lists)})"
    text = f"array_to_string(list_filter({whole}, lambda e: e IS NOT NULL), {{0}})"
    text = f"CASE WHEN {{0}} IS NOT NULL THEN coalesce({text}, '') END"
    return call(name, text, STRING, _text(name, separator), *values)


def like(name: str, value: Expression, pattern: Expression, escape: str = "\\") -> Expression:
    """Make LIKE, or ILIKE if so named. Raises ConfigError for a pattern that Spark refuses."""
    value, pattern = _text(name, value), _text(name, pattern)
    if name == "ilike":
        value, pattern = (call("lower", "spark_lower_case({0})", STRING, side) for side in (value, pattern))
    if len(escape) != 1:
        raise ConfigError(f"LIKE takes one character after ESCAPE, found {escape!r}.")
    if isinstance(pattern, TypedLiteral) and isinstance(pattern.value, str):
        _check_pattern(pattern.value, escape)
    elif escape == "\\":
        return call(name, "spark_like({0}, {1})", BOOLEAN, value, pattern)
    elif not isinstance(pattern, TypedLiteral):
        raise ConfigError("LIKE with ESCAPE takes the pattern as a constant text without Spark.")
    quoted = "''" if escape == "'" else escape
    arrow = None
    if name == "like" and escape == "\\" and isinstance(pattern, TypedLiteral) and isinstance(pattern.value, str):
        arrow = f"match {Like(Column(()), pattern.value).regex()}"
    # Without ESCAPE DuckDB is faster, and no character escapes another.
    end = "" if isinstance(pattern.value, str) and escape not in pattern.value else f" ESCAPE '{quoted}'"
    return call(name, f"({{0}} LIKE {{1}}{end})", BOOLEAN, value, pattern, arrow=arrow)


def _check_pattern(pattern: str, escape: str) -> None:
    at = 0
    while at < len(pattern):
        if pattern[at] == escape:
            at += 1
            if pattern[at : at + 1] not in ("_", "%", escape):
                raise ConfigError(f"LIKE {pattern!r}: {escape} may only escape _, % and itself.")
        at += 1


def _regex(template: str, result: pa.DataType, *, matches_empty: bool = False, group: int | None = None) -> Rule:
    """The rule for a function with a regular expression second. `group`: the default of the third, a group number."""

    def rule(name: str, arguments: Arguments) -> Expression:
        most = 2 if group is None else 3
        if not 2 <= len(arguments) <= most:
            raise ConfigError(f"{name} takes 2 to {most} arguments, found {len(arguments)}.")
        value = _text(name, arguments[0])
        if isinstance(arguments[1], TypedLiteral) and arguments[1].value is None:
            return TypedLiteral(None, result)
        regex = checked_regex(constant_text(name, arguments[1], "the regular expression"), matches_empty=matches_empty)
        number = group
        if group is not None and len(arguments) == 3:
            number = constant_whole(name, arguments[2], "the group")
        if number is not None and not 0 <= number <= regex.groups:
            raise ConfigError(f"{name}: the regular expression has {regex.groups} groups, found group {number}.")
        text = template.format(regex=quoted_regex(regex), group=number)
        return call(name, _guarded(text, regex), result, value)

    return rule


def _regexp_replace(name: str, arguments: Arguments) -> Expression:
    if len(arguments) != 3:
        raise ConfigError(f"{name} without Spark takes 3 arguments, found {len(arguments)}.")
    regex = checked_regex(constant_text(name, arguments[1], "the regular expression"))
    replacement = replacement_of(constant_text(name, arguments[2], "the replacement"), regex.groups)
    text = f"regexp_replace({{0}}, {quoted_regex(regex)}, {replacement}, 'g')"
    return call(name, _guarded(text, regex), STRING, _text(name, arguments[0]))


def _guarded(text: str, regex: Regex) -> str:
    """Guard a function of {0}: it fails for texts for which Java's pattern means something else."""
    text = f"spark_plain_end({{0}}, {text})" if regex.has_end else text
    return f"spark_only_ascii({{0}}, {text})" if regex.has_word_end else text


_PLAIN = re.compile(r"[^\\.\[\]{}()*+?^$|]+")


def _split(name: str, arguments: Arguments) -> Expression:
    if not 2 <= len(arguments) <= 3:
        raise ConfigError(f"{name} takes 2 or 3 arguments, found {len(arguments)}.")
    value, pattern = _text(name, arguments[0]), constant_text(name, arguments[1], "the regular expression")
    most = constant_whole(name, arguments[2], "the limit") if len(arguments) == 3 else -1
    kind = pa.list_(STRING)
    if _PLAIN.fullmatch(pattern) and most > 0:
        separator = quoted_part(pattern)
        parts = f"string_split(v, {separator})"
        rest = f"array_to_string({parts}[{most}:], {separator})"
        text = f"CASE WHEN len({parts}) <= {most} THEN {parts} ELSE list_append({parts}[:{most - 1}], {rest}) END"
        return call(name, f"list_transform([{{0}}], lambda v: {text})[1]", kind, value)
    if most > 0:
        raise ConfigError(f"{name} by a regular expression into at most {most} parts needs Spark.")
    if most == 0:
        raise ConfigError(f"{name} with the limit 0 needs Spark.")
    regex = checked_regex(pattern)
    text = f"string_split_regex({{0}}, {quoted_regex(regex)})"
    return call(name, _guarded(text, regex), kind, value)


_SPECIFIER = re.compile(r"%(%|n|([-0,]?)(\d*)([sdx]))")


def _format_string(name: str, arguments: Arguments) -> Expression:
    if not arguments:
        raise ConfigError(f"{name} takes at least 1 argument, found 0.")
    pattern, values = constant_text(name, arguments[0], "the pattern"), list(arguments[1:])
    parts, at, place, used = [], 0, 0, list[Expression]()
    for specifier in _SPECIFIER.finditer(pattern):
        parts.append(quoted_part(pattern[at : specifier.start()]))
        at = specifier.end()
        if specifier[1] in "%n":
            parts.append(quoted_part("%" if specifier[1] == "%" else "\n"))
            continue
        if place >= len(values):
            raise ConfigError(f"{name}: the pattern {pattern!r} has more places than there are values.")
        parts.append(_formatted(name, specifier, values[place], place))
        used.append(values[place])
        place += 1
    parts.append(quoted_part(pattern[at:]))
    if "%" in _SPECIFIER.sub("", pattern):
        raise ConfigError(f"{name}: the pattern {pattern!r} needs Spark; %s, %d and %x with a width are known without.")
    return call(name, f"({' || '.join(parts)})", STRING, *used)


def _formatted(name: str, specifier: re.Match[str], value: Expression, place: int) -> str:
    flag, width, letter = specifier[2], int(specifier[3] or 0), specifier[4]
    if is_nested(value.type) or (letter != "s" and not is_integral(value.type)):
        raise ConfigError(f"{name}: %{letter} of a value of type {name_of(value.type)} needs Spark.")
    if flag and (flag == ",") == (letter != "d") and flag != "-":
        raise ConfigError(f"{name}: {specifier[0]} needs Spark.")
    if letter == "x" and (flag or value.type not in (INT, LONG)):
        raise ConfigError(f"{name}: {specifier[0]} needs Spark.")
    plain = f"{{{place}}}"
    if letter == "x":
        bits = value.type.bit_width
        text = f"lower(to_hex(CASE WHEN {plain} < 0 THEN CAST({plain} AS HUGEINT) + {2**bits} ELSE {plain} END))"
    elif flag == ",":
        text = f"format('{{:,}}', {plain})"
    elif flag == "0":
        text = f"printf('%0{width}d', CAST({plain} AS BIGINT))"
    else:
        text_value = cast(value, STRING)
        text = plain if text_value is value else _template_of(text_value).replace("{0}", plain)
    side = "rpad" if flag == "-" else "lpad"
    whole = f"coalesce({text}, 'null')"
    return f"{side}({whole}, greatest({width}, CAST(length({whole}) AS INTEGER)), ' ')" if width else whole


def _template_of(text_value: Expression) -> str:
    assert isinstance(text_value, TypedCall)
    return text_value.form.duckdb


def _sha2(name: str, arguments: Arguments) -> Expression:
    if len(arguments) != 2:
        raise ConfigError(f"{name} takes 2 arguments, found {len(arguments)}.")
    if constant_whole(name, arguments[1], "the bits") not in (0, 256):
        raise ConfigError(f"{name} of other bits than 256 needs Spark.")
    return Row("sha256({0})", STRING, (BINARY,))(name, arguments[:1])


def _code(name: str, arguments: Arguments) -> Expression:
    charset = constant_text(name, arguments[1], "the character set") if len(arguments) == 2 else ""
    if charset.lower() not in ("utf-8", "utf8") or (name == "encode") == (arguments[0].type == BINARY):
        raise ConfigError(f"{name} without Spark takes a {'text' if name == 'encode' else 'BINARY'} and 'UTF-8'.")
    return call(name, f"{name}({{0}})", BINARY if name == "encode" else STRING, arguments[0])


def _reverse(name: str, arguments: Arguments) -> Expression:
    if len(arguments) == 1 and pa.types.is_list(arguments[0].type):
        return call(name, "list_reverse({0})", arguments[0].type, arguments[0])
    return Row("spark_reverse({0})", STRING, (STRING,))(name, arguments)


def _two_texts(text: str, result: pa.DataType = BOOLEAN) -> Row:
    return Row(text, result, (STRING, STRING))


_REPLACE_DEFAULT: Sequence[TypedLiteral] = (TypedLiteral("", STRING),)
_ONE = TypedLiteral(1, INT)

ROWS: Mapping[str, Rule] = {
    "length": _length("length({0})", "octet_length({0})"),
    "char_length": _length("length({0})", "octet_length({0})"),
    "character_length": _length("length({0})", "octet_length({0})"),
    "len": _length("length({0})", "octet_length({0})"),
    "octet_length": _length("strlen({0})", "octet_length({0})"),
    "bit_length": _length("8 * strlen({0})", "8 * octet_length({0})"),
    "upper": Row("spark_upper_case({0})", STRING, (STRING,), "pyhudi_upper"),
    "ucase": Row("spark_upper_case({0})", STRING, (STRING,), "pyhudi_upper"),
    "lower": Row("spark_lower_case({0})", STRING, (STRING,), "pyhudi_lower"),
    "lcase": Row("spark_lower_case({0})", STRING, (STRING,), "pyhudi_lower"),
    "initcap": Row("spark_initcap({0})", STRING, (STRING,)),
    "trim": Row("trim({0}, ' ')", STRING, (STRING,), "trim"),
    "btrim": _trim("trim"),
    "ltrim": _trim("ltrim"),
    "rtrim": _trim("rtrim"),
    "lpad": _pad("lpad"),
    "rpad": _pad("rpad"),
    "repeat": Row("repeat({0}, greatest({1}, 0))", STRING, (STRING, INT)),
    "space": Row("repeat(' ', greatest({0}, 0))", STRING, (INT,)),
    "substring": _substring,
    "substr": _substring,
    "mid": _substring,
    "left": Row("spark_left({0}, {1})", STRING, (STRING, INT)),
    "right": Row("spark_right({0}, {1})", STRING, (STRING, INT)),
    "substring_index": Row("spark_substring_index({0}, {1}, {2})", STRING, (STRING, STRING, INT)),
    "split_part": Row("spark_split_part({0}, {1}, {2})", STRING, (STRING, STRING, INT)),
    "instr": _two_texts("CAST(CASE WHEN {1} = '' AND {0} IS NOT NULL THEN 1 ELSE instr({0}, {1}) END AS INTEGER)", INT),
    "locate": Row("CAST(spark_locate({0}, {1}, {2}) AS INTEGER)", INT, (STRING, STRING, INT), defaults=(_ONE,)),
    "position": Row("CAST(spark_locate({0}, {1}, {2}) AS INTEGER)", INT, (STRING, STRING, INT), defaults=(_ONE,)),
    "replace": Row("replace({0}, {1}, {2})", STRING, (STRING, STRING, STRING), defaults=_REPLACE_DEFAULT),
    "translate": Row("translate({0}, {1}, {2})", STRING, (STRING, STRING, STRING)),
    "ascii": Row("CASE WHEN {0} = '' THEN 0 ELSE unicode({0}) END", INT, (STRING,)),
    "chr": Row("CASE WHEN {0} < 0 THEN '' ELSE chr(CAST({0} % 256 AS INTEGER)) END", STRING, (LONG,)),
    "char": Row("CASE WHEN {0} < 0 THEN '' ELSE chr(CAST({0} % 256 AS INTEGER)) END", STRING, (LONG,)),
    "concat": concat,
    "||": concat,
    "concat_ws": _concat_ws,
    "reverse": _reverse,
    "startswith": _two_texts("starts_with({0}, {1})"),
    "endswith": _two_texts("ends_with({0}, {1})"),
    "contains": _two_texts("contains({0}, {1})"),
    "levenshtein": _two_texts("CAST(levenshtein({0}, {1}) AS INTEGER)", INT),
    "rlike": _regex("regexp_matches({{0}}, {regex})", BOOLEAN, matches_empty=True),
    "regexp": _regex("regexp_matches({{0}}, {regex})", BOOLEAN, matches_empty=True),
    "regexp_like": _regex("regexp_matches({{0}}, {regex})", BOOLEAN, matches_empty=True),
    "regexp_extract": _regex("regexp_extract({{0}}, {regex}, {group})", STRING, matches_empty=True, group=1),
    "regexp_extract_all": _regex("regexp_extract_all({{0}}, {regex}, {group})", pa.list_(STRING), group=1),
    "regexp_replace": _regexp_replace,
    "split": _split,
    "format_string": _format_string,
    "printf": _format_string,
    "md5": Row("md5({0})", STRING, (BINARY,)),
    "sha": Row("sha1({0})", STRING, (BINARY,)),
    "sha1": Row("sha1({0})", STRING, (BINARY,)),
    "sha2": _sha2,
    "base64": Row("to_base64({0})", STRING, (BINARY,)),
    "unbase64": Row("from_base64({0})", BINARY, (STRING,)),
    "unhex": Row(
        "CASE WHEN regexp_full_match({0}, '[0-9A-Fa-f]*') "
        "THEN from_hex(CASE WHEN length({0}) % 2 = 1 THEN '0' ELSE '' END || {0}) END",
        BINARY,
        (STRING,),
    ),
    "encode": _code,
    "decode": _code,
    "uuid": Row("CAST(uuid() AS VARCHAR)", STRING),
    "url_encode": Row("spark_url_encode({0})", STRING, (STRING,)),
    "url_decode": Row("spark_url_decode({0})", STRING, (STRING,)),
    "find_in_set": _two_texts(
        "CAST(CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL WHEN contains({0}, ',') THEN 0 ELSE "
        "coalesce(list_position(string_split({1}, ','), {0}), 0) END "
        "AS INTEGER)",
        INT,
    ),
}
