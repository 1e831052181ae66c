"""The tables that a query reads, with the positions of their names in its text, so that only these can be replaced.

One pass over the tokens finds them, without a parser. FROM, JOIN, TABLE, parentheses and commas between relations
introduce a relation; a name of WITH hides a table. The rest of the text is not changed.
Source: Spark's SQL reference, "SELECT", "Common Table Expression", "Table-valued Functions".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pyhudi.sql.session import TableName
from pyhudi.sql.tokens import Reader, SqlToken, TokenKind, keywords

__all__ = ["FUNCTIONS", "Reference", "references"]

FUNCTIONS = frozenset(
    {"hudi_query", "hudi_table_changes", "hudi_query_timeline", "hudi_metadata", "hudi_filesystem_view"}
)
_QUERY_STARTS = ("SELECT", "WITH", "FROM", "TABLE", "VALUES", "MAP", "REDUCE")
_AFTER_RELATIONS = keywords(
    "WHERE GROUP HAVING ORDER SORT CLUSTER DISTRIBUTE LIMIT OFFSET UNION INTERSECT EXCEPT MINUS WINDOW QUALIFY "
    "SELECT SET WHEN INSERT"
)
_NO_ALIAS = _AFTER_RELATIONS | keywords(
    "JOIN INNER CROSS LEFT RIGHT FULL NATURAL SEMI ANTI LATERAL ON USING TABLESAMPLE PIVOT UNPIVOT FROM MAP "
    "REDUCE VALUES WITH MATCH_RECOGNIZE"
)
_BEFORE_TABLE = ("AS", "UNION", "ALL", "DISTINCT", "INTERSECT", "EXCEPT", "MINUS", "EXPLAIN", "EXTENDED", "FORMATTED")


@dataclass(frozen=True, slots=True)
class Reference:
    """A table in a query. `text[start:end]` is its name with its time travel.

    `arguments`: the texts of a table function's arguments; None for a table. `as_of`: the expression of its time
    travel. `alias_at`: the place for an alias; None when the table has one or takes none.
    """

    name: TableName
    start: int
    end: int
    as_of: str | None = None
    arguments: tuple[str, ...] | None = None
    alias_at: int | None = None


@dataclass(slots=True)
class _Group:
    """The inside of a pair of parentheses, or the whole statement."""

    is_query: bool
    expects: bool = False  # a relation follows
    is_bare: bool = False  # after TABLE, which takes no alias
    has_relations: bool = False  # another one follows a comma
    defines: bool = False  # in a WITH clause: a name and its query follow
    defined: str | None = None  # the name in WITH of the query in these parentheses
    hidden: set[str] = field(default_factory=set)  # tables hidden by names of WITH


def references(text: str, tokens: Sequence[SqlToken]) -> list[Reference]:
    """Find the tables and Hudi's table functions in a query, in order, without the names that WITH defines."""
    walk = _Walk(Reader(text, tokens))
    walk.run()
    return walk.references


