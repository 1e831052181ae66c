"""What HudiTable says of a table without reading rows: columns, history, files, partitions, and how it prints."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pyarrow as pa

from pyhudi.actions.action import ActionContext
from pyhudi.errors import ConfigError
from pyhudi.meta_client import MetaClient
from pyhudi.model.keys import META_COLUMNS
from pyhudi.queries.history import History, load_table_history
from pyhudi.queries.query import AsOf, parse_as_of
from pyhudi.queries.schema import read_schema
from pyhudi.report.facts import table_facts
from pyhudi.report.html import Report, report_html
from pyhudi.services.health import TableHealth, health_and_files
from pyhudi.services.health import health as check_health
from pyhudi.table.calls import Options, TableHandle, in_session_zone
from pyhudi.table.scan import FILES_SCHEMA
from pyhudi.text_table import html_pairs
from pyhudi.view.consistent_read import read_consistently
from pyhudi.view.file_system_view import FileSystemView

__all__ = ["PARTITIONS_SCHEMA", "data_schema", "files", "health", "history", "html", "one_line", "partitions", "report"]

PARTITIONS_SCHEMA = pa.schema(
    [("partition_path", pa.string()), ("files", pa.int64()), ("size_bytes", pa.int64()), ("log_files", pa.int64())]
)


def data_schema(meta: MetaClient) -> pa.Schema:
    """`HudiTable.schema`."""
    return pa.schema([field for field in read_schema(meta, None) if field.name not in META_COLUMNS])


def history(handle: TableHandle, limit: int | None, archived: bool, since: AsOf | None, until: AsOf | None) -> History:
    """`HudiTable.history`."""
    meta = handle.fresh()
    zone = meta.config.timeline_zone
    first, last = (
        None if end is None else parse_as_of(in_session_zone(end, handle.spark), zone) for end in (since, until)
    )
    return load_table_history(meta, limit, archived=archived, since=first, until=last)


def health(handle: TableHandle, options: Options | None, deep: bool) -> TableHealth:
    """`HudiTable.health`."""
    look = partial(check_health, deep=deep)
    return handle.serve(look, options, {}, dry_run=True, admit=lambda context: None)


def report(handle: TableHandle, path: str | os.PathLike[str] | None, options: Options | None) -> Report | str:
    """`HudiTable.report`."""
    if path is not None and "://" in os.fspath(path):
        raise ConfigError(
            f"report({os.fspath(path)!r}) would write to another store; expected a path of this machine. Write the "
            "page here and copy it, or take its text: table.report().html."
        )

    def looked_at(context: ActionContext) -> tuple[TableHealth, FileSystemView, MetaClient]:
        return *health_and_files(context), context.meta  # one moment, and one listing

    checked, view, meta = handle.serve(looked_at, options, {}, dry_run=True, admit=lambda context: None)
    page = report_html(table_facts(meta, load_table_history(meta), view, checked, data_schema(meta)))
    if path is None:
        return Report(page)
    Path(path).write_text(page, "utf-8")
    return str(path)


def files(meta: MetaClient) -> pa.Table:
    """`HudiTable.files`."""
    rows = [
        {
            "partition_path": s.group.partition_path,
            "file_id": s.group.file_id,
            "path": s.base_file.path if s.base_file else None,
            "instant_time": s.base_instant,
            "size_bytes": (s.base_file.size_bytes if s.base_file else 0) + sum(f.size_bytes for f in s.log_files),
            "log_files": len(s.log_files),
        }
        for s in read_consistently(meta, FileSystemView.load).all_slices()
    ]
    return pa.Table.from_pylist(rows, FILES_SCHEMA)


def partitions(meta: MetaClient) -> pa.Table:
    """`HudiTable.partitions`."""
    view = read_consistently(meta, FileSystemView.load)
    rows = []
    for partition in view.partitions():
        slices = view.slices(partition)
        logs = [log for s in slices for log in s.log_files]
        size = sum(s.base_file.size_bytes for s in slices if s.base_file) + sum(log.size_bytes for log in logs)
        rows.append(dict(zip(PARTITIONS_SCHEMA.names, (partition, len(slices), size, len(logs)), strict=True)))
    return pa.Table.from_pylist(rows, PARTITIONS_SCHEMA)


def one_line(meta: MetaClient) -> str:
    """A table as Python prints it."""
    return f"HudiTable({meta.config.table_name!r} at {meta.storage.root}: {meta.config.description})"


def html(meta: MetaClient) -> str:
    """A table as a notebook shows it."""
    config = meta.config
    last = meta.timeline.last_commit()
    pairs = {
        "table": config.table_name,
        "path": meta.storage.root,
        "type": f"{config.table_type}, version {config.table_version}",
        "record key": ", ".join(config.record_key_fields) or "generated",
        "partitioned by": ", ".join(config.partition_fields) or "nothing",
        "last commit": last.requested_time if last else "none yet",
    }
    return html_pairs(pairs.items())
