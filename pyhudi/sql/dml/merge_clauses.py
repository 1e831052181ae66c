"""The clauses of MERGE INTO, and the columns of the table that its condition equates with values.

    MERGE INTO t [AS x] USING source [AS s] ON condition
    WHEN MATCHED [AND c] THEN UPDATE SET * | a = …, … | DELETE
    WHEN NOT MATCHED [BY TARGET] [AND c] THEN INSERT * | (columns) VALUES (…)
    WHEN NOT MATCHED BY SOURCE [AND c] THEN UPDATE SET a = …, … | DELETE

A condition may consist only of equations of each field of the key with a value of the source. Then a source row without
a match has a new key.

Source: docs/sql-dml.md, "MERGE INTO".
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pyhudi.actions.changes.clauses import When
from pyhudi.errors import ConfigError
from pyhudi.expressions.terms import check_repeatable
from pyhudi.sql.dml.target import Scope, Target, read_alias
from pyhudi.sql.dml.update import SqlAssignment, read_assignments
from pyhudi.sql.tokens import Reader

__all__ = ["Bindings", "MergeClause", "MergeSource", "bindings_of", "read_clauses", "read_source", "same_words"]


_STARTS = ("WHEN MATCHED", "WHEN NOT MATCHED")


@dataclass(frozen=True, slots=True)
class MergeSource:
    """The rows to merge. `relation`: a table's name, a query in parentheses or a frame in braces, in the user's own
    text. `columns`: column names from the alias.
    """

    relation: str
    alias: str
    columns: str = ""

    @property
    def text(self) -> str:
        """The source for a FROM clause."""
        return f"{self.relation} AS `{self.alias}`{self.columns}"


@dataclass(frozen=True, slots=True)
class MergeClause:
    """One WHEN clause. `star`: it sets all columns; otherwise it makes the `assignments`."""

    when: When
    verb: Literal["update", "delete", "insert"]
    condition: Reader | None
    star: bool = False
    assignments: tuple[SqlAssignment, ...] = ()

    @property
    def readers(self) -> tuple[Reader, ...]:
        """The clause's expressions."""
        values = tuple(assignment.value for assignment in self.assignments)
        return values if self.condition is None else (self.condition, *values)


def read_source(reader: Reader) -> MergeSource:
    """Read the source after USING."""
    start, name = reader.at, "_pyhudi_source_rows"
    if reader.sees_symbol("("):
        reader.parenthesised()
    elif reader.accept_symbol("{"):  # a frame: spark.sql("… USING {df} AS s …", df=df)
        reader.identifier("the name of a frame")
        reader.expect_symbol("}")
    else:
        name = reader.table_name().parts[-1]
    relation = reader.cut(start, reader.at)
    alias = read_alias(reader, "ON") or name
    columns = ""
    if reader.sees_symbol("("):
        start = reader.at
        reader.parenthesised()
        columns = reader.cut(start, reader.at)
    return MergeSource(relation, alias, columns)


def read_clauses(reader: Reader) -> tuple[MergeClause, ...]:
    """Read all clauses. Raises ConfigError without a clause, and for a clause that can't be reached."""
    clauses: list[MergeClause] = []
    while not reader.at_end:
        clauses.append(_clause(reader))
    if not clauses:
        raise reader.error("WHEN MATCHED or WHEN NOT MATCHED")
    for number, clause in enumerate(clauses):
        if clause.condition is None and any(later.when is clause.when for later in clauses[number + 1 :]):
            raise ConfigError(
                "MERGE INTO: only the last clause of its kind may leave its condition out; the clause after it would "
                "never get a row."
            )
    return tuple(clauses)