class _Walk:
    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.references: list[Reference] = []
        self.groups = [_Group(is_query=True)]
        self.is_merge = reader.sees("MERGE")

    def run(self) -> None:
        reader = self.reader
        while (token := reader.peek()) is not None:
            group = self.groups[-1]
            if token.kind is TokenKind.SYMBOL:
                reader.at += 1
                self._symbol(token, group)
            elif group.defines and self._definition(group):
                continue
            elif group.expects and token.is_name:
                self._relation(group)
            else:
                reader.at += 1
                if token.kind is TokenKind.WORD:
                    self._word(token, group)

    def _symbol(self, token: SqlToken, group: _Group) -> None:
        if token.text == "(":
            self._open(group, None)
        elif token.text == ")" and len(self.groups) > 1:
            inner = self.groups.pop()
            outer = self.groups[-1]
            if inner.defined is not None:
                outer.hidden.add(inner.defined)
                outer.defines = self.reader.sees_symbol(",")
        elif token.text == "," and group.has_relations:
            group.expects = True

    def _open(self, group: _Group, defined: str | None) -> None:
        """Enter parentheses; the cursor is after the opening one."""
        is_query = defined is not None or any(self.reader.sees(word) for word in _QUERY_STARTS)
        inner = _Group(is_query, defined=defined)
        if group.expects and not is_query:
            inner.expects = inner.has_relations = True
        group.expects = False
        self.groups.append(inner)

    def _word(self, token: SqlToken, group: _Group) -> None:
        word = token.text.upper()
        before = self._before(2)
        if word == "FROM":
            if group.is_query and not (before is not None and before.is_word("DISTINCT") and self._is_comparison()):
                group.expects = group.has_relations = True
        elif word == "JOIN":
            group.expects = group.is_query or group.has_relations
        elif word == "WITH" and group.is_query:
            group.defines = True
        elif word == "TABLE" and group.is_query:
            starts = before is None or before.is_symbol("(") or before.is_word(*_BEFORE_TABLE)
            group.expects = group.is_bare = starts
        elif word == "USING" and self.is_merge and len(self.groups) == 1:
            group.expects = True
        elif word in _AFTER_RELATIONS or (word == "LATERAL" and self.reader.sees("VIEW")):
            group.has_relations = False

    def _is_comparison(self) -> bool:
        """True for the FROM of IS [NOT] DISTINCT FROM; the cursor is after it."""
        third = self._before(3)
        return third is not None and third.is_word("IS", "NOT")

    def _before(self, back: int) -> SqlToken | None:
        place = self.reader.at - back
        return self.reader.tokens[place] if place >= 0 else None

    def _definition(self, group: _Group) -> bool:
        """Read `name [(columns)] AS (` of a WITH clause; False if something else follows."""
        reader = self.reader
        start = reader.at
        is_recursive = reader.accept("RECURSIVE") or group.defined == ""
        token = reader.peek()
        if token is None or token.kind is TokenKind.SYMBOL:
            group.defines = False
            return False
        name = reader.identifier().lower()
        if reader.sees_symbol("("):
            reader.parenthesised()
        if reader.accept("MAX RECURSION LEVEL"):
            reader.at += 1
        reader.accept("AS")
        if not reader.accept_symbol("("):
            reader.at = start
            group.defines = False
            return False
        group.defines = False
        if is_recursive:
            group.hidden.add(name)
        self._open(group, name)
        return True

    def _relation(self, group: _Group) -> None:
        reader = self.reader
        if reader.accept("LATERAL"):
            return  # a query or a function follows
        group.expects, is_bare, group.is_bare = False, group.is_bare, False
        if any(reader.sees(word) for word in ("SELECT", "VALUES", "STREAM", "WITH")):
            return
        first = reader.at
        parts = reader.dotted()
        arguments: tuple[str, ...] | None = None
        if reader.sees_symbol("("):
            if len(parts) > 1 or parts[0].lower() not in FUNCTIONS:
                return
            arguments = tuple(part.words() for part in reader.parts())
        elif len(parts) == 1 and any(parts[0].lower() in outer.hidden for outer in self.groups):
            return
        as_of = None if arguments is not None else self._as_of()
        start, end = reader.tokens[first].start, reader.tokens[reader.at - 1].end
        alias_at = None if is_bare else self._alias_at(end)
        self.references.append(Reference(TableName(parts), start, end, as_of, arguments, alias_at))

    def _as_of(self) -> str | None:
        reader = self.reader
        start = reader.at
        reader.accept("FOR")
        for words in ("TIMESTAMP AS OF", "SYSTEM_TIME AS OF", "VERSION AS OF", "SYSTEM_VERSION AS OF"):
            if reader.accept(words):
                first = reader.at
                self._expression()
                return reader.cut(first, reader.at)
        reader.at = start
        return None

    def _expression(self) -> None:
        """Skip literals, calls and parentheses with + and - between them."""
        reader = self.reader
        while True:
            while reader.accept_symbol("-") or reader.accept_symbol("+"):
                pass
            token = reader.peek()
            if token is None:
                raise reader.error("the time to travel to")
            if reader.accept("INTERVAL"):
                self._interval()
            elif token.is_symbol("("):
                reader.parenthesised()
            elif token.kind is TokenKind.WORD and not token.is_word("DATE", "TIMESTAMP"):
                reader.dotted()
                if reader.sees_symbol("("):
                    reader.parenthesised()
            elif token.kind is TokenKind.WORD:
                reader.at += 1
                reader.parenthesised() if reader.sees_symbol("(") else reader.value("the time to travel to")
            else:
                reader.value("the time to travel to")
            if not (reader.sees_symbol("-") or reader.sees_symbol("+")):
                return

    def _interval(self) -> None:
        reader = self.reader
        while (token := reader.peek()) is not None and token.kind in (TokenKind.NUMBER, TokenKind.TEXT):
            reader.at += 1
            unit = reader.peek()
            if unit is not None and unit.kind is TokenKind.WORD and not self._ends_relation(unit):
                reader.at += 1

    def _alias_at(self, end: int) -> int | None:
        """The position for an alias, after TABLESAMPLE; None if there is an alias."""
        reader = self.reader
        start = reader.at
        if reader.accept("TABLESAMPLE"):
            reader.parenthesised()
            if reader.accept("REPEATABLE"):
                reader.parenthesised()
            end = reader.tokens[reader.at - 1].end
        token = reader.peek()
        reader.at = start
        has_alias = token is not None and token.is_name and not self._ends_relation(token)
        return None if has_alias else end

    @staticmethod
    def _ends_relation(token: SqlToken) -> bool:
        return token.kind is TokenKind.WORD and token.text.upper() in _NO_ALIAS
