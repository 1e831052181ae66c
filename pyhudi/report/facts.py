"""The facts about a table that the page shows, as columns of JSON values, which are far smaller than objects.

The timeline is that of `history`, newest first. Data files are opened only to count the rows (`figures.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, TypeAlias

import pyarrow as pa

from pyhudi.meta_client import MetaClient
from pyhudi.queries.history import HistoryEntry, recorded_instants
from pyhudi.redaction import is_secret, without_credentials
from pyhudi.report.figures import first_figures, offsets
from pyhudi.result import plain
from pyhudi.services.health import TableHealth
from pyhudi.timeline.commits import has_table_schema
from pyhudi.view.file_system_view import FileSystemView
from pyhudi.view.readable_history import load_readable_history

__all__ = ["Facts", "table_facts"]

Facts: TypeAlias = dict[str, object]  # JSON values, which the page's script reads

_HIDDEN = "(hidden)"


def table_facts(meta: MetaClient, view: FileSystemView, health: TableHealth, schema: pa.Schema) -> Facts:
    """Return everything on the page. `schema`: the data columns."""
    config = meta.config
    timeline, schema_changes = _timeline(meta)
    shown_files = _files(view)
    times = {str(time) for row in timeline for time in row[:2] if time}
    return {
        "name": config.table_name,
        "path": without_credentials(meta.storage.root),
        "figures": first_figures(meta, view, health, timeline),
        "zones": offsets(meta, times | set(shown_files["instant"])),
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
        "timeline": timeline,
        "files": shown_files,
        "partitions": list(map(list, view.partition_totals())),
        "schema": [[field.name, str(field.type), field.nullable] for field in schema],
        "schema_changes": schema_changes,
        "properties": _properties(config.properties),
    }


def _timeline(meta: MetaClient) -> tuple[list[list[object]], list[list[str]]]:
    """Return rows of instants, newest first, and changes of the schema with their instants, oldest first.

    Each body is read once and not kept in memory: an archived timeline may have any length.
    """
    readable = load_readable_history(meta)
    rows: list[list[object]] = []
    changes: list[list[str]] = []
    newer: tuple[str, str] | None = None  # the oldest schema so far: its first instant, and its text
    for recorded in recorded_instants(meta):
        rows.append(_row(recorded.entry(readable)))
        if recorded.totals is None or not has_table_schema(recorded.totals):
            continue
        time, schema = recorded.instant.requested_time, str(recorded.totals.schema_json)
        if newer is not None and schema != newer[1]:
            differences = _differences(_columns(schema), _columns(newer[1]))
            changes.extend([newer[0], change] for change in reversed([*differences]))
        newer = (time, schema)
    return rows, changes[::-1]


def _row(entry: HistoryEntry) -> list[object]:
    return [
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


def _files(view: FileSystemView) -> dict[str, list[Any]]:
    """Return columns of file groups and of slices: the slices of each group in turn, newest first."""
    numbered = [(number, group) for number, path in enumerate(view.partitions()) for group in view.groups[path]]
    slices = [group.parts for _, group in numbered]
    parts = list(chain.from_iterable(slices))
    return {
        "partition": [number for number, _ in numbered],  # the paths would be most of the page
        "id": [group.file_id for _, group in numbered],
        "slices": list(map(len, slices)),
        "instant": [instant for instant, _, _ in parts],
        "base": [0 if base is None else base.size_bytes for _, base, _ in parts],
        "logs": [len(logs) for _, _, logs in parts],
        "log_bytes": [sum(log.size_bytes for log in logs) if logs else 0 for _, _, logs in parts],
    }


def _columns(schema: str) -> dict[str, str]:
    """Return the columns of an Avro schema, each with the JSON of its type."""
    return {field["name"]: json.dumps(field["type"]) for field in json.loads(schema).get("fields", ())}


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
        [key, _HIDDEN if is_secret(key) else without_credentials(value)] for key, value in sorted(properties.items())
    ]
