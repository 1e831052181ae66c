"""The work of write tasks in upsert, insert and delete: one slot, one file group (or several new ones).

Source: docs/formats/merging.md, "Two versions of a key"; docs/architecture.md, "How a table changes".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar, cast

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.actions.partitioner import WriteTask
from pyhudi.actions.table_keys import key_collisions
from pyhudi.actions.writes.delete_keys import DeletedRows
from pyhudi.engine.base import TaskContext
from pyhudi.filegroup.write.append import LogOptions, append_log
from pyhudi.filegroup.write.appended_keys import AppendedKeys
from pyhudi.filegroup.write.merge import merge_file
from pyhudi.filegroup.write.new_files import create_files
from pyhudi.filegroup.write.spec import WriteSpec
from pyhudi.filegroup.write.status import to_batch
from pyhudi.formats.damage import check_text
from pyhudi.merge.pairs import combine_input
from pyhudi.merge.rules import MergeRules
from pyhudi.model.commit import WriteStatus
from pyhudi.model.keys import BASE_ROW, CHANGE, CONTROL_COLUMNS, IS_DELETE, PARTITION_PATH, RECORD_KEY, STORED_ROW
from pyhudi.schema.projection import project
from pyhudi.storage.base import Storage
from pyhudi.storage.clock import Clock
from pyhudi.storage.place import is_local

__all__ = ["WriteSlot", "are_quick"]


_CONTROL = (RECORD_KEY, PARTITION_PATH, IS_DELETE, CHANGE, BASE_ROW, STORED_ROW)
_QUICK_BASE_BYTES = 2 << 20  # of base files: rewriting them takes some 50 ms
_SLOT_ROWS_BITS = 32  # bits for the number of a row in its slot

Rows = TypeVar("Rows", pa.RecordBatch, pa.Table)


def are_quick(tasks: Iterable[WriteTask], storage: Storage) -> bool:
    """True if the base files that the tasks rewrite are small."""
    sizes = (0 if task.base_file is None else task.base_file.size_bytes for task in tasks)
    return is_local(storage) and sum(sizes) <= _QUICK_BASE_BYTES


@dataclass(frozen=True, slots=True)
class WriteSlot:
    """Group work: the rows of a slot become files, by its number and task.

    `combining` says how rows of one key become one; None keeps them side by side. `match_keys` False appends rows to a
    file without looking up their keys in it (operation insert). `logs`: how log files are written, for merge-on-read
    tables; `partial`: see `append_log`; `unchanged`: see `merge_file`. `key_fields`: the key fields, where different
    values could make the same key. `appended`: reports inserted and deleted keys of an append, None: not needed.
    `deleted`: all rows are deletes by key, and in log files they have the ordering values of the rows that it finds.
    `is_quick`: few rows go to log files, and to base files that are small.
    """

    spec: WriteSpec
    combining: MergeRules | None
    match_keys: bool
    clock: Clock
    logs: LogOptions = field(default_factory=LogOptions)
    partial: Mapping[int, frozenset[str]] = field(default_factory=dict)
    unchanged: Mapping[int, frozenset[str]] = field(default_factory=dict)
    key_fields: tuple[str, ...] = ()
    appended: AppendedKeys | None = None
    deleted: DeletedRows | None = None
    is_quick: bool = False

    def __call__(
        self,
        context: TaskContext,
        numbered: tuple[int, WriteTask],
        batches: Iterator[pa.RecordBatch],
        combined: int = 0,
    ) -> Iterator[pa.RecordBatch]:
        """Write a slot. `combined`: how many of its rows were combined with others before."""
        statuses = self._statuses(context, numbered, batches)
        for status in statuses:
            yield to_batch([replace(status, combined=status.combined + combined)])
            combined = 0

    def _statuses(
        self, context: TaskContext, numbered: tuple[int, WriteTask], batches: Iterator[pa.RecordBatch]
    ) -> Iterator[WriteStatus]:
        slot, task = numbered
        # A sequence number names task and row. In a task with several slots, the row numbers of each begin far apart.
        first_seq = 0 if context.partition_id == slot else slot << _SLOT_ROWS_BITS
        if task.kind == "drop":
            for _ in batches:  # Spark needs its rows consumed
                pass
        elif task.kind == "merge":
            assert task.base_file is not None
            table, warning, combined = self._table(batches)
            rows = self._fitted(table)
            status = merge_file(
                self.spec, context, task.base_file, rows, self.clock,
                match_keys=self.match_keys, first_seq=first_seq, unchanged=self.unchanged,
            )  # fmt: skip
            yield replace(status, warning=warning, combined=combined)
        elif task.kind == "append":
            yield from self._appended(context, task, batches, first_seq)
        else:
            source, warning, combined = batches, "", 0
            if self.combining is not None:
                table, warning, combined = self._table(batches)
                source = iter(table.to_batches())
            new, place = self._new_rows(source), task.partition_path
            for status in create_files(
                self.spec, context, place, new, file_id=task.file_id, clock=self.clock, first_seq=first_seq
            ):
                yield replace(status, warning=warning, combined=combined)
                combined = 0

    def _appended(
        self, context: TaskContext, task: WriteTask, batches: Iterator[pa.RecordBatch], first_seq: int
    ) -> Iterator[WriteStatus]:
        assert task.file_slice is not None
        table, warning, combined = self._table(batches)
        rows = self._fitted(table)
        if task.is_new_group:
            rows = rows.filter(pc.invert(rows.column(IS_DELETE)))  # a new file has no rows to delete
        elif self.deleted is not None:
            rows = self.deleted.with_rows(task.file_slice, rows)
        if len(rows):
            inserts = pa.repeat(task.is_new_group, len(rows))
            statuses = append_log(
                self.spec,
                context,
                task.file_slice,
                rows,
                self.clock,
                options=self.logs,
                inserts=inserts,
                first_seq=first_seq,
                partial={} if task.is_new_group else self.partial,
            )
            if self.appended is not None:
                statuses = iter(self.appended.reported(self.spec, task.file_slice, rows, list(statuses)))
            for status in statuses:
                yield replace(status, warning=warning, combined=combined)
                combined = 0

    def _table(self, batches: Iterator[pa.RecordBatch]) -> tuple[pa.Table, str, int]:
        """All rows of the slot, one per key when keys are combined, a warning of colliding keys, and how many rows were
        combined with others.

        A slot is sized to fit in memory.
        """
        table = pa.Table.from_batches(list(batches))
        if self.combining is None:
            return table, "", 0
        rows = combine_input(table, self.combining)
        return rows, key_collisions(table, self.key_fields), len(table) - len(rows)

    def _new_rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows for new files, without deletes, which have nothing to delete there."""
        for batch in batches:
            live = pc.invert(batch.column(IS_DELETE))
            rows = batch if pc.all(live).as_py() else batch.filter(live)
            if rows.num_rows:
                yield self._fitted(rows)

    def _fitted(self, rows: Rows) -> Rows:
        """Data columns in the table's types, with keys and delete flags."""
        control: list[str] = [name for name in _CONTROL if name in rows.schema.names]
        data = [n for n in rows.schema.names if n not in CONTROL_COLUMNS and n not in (RECORD_KEY, PARTITION_PATH)]
        if not data:
            return rows.select(control)
        if not self.spec.texts_are_checked:
            check_text(rows.select(data))
        fitted: Rows = project(rows.select(data), self.spec.schema, exact=True)
        columns = [*(fitted.column(i) for i in range(fitted.num_columns)), *(rows.column(name) for name in control)]
        schema = pa.schema([*fitted.schema, *(rows.schema.field(name) for name in control)])
        return type(rows).from_arrays(cast("list[pa.Array]", columns), schema=schema)  # a table takes chunked ones too
