"""The condition of a MERGE INTO: which columns of the table it equates with what.

Where it equates each field of the key with something of the source, and says nothing else, a source row that meets no
row of the table has a new key.

Source: docs/sql-dml.md, "MERGE INTO".
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from pyhudi.sql.clauses import Reader
from pyhudi.sql.dml.scope import Scope
from pyhudi.sql.dml.target import Target

__all__ = ["Bindings", "bindings_of", "same_words"]

_EQUALS = ("=", "==", "<=>")


@dataclass(frozen=True, slots=True)
class Bindings:
    """`values`: column of the table → what it is equal to. `only_these`: the condition says no more than that, about
    key and partition columns.
    """

    values: Mapping[str, Reader]
    only_these: bool


def bindings_of(condition: Reader, target: Target, scope: Scope, source_columns: Collection[str]) -> Bindings:
    """What a condition binds. `source_columns`: names in small letters; a bare name of these is not the table's."""
    values: dict[str, Reader] = {}
    pure = True
    for part in _conjuncts(condition):
        sides = _sides(part)
        if sides is None:
            pure = False
            continue
        found = None
        for mine, other in ((0, 1), (1, 0)):
            name, is_cast = _column(sides[mine], target, scope, source_columns)
            if name is None or _column(sides[other], target, scope, source_columns)[0] is not None:
                continue
            if not is_cast and name not in values:
                found = name
                values[name] = sides[other]
            break
        pure = pure and found in target.fixed
    return Bindings(values, pure)


def same_words(one: Reader, other: Reader) -> bool:
    """Whether two expressions are written the same, but for blanks and capitals."""
    return _words(one) == _words(other)


def _words(reader: Reader) -> list[str]:
    return [token.text.strip("`").lower() for token in reader.tokens[reader.at : reader.stop]]


def _conjuncts(condition: Reader) -> Iterator[Reader]:
    inner = _without_parentheses(condition)
    if inner.find("OR") is not None:
        yield inner
        return
    while not inner.at_end:
        part = inner.until("AND")
        inner.accept("AND")
        if part.sees_symbol("(") and _without_parentheses(part).stop != part.stop:
            yield from _conjuncts(part)
        else:
            yield part


def _without_parentheses(reader: Reader) -> Reader:
    inner = Reader(reader.text, reader.tokens, reader.at, reader.stop)
    while inner.sees_symbol("("):
        probe = Reader(inner.text, inner.tokens, inner.at, inner.stop)
        inside = probe.parenthesised()
        if not probe.at_end:
            break
        inner = inside
    return inner


def _sides(part: Reader) -> tuple[Reader, Reader] | None:
    """Both sides of an equation; None for anything else."""
    depth, found = 0, []
    for place in range(part.at, part.stop):
        token = part.tokens[place]
        depth += token.is_symbol("(") - token.is_symbol(")")
        if depth == 0 and token.text in _EQUALS:
            found.append(place)
        elif depth == 0 and (token.text in ("<", ">", "<=", ">=", "<>", "!=") or token.is_word("NOT", "IS", "IN")):
            return None
    if len(found) != 1:
        return None
    left = Reader(part.text, part.tokens, part.at, found[0])
    right = Reader(part.text, part.tokens, found[0] + 1, part.stop)
    return None if left.at_end or right.at_end else (left, right)


def _column(
    side: Reader, target: Target, scope: Scope, source_columns: Collection[str]
) -> tuple[str | None, bool]:  # fmt: skip
    """The column of the table that one side of an equation is, and whether it is cast."""
    inner, is_cast = _without_parentheses(side), False
    if inner.sees("CAST"):
        inner.at += 1
        if inner.sees_symbol("("):
            inner, is_cast = inner.parenthesised().until("AS"), True
    token = inner.peek()
    if token is None or token.kind.value not in ("word", "name"):
        return None, is_cast
    name = inner.dotted()
    if not inner.at_end:
        return None, is_cast
    bare = scope.without_table(name)
    if len(bare) != 1 or (len(name) == 1 and bare[0].lower() in source_columns):
        return None, is_cast
    return target.find(bare[0]), is_cast