def _clause(reader: Reader) -> MergeClause:
    when = _kind(reader)
    condition = None
    if reader.accept("AND"):
        condition = reader.until("THEN")
        if condition.at_end:
            raise condition.error("a condition")
        check_repeatable(condition.remaining_text, "MERGE INTO, WHEN")
    reader.expect("THEN")
    if when is When.NOT_MATCHED:
        reader.expect("INSERT")
        return _insert(reader, condition)
    if reader.accept("DELETE"):
        return MergeClause(when, "delete", condition)
    reader.expect("UPDATE SET")
    if reader.accept_symbol("*"):
        if when is When.NOT_MATCHED_BY_SOURCE:
            raise ConfigError("MERGE INTO: UPDATE SET * takes values of the source, which rows not in it don't have.")
        return MergeClause(when, "update", condition, star=True)
    assignments = read_assignments(reader.until(*_STARTS))
    return MergeClause(when, "update", condition, assignments=assignments)


def _kind(reader: Reader) -> When:
    if reader.accept("WHEN MATCHED"):
        return When.MATCHED
    reader.expect("WHEN NOT MATCHED")
    if reader.accept("BY SOURCE"):
        return When.NOT_MATCHED_BY_SOURCE
    reader.accept("BY TARGET")
    return When.NOT_MATCHED


def _insert(reader: Reader, condition: Reader | None) -> MergeClause:
    if reader.accept_symbol("*"):
        return MergeClause(When.NOT_MATCHED, "insert", condition, star=True)
    names = []
    for part in reader.parts():
        names.append(part.dotted("a column"))
        part.expect_end()
    reader.expect("VALUES")
    values: Sequence[Reader] = list(reader.parts())
    if len(names) != len(values):
        raise ConfigError(f"MERGE INTO: INSERT names {len(names)} columns and has {len(values)} values.")
    assignments = tuple(SqlAssignment(name, value) for name, value in zip(names, values, strict=True))
    return MergeClause(When.NOT_MATCHED, "insert", condition, assignments=assignments)


_EQUALS = ("=", "==", "<=>")


@dataclass(frozen=True, slots=True)
class Bindings:
    """The equations of a condition. `values`: column of the table → its value. `only_these`: the condition has no other
    part, and equates only key and partition columns.
    """

    values: Mapping[str, Reader]
    only_these: bool


def bindings_of(condition: Reader, target: Target, scope: Scope, source_columns: Collection[str]) -> Bindings:
    """Find the equations of a condition. `source_columns`: in lower case; these names, if bare, are the source's."""
    values: dict[str, Reader] = {}
    pure = True
    for part in _conjuncts(condition):
        sides = _sides(part)
        if sides is None:
            pure = False
            continue
        column = None
        for mine, other in ((0, 1), (1, 0)):
            name, is_cast = _column(sides[mine], target, scope, source_columns)
            if name is None or _column(sides[other], target, scope, source_columns)[0] is not None:
                continue
            if not is_cast and name not in values:
                column = name
                values[name] = sides[other]
            break
        pure = pure and column in target.fixed
    return Bindings(values, pure)


def same_words(one: Reader, other: Reader) -> bool:
    """True if two expressions have the same words, ignoring blanks and case."""
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
    """Split an equation into its sides; None for anything else."""
    depth, signs = 0, []
    for place in range(part.at, part.stop):
        token = part.tokens[place]
        depth += token.is_symbol("(") - token.is_symbol(")")
        if depth == 0 and token.text in _EQUALS:
            signs.append(place)
        elif depth == 0 and (token.text in ("<", ">", "<=", ">=", "<>", "!=") or token.is_word("NOT", "IS", "IN")):
            return None
    if len(signs) != 1:
        return None
    left = Reader(part.text, part.tokens, part.at, signs[0])
    right = Reader(part.text, part.tokens, signs[0] + 1, part.stop)
    return None if left.at_end or right.at_end else (left, right)


def _column(
    side: Reader, target: Target, scope: Scope, source_columns: Collection[str]
) -> tuple[str | None, bool]:  # fmt: skip
    """The column of the table if one side of an equation is one, and whether it is cast."""
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
