"""Delete partition: all file groups of some partitions leave the table in one commit.

Partitions are named by their paths, with `*` for any text, or by rows that would go to them. Names without a partition
are passed over: what the call wants is true already. Source: spec, metadata and indexes 5.8; timeline 4.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import pyarrow as pa

from pyhudi.actions.action import ActionContext, Order, Schedule
from pyhudi.actions.rows import batch_by_partition
from pyhudi.actions.table_keys import PROBE_TIME, table_keygen
from pyhudi.actions.writes.bulk_insert import AddKeyColumns
from pyhudi.actions.writes.keyed_write import commit_body
from pyhudi.actions.writes.preparation import check_keys, data_columns, schedule_unchanged, write_spec
from pyhudi.actions.writes.replacing import Groups, check_not_planned, existing_groups, replacing
from pyhudi.engine.base import Frame
from pyhudi.errors import ConfigError
from pyhudi.formats.instant_files import encode_requested_replace
from pyhudi.merge.rules import MergeRules
from pyhudi.model.commit import CommitMetadata, OperationType
from pyhudi.model.instant import ActionKind, Instant
from pyhudi.model.keys import PARTITION_PATH, RECORD_KEY
from pyhudi.model.options import WriteOptions
from pyhudi.model.write_status import WriteStatus

__all__ = ["DeletePartitions", "delete_partition", "matching"]

_WILDCARD = re.compile(r"\*|%2A")  # SQL escapes the star
_NAMED_FROM_VERSION = 9  # from this table version on Hudi says in the requested file what it is
_KEY_SCHEMA = pa.schema([pa.field(name, pa.string(), nullable=False) for name in (RECORD_KEY, PARTITION_PATH)])


def delete_partition(frame: Frame | None, options: WriteOptions) -> DeletePartitions:
    """The action. Raises ConfigError when neither the options nor rows say which partitions."""
    patterns = options.replacing.partitions_to_delete
    if not patterns and frame is None:
        raise ConfigError(
            "Which partitions? Give their paths in hoodie.datasource.write.partitions.to.delete, with * for any text, "
            "or rows that would go to them."
        )
    return DeletePartitions(patterns, None if patterns else frame)


def matching(patterns: Iterable[str], partitions: Iterable[str]) -> tuple[str, ...]:
    """The partitions that a path or pattern names, in their order."""
    wanted = [_regex(pattern) for pattern in patterns]
    return tuple(path for path in partitions if any(regex.fullmatch(path) for regex in wanted))


def _regex(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(text) for text in _WILDCARD.split(pattern)), re.DOTALL)


@dataclass(frozen=True, slots=True)
class DeletePartitions:
    """`frame`: rows whose partitions go; None: `patterns` say which. `are_paths`: a star in them stands for itself."""

    patterns: tuple[str, ...]
    frame: Frame | None = None
    are_paths: bool = False
    kind: ActionKind = field(default=ActionKind.REPLACECOMMIT)

    @property
    def operation(self) -> str:
        return OperationType.DELETE_PARTITION

    def schedule(self, context: ActionContext) -> Schedule:
        if self.frame is None:
            check_not_planned(self._groups(context), context, self.operation, compactions=True)
        else:
            check_keys(table_keygen(context, PROBE_TIME), context.engine.schema(self.frame))
        named = context.meta.config.table_version >= _NAMED_FROM_VERSION
        body = encode_requested_replace(self.operation, extra_metadata={}) if named else encode_requested_replace()
        return replace(schedule_unchanged(context), body=body)

    def prepare(self, schedule: Schedule, instant: Instant, context: ActionContext) -> Order:
        groups = self._groups(context)
        check_not_planned(groups, context, self.operation, compactions=True)
        # No row is written, so neither keys nor the table's merger are asked for, which may be unknown here.
        spec = write_spec(schedule, None, instant, context, MergeRules())
        return Order(instant, schedule, spec, CommitMetadata({}, operation_type=self.operation), None, plan=groups)

    def execute(self, order: Order, context: ActionContext) -> tuple[WriteStatus, ...]:
        return ()

    def summarise(self, order: Order, statuses: tuple[WriteStatus, ...], context: ActionContext) -> CommitMetadata:
        return replacing(commit_body(self.operation, order.schedule, statuses, context), order.plan)

    def _groups(self, context: ActionContext) -> Groups:
        everything = existing_groups(context)
        if self.frame is not None:
            names = self._partitions_of_rows(context)
        else:
            names = self.patterns if self.are_paths else matching(self.patterns, everything)
        return {path: everything[path] for path in names if path in everything}

    def _partitions_of_rows(self, context: ActionContext) -> tuple[str, ...]:
        engine, keygen = context.engine, table_keygen(context, PROBE_TIME)
        rows = data_columns(self.frame, context)
        columns = list(keygen.input_columns) or list(engine.schema(rows).names)
        return tuple(batch_by_partition(engine, engine.extend(rows, columns, AddKeyColumns(keygen), _KEY_SCHEMA)))
