"""Transformers: an Arrow table becomes another, one transformer after the other.

One of one's own is `module:function`, which takes the table and returns one (anything that a write takes).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.types as pt

from pyhudi.errors import ConfigError
from pyhudi.registry import Registry
from pyhudi.storage import open_storage
from pyhudi.streamer.settings import PipelineSettings
from pyhudi.table.input import to_arrow_rows

__all__ = ["TRANSFORMERS", "Transform", "transforms_of"]

Transform: TypeAlias = Callable[[pa.Table], pa.Table]

_PACKAGE = "org.apache.hudi.utilities.transform."
_ROWS = {
    "SqlQueryBasedTransformer": f"{__name__}:by_sql",
    "SqlFileBasedTransformer": f"{__name__}:by_sql_file",
    "FlatteningTransformer": f"{__name__}:flattening",
}
TRANSFORMERS: Registry[Callable[..., Any]] = Registry(
    kind="transformer", entries=_ROWS, aliases={f"{_PACKAGE}{name}": name for name in _ROWS}
)
_SOURCE = "<SRC>"
_BATCH = "pyhudi_streamer_batch"


def transforms_of(settings: PipelineSettings) -> Sequence[Transform]:
    """The transformers that the configuration names, in their order. Raises ConfigError."""
    made: list[Transform] = []
    for name in settings.options.transformer_names:
        loaded = TRANSFORMERS.load(name)
        made.append(_own(name, loaded) if ":" in TRANSFORMERS.canonical(name) else loaded(settings))
    return made


def by_sql(settings: PipelineSettings) -> Transform:
    """A query in Spark's words over the batch."""
    text = settings.options.transformers.sql
    if text is None:
        raise ConfigError(f"{settings.place}: hoodie.streamer.transformer.sql is missing: a query over {_SOURCE}.")
    return _queried(text, settings)


def by_sql_file(settings: PipelineSettings) -> Transform:
    """A query in a file."""
    path = settings.options.transformers.sql_file
    if path is None:
        raise ConfigError(f"{settings.place}: hoodie.streamer.transformer.sql.file is missing: a file with a query.")
    folder, _, name = path.rpartition("/")
    text = open_storage(folder or ".", settings.store).read(name, 1 << 20).decode()
    return _queried(text.strip().rstrip(";"), settings)


def _queried(text: str, settings: PipelineSettings) -> Transform:
    if _SOURCE not in text:
        raise ConfigError(f"{settings.place}: the query of the transformer does not name {_SOURCE}: {text!r:.200}.")
    from pyhudi.sql.duckdb_session import DuckDbSession

    def transform(batch: pa.Table) -> pa.Table:
        session = DuckDbSession()
        session.create_view(_BATCH, session.frame_from(batch), replace=True, is_global=False)
        return session.sql(text.replace(_SOURCE, _BATCH)).to_arrow()

    return transform


def flattening(settings: PipelineSettings) -> Transform:
    """Fields of structs become columns: `a.b` becomes `a_b`."""
    return _flat


def _flat(batch: pa.Table) -> pa.Table:
    while any(pt.is_struct(field.type) for field in batch.schema):
        batch = batch.flatten()
    names = [name.replace(".", "_") for name in batch.schema.names]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"FlatteningTransformer: two columns become {twice!r}. Rename one by a query before it.")
    return batch.rename_columns(names)


def _own(name: str, function: Callable[[pa.Table], Any]) -> Transform:
    def transform(batch: pa.Table) -> pa.Table:
        answer = function(batch)
        if answer is None:
            raise ConfigError(f"The transformer {name} returned None; expected a table.")
        rows = to_arrow_rows(answer)
        return rows if isinstance(rows, pa.Table) else rows.read_all()

    return transform
