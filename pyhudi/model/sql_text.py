"""Spark SQL text, read by sqlglot: the tokens of any text, the trees of conditions and queries.

Double quotes enclose texts, backticks enclose names; escapes and doubled quotes are Spark's. The first text imports
sqlglot, which takes a tenth of a second. Reads and writes without SQL never import it.

Source: Spark's SQL reference, "Literals", "Identifiers", "Comments".
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, ClassVar, TypeVar

from pyhudi.errors import ConfigError

if TYPE_CHECKING:
    from sqlglot import exp
    from sqlglot.dialects.dialect import Dialect
    from sqlglot.tokens import Token

__all__ = ["MisreadSql", "call_name", "condition_of", "is_number", "query_of", "spark_tokens", "with_deep_stack"]

T = TypeVar("T")

_SIGNS = ("=>", "->", "<=>", "<=", ">=", "<>", "!=", "==", "||", "::", "/*+")
_NUMBER = re.compile(r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?:[lLsSyYdDfF]|[bB][dD])?")
_OPEN_QUOTE = re.compile(r"Missing (.) from \d+:(\d+)")
_STACK_BYTES = 256 << 20  # address space, for nested brackets: sqlglot recurses 20 times for each
_STACK_CALLS = 20_000
_STACK = threading.Lock()


class MisreadSql(ConfigError):
    """A text that is not SQL. `at`: the position of the first wrong character."""

    def __init__(self, what: str, at: int) -> None:
        super().__init__(what)
        self.what, self.at = what, at


_ESCAPES = ["\\", "'", '"']  # a doubled quote is a quote
_OCTAL = (8, 3, 3, 0xFF)
_UNKNOWN = "\1"  # occurs in no word


# Parsers and generators have no subclasses here: sqlglot's compiled build (`sqlglot[c]`) refuses them.


@cache
def _dialect() -> Dialect:
    """Spark's dialect without keywords: every word is a plain word."""
    from sqlglot.dialects.spark import Spark

    class PyHudiSpark(Spark):
        class Tokenizer(Spark.Tokenizer):
            KEYWORDS: ClassVar = {sign: Spark.Tokenizer.KEYWORDS[sign] for sign in _SIGNS}
            COMMANDS: ClassVar = set()
            STRING_ESCAPES: ClassVar = _ESCAPES
            NUMERIC_ESCAPES: ClassVar = {**Spark.Tokenizer.NUMERIC_ESCAPES, "0": _OCTAL}

    return PyHudiSpark()


@cache
def _query_dialect() -> Dialect:
    """Spark's dialect with all its keywords and functions."""
    from sqlglot.dialects.spark import Spark

    class PyHudiSparkQueries(Spark):
        SAFE_DIVISION = False

        class Tokenizer(Spark.Tokenizer):
            STRING_ESCAPES: ClassVar = _ESCAPES
            NUMERIC_ESCAPES: ClassVar = {**Spark.Tokenizer.NUMERIC_ESCAPES, "0": _OCTAL}

    return PyHudiSparkQueries()


def spark_tokens(text: str) -> list[Token]:
    """The tokens of a text, without comments. Every word is a VAR; numbers keep their suffixes.

    Raises: MisreadSql for an unclosed quotation or comment.
    """
    from sqlglot.errors import TokenError
    from sqlglot.tokens import TokenType

    try:
        tokens = _dialect().tokenize(f"{text}\n;")
    except TokenError as error:
        raise _misread(text, error) from None
    last = tokens.pop()
    if last.token_type is not TokenType.SEMICOLON or last.start <= len(text):  # the text's end is in a comment
        raise _misread(text, None)
    return _with_numbers(tokens)


def _misread(text: str, error: Exception | None) -> MisreadSql:
    match = _OPEN_QUOTE.search(str(error and error.__context__))
    if match is None:
        at = max(0, text.rfind("/*"))
        return MisreadSql(f"the comment at character {at + 1} does not end", at)
    at = int(match[2])
    if text[at] != match[1]:  # the quote after the prefix of r'...' and x'...'
        at = max(0, text.find(match[1], at))
    return MisreadSql(f"the quote {match[1]} at character {at + 1} is not closed", at)


def _with_numbers(tokens: list[Token]) -> list[Token]:
    """Turn `12L`, `1.5BD` and `.5` into number tokens, as in Spark."""
    from sqlglot.tokens import Token, TokenType

    merged: list[Token] = []
    for token in tokens:
        if token.token_type is TokenType.VAR and is_number(token.text):
            token.token_type = TokenType.NUMBER
        if token.token_type is TokenType.NUMBER and merged and _is_point_of(merged, token):
            point = merged.pop()
            text = f".{token.text}"
            token = Token(TokenType.NUMBER, text, token.line, token.col, point.start, token.end)
        merged.append(token)
    return merged


