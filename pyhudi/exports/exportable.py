"""Checks for tables that no export can express: readers of another format would return other rows, so they are refused.

Readers of Delta find columns by their names in files; Iceberg's readers use a mapping of names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyhudi.errors import UnsupportedTable
from pyhudi.exports.commits import Pending
from pyhudi.model.filenames import may_be_skeleton
from pyhudi.queries.plan import schema_history
from pyhudi.schema.internal import InternalSchema, ListType, MapType, SchemaColumn, StructType, schema_as_of

__all__ = ["check_exportable"]

_SUFFIX = ".parquet"


def check_exportable(pending: Pending, *, by_name: bool = True) -> None:
    """Raise UnsupportedTable for a table whose files other readers would read wrongly.

    Args: by_name: they find columns only by the current names.
    """
    root = pending.meta.storage.root
    other = next((path for path in pending.visible if not path.endswith(_SUFFIX)), None)
    if other is not None:
        raise UnsupportedTable(f"{root}: an export needs Parquet base files, found {other}. Nothing was exported.")
    skeleton = next((path for path in pending.visible if may_be_skeleton(path.rpartition("/")[2])), None)
    if skeleton is not None:
        raise UnsupportedTable(
            f"{root}: {skeleton} was made by a bootstrap and may have its data columns in a file elsewhere, which an "
            "export can't express. Rewrite it first: cluster() does. Nothing was exported."
        )
    history = schema_history(pending.meta, None) if by_name else ()
    if not history:
        return
    now = _paths(history[0])
    for time in sorted({file.instant_time for file in pending.visible.values()}):
        written = schema_as_of(history, time)
        problem = None if written is None else _difference(_paths(written), now)
        if problem:
            path = next(path for path, file in pending.visible.items() if file.instant_time == time)
            raise UnsupportedTable(
                f"{root}: {problem} after {path} was written. Readers of other formats find columns by name, and would "
                "read it wrongly. Rewrite the earlier files: cluster() does. Nothing was exported."
            )


def _difference(written: dict[int, str], now: dict[int, str]) -> str | None:
    """The reason why a file that was written with these columns can't be read by the current names."""
    ids = {path: number for number, path in written.items()}
    for number, path in now.items():
        if written.get(number, path) != path:
            return f"column {written[number]!r} was renamed to {path!r}"
        if ids.get(path, number) != number:
            return f"column {path!r} was dropped and added again"
    return None


def _paths(schema: InternalSchema) -> dict[int, str]:
    return dict(_walk(schema.columns, ""))


def _walk(columns: Sequence[SchemaColumn], outer: str) -> Iterator[tuple[int, str]]:
    for column in columns:
        path = f"{outer}.{column.name}" if outer else column.name
        yield column.id, path
        kind = column.type
        if isinstance(kind, StructType):
            yield from _walk(kind.columns, path)
        elif isinstance(kind, ListType):
            yield from _walk((kind.element,), path)
        elif isinstance(kind, MapType):
            yield from _walk((kind.key, kind.value), path)
