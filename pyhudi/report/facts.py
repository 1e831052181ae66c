"""What the page shows of a table: columns of JSON values, which are smaller than objects by far.

The timeline is that of `history`, newest first; the newest slice of each file group gives its sizes and log depth.
No data file is opened.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import pyarrow as pa

from pyhudi.meta_client import MetaClient
from pyhudi.model.instant import ActionKind
from pyhudi.queries.history import HistoryEntry
from pyhudi.result import plain
from pyhudi.services.health import TableHealth
from pyhudi.shown_text import without_credentials
from pyhudi.view.file_system_view import FileSystemView

__all__ = ["Facts", "table_facts"]

Facts: TypeAlias = dict[str, object]  # JSON values, which the page's script reads

_SECRET = re.compile(r"(?i)secret|password|passwd|token|credential|access[._-]?key|account[._-]?key|signature")
_HIDDEN = "(hidden)"


def table_facts(
    meta: MetaClient, history: Sequence[HistoryEntry], view: FileSystemView, health: TableHealth, schema: pa.Schema
) -> Facts:
    """Everything on the page. `schema`: the data columns."""
    config = meta.config
    return {
        "name": config.table_name,
        "path": without_credentials(meta.storage.root),
        "about": {
            "type": config.table_type,
            "version": config.table_version,
            "key": ", ".join(config.record_key_fields) or "generated",
            "partitioned by": ", ".join(config.partition_fields) or "nothing",
            "newest commit": health.instant_time or "none yet",
        },
        "health": {
            "files": plain(health.files),
            "findings": [plain(finding) for finding in health.findings],
            "lists_files": health.lists_files,
            "writers": health.writers,
            "waiting": list(health.waiting),
        },
        "timeline": _timeline(history),
        "files": _files(view),
        "partitions": _partitions(view),
        "schema": [[field.name, str(field.type), field.nullable] for field in schema],
        "schema_changes": _schema_changes(meta),
        "properties": _properties(config.properties),
    }


def _timeline(history: Sequence[HistoryEntry]) -> list[list[object]]:
    return [
        [
            entry.instant_time,
            entry.completion_time,
            entry.action,
            entry.state,
            (entry.operation or "").lower(),
            entry.rows_inserted,
            entry.rows_updated,
            entry.rows_deleted,
            entry.files,
            entry.bytes_written,
            "archived" if entry.is_archived else "saved" if entry.is_saved else "active",
        ]
        for entry in history
    ]


def _files(view: FileSystemView) -> dict[str, list[object]]:
    """Columns, the partition as a number: its paths would be most of the page."""
    partitions = view.partitions()
    columns: dict[str, list[object]] = {
        "partition": [],
        "id": [],
        "instant": [],
        "slices": [],
        "base": [],
        "logs": [],
        "log_bytes": [],
    }
    for number, partition in enumerate(partitions):
        for group in view.groups[partition]:
            newest = group.slices[0]
            base_bytes = 0 if newest.base_file is None else newest.base_file.size_bytes
            row = (
                number,
                group.group.file_id,
                newest.base_instant,
                len(group.slices),
                base_bytes,
                len(newest.log_files),
                newest.size_bytes - base_bytes,
            )
            for column, value in zip(columns.values(), row, strict=True):
                column.append(value)
    return columns


def _partitions(view: FileSystemView) -> list[list[object]]:
    rows: list[list[object]] = []
    for partition in view.partitions():
        slices = view.slices(partition)
        logs = sum(len(one.log_files) for one in slices)
        rows.append([partition, len(slices), sum(one.size_bytes for one in slices), logs])
    return rows


def _schema_changes(meta: MetaClient) -> list[list[str]]:
    """Instant and change, oldest first, of the commits on the active timeline."""
    changes: list[list[str]] = []
    before: dict[str, str] | None = None
    text = None
    for instant in meta.timeline.commits().instants:
        if instant.action not in (ActionKind.COMMIT, ActionKind.DELTACOMMIT, ActionKind.REPLACECOMMIT):
            continue
        body = meta.commits.metadata(instant)
        schema = body.schema_json
        if schema is None or schema == text:
            continue
        text = schema
        columns = {field["name"]: json.dumps(field["type"]) for field in json.loads(schema).get("fields", ())}
        if before is not None:
            changes.extend([instant.requested_time, change] for change in _differences(before, columns))
        before = columns
    return changes


def _differences(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    for name, kind in after.items():
        if name not in before:
            yield f"{name} added as {_short(kind)}"
        elif before[name] != kind:
            yield f"{name}: {_short(before[name])} became {_short(kind)}"
    yield from (f"{name} dropped" for name in before if name not in after)


def _short(kind: str) -> str:
    value = json.loads(kind)
    members = [one for one in value if one != "null"] if isinstance(value, list) else [value]
    return ", ".join(one if isinstance(one, str) else str(one.get("logicalType") or one.get("type")) for one in members)


def _properties(properties: Mapping[str, str]) -> list[list[str]]:
    return [
        [key, _HIDDEN if _SECRET.search(key) else without_credentials(value)]
        for key, value in sorted(properties.items())
    ]
