"""Delete partition: one commit replaces all file groups of some partitions by none.

Partitions are named by their paths, by patterns with `*` for any text, or by rows that belong to them. Outer slashes
and hive style with or without the fields' names don't matter. Names without a partition are skipped with a warning that
names the nearest; without any partition to delete there is no commit. Hudi's option has paths and patterns in one list;
an entry there means the partition of exactly that name, if it exists. Source: docs/formats/table-services.md, "Replaced
file groups"; docs/formats/timeline.md, "Bodies".
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from itertools import islice

import pyarrow as pa

from pyhudi.actions.action import ActionContext, PreparedWrite, Schedule
from pyhudi.actions.rows import batch_by_partition
from pyhudi.actions.table_keys import PROBE_TIME, table_keygen
from pyhudi.actions.writes.bulk_insert import AddKeyColumns
from pyhudi.actions.writes.insert_overwrite import Groups, check_not_planned, existing_groups, replacing
from pyhudi.actions.writes.preparation import check_keys, commit_body, data_columns, schedule_unchanged, write_spec
from pyhudi.engine.base import Frame
from pyhudi.errors import ConfigError
from pyhudi.formats.timeline.instant_files import encode_requested_replace
from pyhudi.merge.rules import MergeRules
from pyhudi.model.commit import CommitMetadata, OperationType, WriteStatus
from pyhudi.model.instant import ActionKind, Instant
from pyhudi.model.keys import PARTITION_PATH, RECORD_KEY
from pyhudi.model.options import WriteOptions
from pyhudi.model.table_config import TableConfig
from pyhudi.warnings import warn_caller

__all__ = ["DeletePartitions", "delete_partition", "matching"]

_WILDCARD = re.compile(r"\*|%2A")  # SQL escapes the star
_NEAREST = 3  # nearest partitions in a warning
_KEY_SCHEMA = pa.schema([pa.field(name, pa.string(), nullable=False) for name in (RECORD_KEY, PARTITION_PATH)])


def delete_partition(frame: Frame | None, options: WriteOptions) -> DeletePartitions:
    """The action. Raises ConfigError when neither options nor rows name partitions."""
    patterns = options.replacing.partitions_to_delete
    if not patterns and frame is None:
        raise ConfigError(
            "Which partitions? Give their paths in hoodie.datasource.write.partitions.to.delete, with * for any text, "
            "or rows that would go to them."
        )
    return DeletePartitions(patterns=patterns, may_be_paths=True, frame=None if patterns else frame)


def matching(patterns: Iterable[str], partitions: Iterable[str]) -> tuple[str, ...]:
    """The partitions that match one of the patterns, in their order."""
    regexes = [_regex(pattern) for pattern in patterns]
    return tuple(path for path in partitions if any(regex.fullmatch(path) for regex in regexes))


def _regex(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(text) for text in _WILDCARD.split(pattern)), re.DOTALL)


def _check_no_patterns(paths: Iterable[str], partitions: Container[str], context: ActionContext) -> None:
    """Refuse a path with a star that no partition has: the caller means any text, which needs a pattern."""
    unknown = next((path for path in paths if "*" in path and path not in partitions), None)
    if unknown is not None:
        raise ConfigError(
            f"{context.meta.storage.root} has no partition {unknown!r}. A star in a path stands for itself; for any "
            f"text give a pattern: delete_partitions(matching=[{unknown!r}]). Nothing was deleted."
        )


@dataclass(frozen=True, slots=True)
class DeletePartitions:
    """`paths`, `patterns`: the partitions to delete; in a path a star stands for itself, in a pattern for any text.

    `may_be_paths`: a pattern that equals the path of a partition means only that one. `frame`: rows whose partitions
    are deleted, instead of both.
    """

    paths: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    may_be_paths: bool = False
    frame: Frame | None = None
    kind: ActionKind = field(default=ActionKind.REPLACECOMMIT)

    @property
    def operation(self) -> str:
        return OperationType.DELETE_PARTITION

    def schedule(self, context: ActionContext) -> Schedule:
        if self.frame is None:
            check_not_planned(self._groups(context), context, self.operation, compactions=True)
        else:
            check_keys(table_keygen(context, PROBE_TIME), context.engine.schema(self.frame))
        has_operation = context.meta.config.format.requests_name_operation
        body = (
            encode_requested_replace(self.operation, extra_metadata={}) if has_operation else encode_requested_replace()
        )
        return replace(schedule_unchanged(context), body=body)

    def prepare(self, schedule: Schedule, instant: Instant, context: ActionContext) -> PreparedWrite[Groups]:
        groups = self._groups(context, warns=True)
        check_not_planned(groups, context, self.operation, compactions=True)
        # No row is written, so keys and the table's merger, which may be unknown here, are not needed.
        spec = write_spec(schedule, None, instant, context, MergeRules())
        return PreparedWrite(instant, schedule, spec, CommitMetadata({}, operation_type=self.operation), None, groups)

    def execute(self, prepared: PreparedWrite[Groups], context: ActionContext) -> tuple[WriteStatus, ...]:
        return ()

    def summarise(
        self, prepared: PreparedWrite[Groups], statuses: tuple[WriteStatus, ...], context: ActionContext
    ) -> CommitMetadata:
        return replacing(commit_body(self.operation, prepared.schedule, statuses, context), prepared.plan)

    def _groups(self, context: ActionContext, *, warns: bool = False) -> Groups:
        everything = existing_groups(context)
        if self.frame is not None:
            paths_by_name = {path: {path} for path in _partitions_of(self.frame, context)}
        else:
            _check_no_patterns(self.paths, everything, context)
            paths_by_name = {path: _meant_by_path(path, everything, context) for path in self.paths}
            paths_by_name |= {
                pattern: self._meant_by_pattern(pattern, everything, context) for pattern in self.patterns
            }
        if warns:
            _warn_of_unknown(paths_by_name, {path for path, groups in everything.items() if groups}, context)
        paths = set().union(*paths_by_name.values())
        return {path: groups for path, groups in everything.items() if path in paths}

    def _meant_by_pattern(self, pattern: str, everything: Groups, context: ActionContext) -> set[str]:
        exact = _meant_by_path(pattern, everything, context) if self.may_be_paths else set()
        if exact:
            return exact
        spelled = (set(matching([text], everything)) for text in _spellings(pattern, context.meta.config))
        return next(filter(None, spelled), set())


def _spellings(name: str, config: TableConfig) -> Iterator[str]:
    """A name and its other spellings: without outer and double slashes, with and without hive style."""
    yield name
    plain, fields = "/".join(filter(None, name.split("/"))), config.partition_fields
    if not plain.strip("*/"):
        return  # the remains of "/" or "*/" would be the whole table
    yield plain
    segments = plain.split("/") if len(fields) > 1 else [plain]
    if len(segments) == len(fields):
        values = [segment.removeprefix(f"{field}=") for segment, field in zip(segments, fields, strict=True)]
        if config.slash_separated_dates and len(fields) == 1:
            values = [values[0].replace("-", "/")]
        yield "/".join(values)
        yield "/".join(f"{field}={value}" for field, value in zip(fields, values, strict=True))


def _meant_by_path(path: str, everything: Groups, context: ActionContext) -> set[str]:
    return set(islice((text for text in _spellings(path, context.meta.config) if text in everything), 1))


def _warn_of_unknown(paths_by_name: Mapping[str, set[str]], with_rows: set[str], context: ActionContext) -> None:
    """Warn of names without rows in the table, except `*`, which may match nothing."""
    for name, paths in paths_by_name.items():
        if paths & with_rows or name == "*":
            continue
        beginning = [path for path in sorted(with_rows) if path.startswith(f"{name.strip('/')}/")]
        similar = [*beginning, *get_close_matches(name.strip("/"), sorted(with_rows), n=_NEAREST, cutoff=0.5)]
        nearest = ", ".join(map(repr, dict.fromkeys(similar[:_NEAREST]))) or ", ".join(map(repr, sorted(with_rows)[:1]))
        hint = f"Similar: {nearest}." if nearest else "No partition of the table has any."
        warn_caller(
            f"{context.meta.storage.root}: no partition {name!r} with rows, so nothing is deleted for it. {hint} "
            f"partitions() lists all."
        )


def _partitions_of(frame: Frame, context: ActionContext) -> tuple[str, ...]:
    engine, keygen = context.engine, table_keygen(context, PROBE_TIME)
    rows = data_columns(frame, context)
    columns = list(keygen.input_columns) or list(engine.schema(rows).names)
    return tuple(batch_by_partition(engine, engine.extend(rows, columns, AddKeyColumns(keygen), _KEY_SCHEMA)))
