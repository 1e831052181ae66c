"""Lists of statements by case: files `*.sql` in this folder, to be run on real Hudi and here.

-- case: a sentence              a case begins; its tables are its own
-- only: spark                   words that only this engine has
-- differs: why                  real Hudi does something else; `expect` says what is right
SELECT ... ;                     its rows are compared
-- expect: [{"id": 1}, ...]      the rows that are right, where Hudi has others or where no Hudi is asked
-- refused                       the statement before is an error

In `dml.sql` the cases say themselves what is right. What real Hudi did with those of the other files is recorded
(`recorded.py`), and `differs` after a statement says that this one's answer is another here: the rows that `expect`
gives, an error with `refused`, else no error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent
_TABLE = re.compile(
    r"CREATE TABLE (\w+) \((.*)\) USING hudi(?: PARTITIONED BY \(([^)]*)\))?(?: TBLPROPERTIES \((.*)\))?"
)


@dataclass(frozen=True)
class Case:
    """`statements`: in their order, with the rows that the case itself gives for some (None: it gives none).

    `differs`: why real Hudi does something else in the case; `differing`: by the number of a statement, why there.
    """

    name: str
    statements: tuple[tuple[str, list[dict[str, Any]] | None], ...]
    only: str = ""
    differs: str = ""
    refused: frozenset[int] = frozenset()
    differing: Mapping[int, str] = field(default_factory=dict)

    def check(self, found: list[list[dict[str, Any]] | str]) -> None:
        """Assert that the statements did what the case says. `found`: what a runner returns."""
        for number, ((statement, rows), result) in enumerate(zip(self.statements, found, strict=True)):
            is_refused = isinstance(result, str) and result.startswith("refused: ")
            assert is_refused == (number in self.refused), f"{statement}\n{result}"
            if rows is not None:
                assert isinstance(result, list)
                assert as_json(result) == as_json(rows), statement


def as_json(rows: list[dict[str, Any]]) -> list[str]:
    """Rows in one spelling and order."""
    return sorted(json.dumps(row, sort_keys=True, default=str) for row in rows)


@dataclass(frozen=True)
class NewTable:
    """The parts of a CREATE TABLE."""

    name: str
    columns: str
    partitions: tuple[str, ...]
    properties: dict[str, str]


def cases(file: str) -> list[Case]:
    """The cases of a file."""
    text = (_HERE / file).read_text()
    return [_case(part) for part in re.split(r"^-- case: ", text, flags=re.MULTILINE)[1:]]


def _case(text: str) -> Case:
    name, _, body = text.partition("\n")
    statements: list[tuple[str, list[dict[str, Any]] | None]] = []
    words, refused, differing = {"only": "", "differs": ""}, set(), {}
    for line in body.splitlines():
        word, _, rest = line.removeprefix("-- ").partition(": ")
        if not line.startswith("-- "):
            if line.strip():
                statements.append((line.strip().removesuffix(";"), None))
        elif word == "expect":
            statements[-1] = (statements[-1][0], json.loads(rest))
        elif word == "refused":
            refused.add(len(statements) - 1)
        elif word == "differs" and statements:
            differing[len(statements) - 1] = rest
        else:
            words[word] = rest
    return Case(name, tuple(statements), words["only"], words["differs"], frozenset(refused), differing)


def new_table(statement: str) -> NewTable | None:
    """The parts of a CREATE TABLE in the form that the lists use, None for another statement."""
    found = _TABLE.fullmatch(statement)
    if found is None:
        return None
    name, columns, partitions, properties = found.groups()
    given = dict(re.findall(r"([\w.]+) = '([^']*)'", properties or ""))
    return NewTable(name, columns, tuple(p.strip() for p in (partitions or "").split(",") if p.strip()), given)


def with_place(statement: str, place: str) -> str:
    """A CREATE TABLE with its folder."""
    at = statement.find(" TBLPROPERTIES")
    location = f" LOCATION '{place}'"
    return statement + location if at < 0 else statement[:at] + location + statement[at:]
