"""The schema history of a table (schema on read, ALTER TABLE) in the two timeline layouts.

    layout 1   .hoodie/.schema/<T>.schemacommit
    layout 2   .hoodie/.schema/<T>_<completion time>.schemacommit

Every file holds all schemas up to its instant, in both layouts. Apache Hudi's steps keep the names; here they become
those of new tables of the target version. Source: docs/formats/schema.md, "Schema history".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace

from pyhudi.errors import PathExists
from pyhudi.meta_client import MetaClient
from pyhudi.model.filenames import SCHEMA_FOLDER, InstantFileName
from pyhudi.model.instant import ActionKind, State
from pyhudi.model.table_config import TableConfig

__all__ = ["copy_schema_commits", "delete_old_schema_commits"]


def copy_schema_commits(meta: MetaClient, target: TableConfig, completion_times: Mapping[str, str]) -> None:
    """Write the history's files under their names in the layout of `target`.

    Args:   completion_times: by requested time; an archived instant has none, and its requested time is used.
    """
    for name in _completed(meta):
        completed = name.completion_time or completion_times.get(name.requested_time, name.requested_time)
        path = _path(replace(name, completion_time=completed), target.layout_version)
        source = _path(name, 2)
        if path != source:
            with suppress(PathExists):  # made by a dead call; never incomplete, since readers use it
                meta.storage.create_new(path, meta.storage.read(source))


def delete_old_schema_commits(meta: MetaClient) -> None:
    """Delete files named in the other layout that exist in the table's layout, too."""
    is_own = {
        name: (name.completion_time is not None) == meta.config.layout.names_completion_times
        for name in _completed(meta)
    }
    own_times = {name.requested_time for name in is_own if is_own[name]}
    for name in is_own:
        if not is_own[name] and name.requested_time in own_times:
            meta.storage.delete(_path(name, 2))


def _completed(meta: MetaClient) -> Iterator[InstantFileName]:
    for entry in meta.storage.list(SCHEMA_FOLDER):
        name = InstantFileName.parse(entry.name, 2)  # it parses names without a completion time, too
        if name is not None and name.action is ActionKind.SCHEMACOMMIT and name.state is State.COMPLETED:
            yield name


def _path(name: InstantFileName, layout_version: int) -> str:
    return f"{SCHEMA_FOLDER}/{name.text(layout_version)}"