def _is_point_of(read: Sequence[Token], number: Token) -> bool:
    """True if the last token is the leading point of a number, not a point after a name."""
    point = read[-1]
    if point.text != "." or point.end + 1 != number.start or not is_number(f".{number.text}"):
        return False
    return len(read) == 1 or read[-2].end + 1 < point.start or not (read[-2].text[-1:].isalnum())


def is_number(text: str) -> bool:
    """True if a word is a number, with or without one of Spark's suffixes."""
    return _NUMBER.fullmatch(text) is not None


def condition_of(tokens: Sequence[Token], text: str) -> exp.Expr:
    """Parse a condition or an expression. Its keywords have the token types of keywords. Functions keep their names:
    all of them are `exp.Anonymous`.

    Raises: MisreadSql for any other text.
    """
    from sqlglot import exp

    words = _unknown_words(tokens)
    tree = _parsed(lambda: _dialect().parser().parse_into(exp.Condition, words, text), words, text)
    if any(word is not token for word, token in zip(words, tokens, strict=True)):
        for node in tree.find_all(exp.Anonymous, exp.Identifier):
            if node.name.startswith(_UNKNOWN) and not node.args.get("quoted"):
                node.set("this", node.name.removeprefix(_UNKNOWN))
    return tree


def _unknown_words(tokens: Sequence[Token]) -> list[Token]:
    """Put a prefix before each word that sqlglot could know as a function."""
    from sqlglot.dialects.spark import Spark
    from sqlglot.tokens import Token, TokenType

    special = Spark.Parser.NO_PAREN_FUNCTION_PARSERS  # CASE and others
    words = list(tokens)
    for place, token in enumerate(words):
        is_call = place + 1 < len(words) and words[place + 1].token_type is TokenType.L_PAREN
        if token.token_type is TokenType.VAR and (is_call or token.text.upper() in special):
            text = f"{_UNKNOWN}{token.text}"
            words[place] = Token(TokenType.VAR, text, token.line, token.col, token.start, token.end)
    return words


# Words before a bracket that are keywords, or functions with keywords between their arguments.
_GRAMMAR = frozenset(
    [
        "ALL",
        "AND",
        "ANY",
        "AS",
        "BETWEEN",
        "BY",
        "CASE",
        "CAST",
        "CROSS",
        "CUBE",
        "CURRENT",
        "DISTINCT",
        "DIV",
        "ELSE",
        "EXCEPT",
        "EXISTS",
        "EXTRACT",
        "FILTER",
        "FOR",
        "FROM",
        "FULL",
        "GROUP",
        "HAVING",
        "ILIKE",
        "IN",
        "INNER",
        "INTERSECT",
        "INTERVAL",
        "INTO",
        "IS",
        "JOIN",
        "LATERAL",
        "LIKE",
        "LIMIT",
        "MINUS",
        "NATURAL",
        "NOT",
        "OFFSET",
        "ON",
        "OR",
        "ORDER",
        "OUTER",
        "OVER",
        "OVERLAY",
        "PARTITION",
        "PIVOT",
        "POSITION",
        "QUALIFY",
        "RLIKE",
        "ROLLUP",
        "SELECT",
        "SETS",
        "SOME",
        "SUBSTR",
        "SUBSTRING",
        "TABLE",
        "TABLESAMPLE",
        "THEN",
        "TRIM",
        "TRY_CAST",
        "UNION",
        "UNPIVOT",
        "USING",
        "VALUES",
        "VIEW",
        "WHEN",
        "WHERE",
        "WINDOW",
        "WITH",
        "BROADCAST",
    ]
)
_TYPES_BEHIND = ("AS", "<", ":", "::")
_OPERATORS = ("=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>", "+", "-", "*", "/", "||")


def query_of(text: str, *, calls_by_name: bool = False) -> exp.Expr | None:
    """Parse a query in Spark SQL; None for a text outside Spark's grammar.

    Args:   calls_by_name: functions keep their names: all of them are `exp.Anonymous` (`call_name`).
    Raises: MisreadSql for an unclosed quotation.
    """
    from sqlglot import exp
    from sqlglot.errors import ParseError, TokenError

    dialect = _query_dialect()
    try:
        tokens = dialect.tokenize(text)
        if calls_by_name:
            words = _unknown_calls(tokens)
            if words is None:
                return None
            tokens = words
        trees = with_deep_stack(lambda: dialect.parser().parse(tokens, text))
    except TokenError as error:
        raise _misread(text, error) from None
    except ParseError:
        return None
    except RecursionError:
        raise MisreadSql("too many brackets in brackets", 0) from None
    trees = [tree for tree in trees if tree is not None]
    tree = trees[0] if len(trees) == 1 else None
    if tree is None or isinstance(tree, exp.Command):
        return None
    for node in tree.find_all(exp.Identifier) if calls_by_name else ():
        node.set("this", node.name.removeprefix(_UNKNOWN))
    return _with_strict_casts(tree)


