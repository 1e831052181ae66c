"""The files of a plan: the schema of the new ones, their removal, and a check of the log files to merge.

`plan_schema` gives the schema of the new files, and `schema_metadata` the entries for it in the commit metadata.
Ordinarily this is the table's schema when the plan runs. If the table has a schema history, it is the schema at the
time of the plan, however late the plan runs: readers match the columns of its files by the schema of the plan's
instant.

`delete_files_of_run` deletes the files that runs of a compaction's plan have made.

`check_logs` keeps damaged log files out of a plan, unless the options allow them: together with the files, any chance
to restore their missing bytes would be lost. Source: docs/formats/table-services.md, "Compaction plan", "Clustering
plan"; docs/formats/writers.md, "Markers"; docs/formats/timeline.md, "Rollback", "Bodies"; docs/formats/file-names.md,
"File groups and slices"; docs/formats/schema.md, "Schema history"; docs/formats/log.md, "Damaged log files".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from pyhudi.actions.action import ActionContext
from pyhudi.actions.rows import table_rules
from pyhudi.errors import CorruptFile
from pyhudi.filegroup.read.log_blocks import REWRITING, report_damage
from pyhudi.filegroup.read.slice import SliceSpec
from pyhudi.filegroup.write.base_file import stored_columns
from pyhudi.filegroup.write.markers import APPEND, list_markers, marker_folder
from pyhudi.filegroup.write.spec import WriteSpec
from pyhudi.formats.avro.schema import arrow_from_avro, avro_from_arrow, without_meta
from pyhudi.formats.log.reader import LogBlock, scan_log
from pyhudi.meta_client import MetaClient
from pyhudi.model.file_group import FileGroupId
from pyhudi.model.filenames import BaseFileName, LogFileName, data_path
from pyhudi.model.instant import ActionKind, Instant
from pyhudi.model.keys import META_COLUMNS
from pyhudi.model.plans import CompactionPlan
from pyhudi.schema.internal import InternalSchema, load_schema_history, schema_json_as_of
from pyhudi.storage.base import Storage
from pyhudi.view.committed_logs import block_rules, damage_rules, with_committed_bytes
from pyhudi.view.file_system_view import FileSystemView

__all__ = ["PlanSchema", "check_logs", "delete_files_of_run", "plan_schema", "schema_metadata", "slice_reading"]


def delete_files_of_run(
    instant: Instant, plan: CompactionPlan, meta: MetaClient, *, keep: Iterable[str], by_listing: bool
) -> None:
    """Delete the files that a run of a plan has made, except those in `keep`.

    Args:    by_listing: list the plan's partitions too, for runs without markers.
    Raises CorruptFile for a marker of a file outside the plan's file groups, which must not be deleted.
    """
    paths_to_keep = frozenset(keep)
    groups = frozenset(operation.group for operation in plan.operations)
    paths = dict.fromkeys(_marked(instant, groups, paths_to_keep, meta.storage))
    if by_listing:
        paths |= dict.fromkeys(path for path in _listed(instant, plan, meta) if path not in paths_to_keep)
    meta.storage.sync([path for path in paths if meta.storage.delete(path)])  # a reappearing file would count


def _marked(
    instant: Instant, groups: frozenset[FileGroupId], paths_to_keep: frozenset[str], storage: Storage
) -> Iterator[str]:
    for marker in list_markers(storage, instant.requested_time):
        if marker.data_path in paths_to_keep:
            continue
        partition_path, _, name = marker.data_path.rpartition("/")
        parsed = BaseFileName.parse(name) or LogFileName.parse(name)
        if parsed is None or FileGroupId(partition_path, parsed.file_id) not in groups:
            raise CorruptFile(
                f"{marker_folder(instant.requested_time)}: a marker names {marker.data_path!r}, which is not of the "
                f"plan of {instant.requested_time}; nothing was deleted for it."
            )
        if marker.io_type == APPEND:
            if _holds_only(storage, marker.data_path, instant.requested_time):
                yield marker.data_path
        elif parsed.instant_time == instant.requested_time:
            yield marker.data_path


def _holds_only(storage: Storage, path: str, instant_time: str) -> bool:
    """True if the log file has only blocks of this instant. Below version 8 another writer may have begun it."""
    if storage.stat(path) is None:
        return False
    blocks = scan_log(storage, path)
    return all(block.instant_time == instant_time for block in blocks if isinstance(block, LogBlock))


def _listed(instant: Instant, plan: CompactionPlan, meta: MetaClient) -> Iterator[str]:
    """Files of the instant by their names. Below version 8 log files with that name belong to other writers."""
    own_logs = instant.action is ActionKind.LOGCOMPACTION and meta.config.format.has_own_log_files
    for path in dict.fromkeys(operation.partition_path for operation in plan.operations):
        for info in meta.storage.list(path):
            name = BaseFileName.parse(info.name) or (LogFileName.parse(info.name) if own_logs else None)
            if name is not None and name.instant_time == instant.requested_time:
                yield data_path(path, info.name)


_SCHEMA, _INTERNAL_SCHEMA = "schema", "latest_schema"


@dataclass(frozen=True, slots=True)
class PlanSchema:
    """`columns`: data columns of the new files. `history`: the schemas by which columns of older files are matched,
    newest first; () where they match by name.
    """

    columns: pa.Schema
    history: tuple[InternalSchema, ...] = ()


def plan_schema(instant_time: str, meta: MetaClient) -> PlanSchema:
    """The schema for the files of a plan. Raises CorruptFile."""
    history = load_schema_history(meta.storage, meta.config, meta.timeline)
    earlier = tuple(schema for schema in history if schema.version_id <= int(instant_time))
    if not earlier:
        return PlanSchema(meta.stored_schema())
    text = meta.commits.schema_json_as_of(meta.timeline, instant_time)
    columns = earlier[0].to_arrow() if text is None else arrow_from_avro(text)
    return PlanSchema(without_meta(columns), earlier)


def slice_reading(spec: WriteSpec, schema: PlanSchema, context: ActionContext) -> SliceSpec:
    """The rules for reading the slices of a plan, with all columns that `spec` stores."""
    meta, memory = context.meta, context.options.memory
    return SliceSpec(
        meta.storage,
        pa.schema([*(pa.field(name, pa.string()) for name in META_COLUMNS), *stored_columns(spec)]),
        block_rules(meta),
        table_rules(context),
        spec.key_generator,
        memory.compaction_bytes,
        memory.spill_folder,
        schema.history,
        damage=None if context.options.damage.rewrite else damage_rules(meta, raises=True, advice=REWRITING),
        check_pages=context.options.damage.page_checksums,
    )


def schema_metadata(instant_time: str, schema: PlanSchema, meta: MetaClient) -> dict[str, str]:
    """The entries for the schema in a plan's commit. `meta`: the table when it completes. Raises CorruptFile."""
    commits, timeline = meta.commits, meta.timeline
    text = commits.schema_json_as_of(timeline, instant_time) if schema.history else commits.latest_schema_json(timeline)
    entries = {_SCHEMA: text or avro_from_arrow(schema.columns, meta.config.table_name, with_meta=False)}
    internal = schema_json_as_of(meta.storage, meta.timeline, instant_time) if schema.history else None
    return entries if internal is None else {**entries, _INTERNAL_SCHEMA: internal}


def check_logs(groups: Iterable[FileGroupId], view: FileSystemView, context: ActionContext) -> None:
    """Check the log files of file groups that a plan would rewrite.

    Raises DamagedLog for files that lack bytes of completed writes; only a warning if the options allow them.
    """
    planned = frozenset(groups)
    slices = with_committed_bytes(context.meta, [s for s in view.all_slices() if s.group in planned])
    rules = damage_rules(context.meta, raises=not context.options.damage.rewrite, advice=REWRITING)
    report_damage(context.engine, context.meta.storage, slices, rules)
