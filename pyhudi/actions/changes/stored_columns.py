"""What a change has to know of stored rows: which columns a task reads of its slice before it writes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyhudi.actions.changes.clauses import BoundClause
from pyhudi.actions.changes.computed import NumberedClause
from pyhudi.filegroup.write.spec import WriteSpec
from pyhudi.merge.rules import MergeRules
from pyhudi.model.keys import COMMIT_SEQNO, RECORD_KEY

__all__ = ["ALL_COLUMNS", "StoredColumns"]


@dataclass(frozen=True, slots=True)
class StoredColumns:
    """Columns by what the task writes: a new version of the base file, or blocks of a log file. None: all.

    `whole`: for rows that are written whole.
    """

    for_file: tuple[str, ...] | None = None
    for_log: tuple[str, ...] | None = None
    whole: tuple[str, ...] | None = None

    @classmethod
    def of(
        cls,
        clauses: Sequence[BoundClause | NumberedClause],
        spec: WriteSpec,
        rules: MergeRules,
        kept: Mapping[int, frozenset[str]],
        partial: Mapping[int, frozenset[str]],
        *,
        is_placed: bool,
    ) -> StoredColumns:
        """For the clauses of a change.

        Args:
            kept: by the number of a clause the columns that the rewrite of a file takes from its rows.
            partial: by the number of a clause the columns of its partial updates.
            is_placed: the rows of the change say which rows of the table they came from.
        """
        if not spec.populate_meta_fields or not all(isinstance(clause, NumberedClause) for clause in clauses):
            return cls()
        ordering = {name.partition(".")[0] for name in rules.ordering_fields}
        unset = {
            number: set(spec.schema.names) - {assigned.column.name for assigned in clause.assignments}
            for number, clause in enumerate(clauses)
            if clause.does == "update"
        }
        required = {field.name for field in spec.schema if not field.nullable}

        metas = (COMMIT_SEQNO, RECORD_KEY) if is_placed else (RECORD_KEY,)

        def columns(needed: Iterable[set[str]]) -> tuple[str, ...]:
            names = ordering.union(*needed)
            return (*metas, *(name for name in spec.schema.names if name in names))

        return cls(
            columns(names - kept.get(number, frozenset()) for number, names in unset.items()),
            columns(names & required if number in partial else names for number, names in unset.items()),
            columns(unset.values()),
        )


ALL_COLUMNS = StoredColumns()