def call_name(node: exp.Anonymous) -> str:
    """The name of a called function, in lower case."""
    return node.name.removeprefix(_UNKNOWN).lower()


def _unknown_calls(tokens: Sequence[Token]) -> list[Token] | None:
    """Put a prefix before the name of each call; None for a text outside Spark's grammar."""
    from sqlglot.tokens import Token, TokenType

    words = list(tokens)
    for place, token in enumerate(words):
        following = words[place + 1] if place + 1 < len(words) else None
        word = token.text.upper()
        if word == "IS" and token.token_type is TokenType.IS and _has_operator_behind(words, place):
            return None
        if token.text == "|>":
            return None
        if following is None or following.token_type is not TokenType.L_PAREN or not _is_name(token):
            continue
        before = words[place - 1] if place else None
        if _is_call(word, before, words[place + 2] if place + 2 < len(words) else None):
            words[place] = Token(
                TokenType.VAR, f"{_UNKNOWN}{token.text}", token.line, token.col, token.start, token.end
            )
    return words


def _is_name(token: Token) -> bool:
    return token.token_type.name not in ("STRING", "NUMBER", "IDENTIFIER") and token.text.replace("_", "a").isalnum()


def _is_call(word: str, before: Token | None, inside: Token | None) -> bool:
    if before is not None and (before.text.upper() in _TYPES_BEHIND or before.token_type.name in ("VAR", "IDENTIFIER")):
        return False
    if word == "FILTER":
        return inside is None or inside.text.upper() != "WHERE"
    if word == "EXISTS":
        return inside is None or inside.text.upper() not in ("SELECT", "WITH", "FROM", "(")
    if word in ("ANY", "SOME", "ALL"):
        return before is None or before.text.upper() not in (
            "LIKE",
            "ILIKE",
            "UNION",
            "EXCEPT",
            "INTERSECT",
            *_OPERATORS,
        )
    return word not in _GRAMMAR


def _has_operator_behind(tokens: Sequence[Token], place: int) -> bool:
    """True if an operator follows IS NULL and the like, which need brackets in Spark."""
    words = [token.text.upper() for token in tokens[place + 1 : place + 4]]
    if words[:1] == ["NOT"]:
        words = words[1:]
    return len(words) > 1 and words[0] in ("NULL", "TRUE", "FALSE", "UNKNOWN") and words[1] in _OPERATORS


def _with_strict_casts(tree: exp.Expr) -> exp.Expr:
    """Make a failing CAST an error, as in Spark's ANSI mode; in sqlglot's Spark dialect it is NULL."""
    from sqlglot import exp

    for node in list(tree.find_all(exp.TryCast)):
        if not node.args.get("safe"):  # TRY_CAST is safe
            node.replace(exp.Cast(this=node.this, to=node.to))
    return tree


def _parsed(parse: Callable[[], list[exp.Expr | None]], tokens: Sequence[Token], text: str) -> exp.Expr:
    """Parse tokens with sqlglot, with a sufficiently deep stack.

    Raises: MisreadSql with the position of the unexpected token.
    """
    from sqlglot.errors import ParseError

    try:
        trees = with_deep_stack(parse)
    except ParseError as error:
        problem = error.errors[0]
        line, column = problem.get("line"), problem.get("col")
        at = next((token.start for token in tokens if (token.line, token.col) == (line, column)), len(text))
        raise MisreadSql(str(problem.get("description") or "not understood"), at) from None
    except RecursionError:
        raise MisreadSql("too many brackets in brackets", 0) from None
    if len(trees) != 1 or trees[0] is None:
        raise MisreadSql("expected one expression", len(text) if not trees else 0)
    return trees[0]


def with_deep_stack(call: Callable[[], T]) -> T:
    """Run a call and return its result. If Python's stack is too small, a thread with a larger one runs it again."""
    try:
        return call()
    except RecursionError:
        pass
    answers: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            answers.append(call())
        except BaseException as error:
            errors.append(error)

    with _STACK:
        size, calls = threading.stack_size(_STACK_BYTES), sys.getrecursionlimit()
        sys.setrecursionlimit(max(calls, _STACK_CALLS))
        try:
            thread = threading.Thread(target=run, name="hudi-sql")
            thread.start()
            thread.join()
        finally:
            threading.stack_size(size)
            sys.setrecursionlimit(calls)
    if errors:
        raise errors[0]
    return answers[0]
