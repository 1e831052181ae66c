"""Transformers: an Arrow table becomes another, one transformer after the other; on Spark a DataFrame another.

A user's transformer is `module:function`, which takes the table and returns one (anything that a write takes); on Spark
it takes a DataFrame and returns one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

import pyarrow as pa
import pyarrow.types as pt

from pyhudi.errors import ConfigError
from pyhudi.registry import Registry
from pyhudi.storage import open_storage
from pyhudi.streamer.settings import PipelineSettings
from pyhudi.table.input import is_spark_frame, to_arrow_rows

if TYPE_CHECKING:
    from pyhudi.spark.names import SparkDataFrame

__all__ = ["TRANSFORMERS", "FrameTransform", "Transform", "frame_transforms_of", "transforms_of"]

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


class Transform(Protocol):
    """A change of a batch in one process. A transformer with `frame` also changes DataFrames."""

    def __call__(self, batch: pa.Table) -> pa.Table:
        """The changed rows."""
        ...


class FrameTransform(Protocol):
    """A change of a batch on Spark."""

    def frame(self, batch: SparkDataFrame) -> SparkDataFrame:
        """The changed rows."""
        ...


def transforms_of(settings: PipelineSettings) -> Sequence[Transform]:
    """The transformers that the configuration names, in their order. Raises ConfigError."""
    made: list[Transform] = []
    for name in settings.options.transformer_names:
        loaded = TRANSFORMERS.load(name)
        made.append(OwnTransform(name, loaded) if ":" in TRANSFORMERS.canonical(name) else loaded(settings))
    return made


def frame_transforms_of(settings: PipelineSettings) -> Sequence[FrameTransform]:
    """The transformers for Spark. Raises ConfigError for one without a form for DataFrames."""
    made = transforms_of(settings)
    for name, transform in zip(settings.options.transformer_names, made, strict=True):
        if not hasattr(transform, "frame"):
            raise ConfigError(f"{settings.place}: the transformer {name} has no form on Spark. Run without spark.")
    return cast("Sequence[FrameTransform]", made)


def by_sql(settings: PipelineSettings) -> Transform:
    """A query in Spark's SQL over the batch."""
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
    return _Query(text)


@dataclass(frozen=True, slots=True)
class _Query:
    text: str

    def __call__(self, batch: pa.Table) -> pa.Table:
        from pyhudi.sql.duckdb_session import DuckDbSession

        session = DuckDbSession()
        session.create_view(_BATCH, session.frame_from(batch), replace=True, is_global=False)
        return session.sql(self.text.replace(_SOURCE, _BATCH)).to_arrow()

    def frame(self, batch: SparkDataFrame) -> SparkDataFrame:
        # Braces name frames, so those in the text are doubled.
        text = self.text.replace("{", "{{").replace("}", "}}").replace(_SOURCE, f"{{{_BATCH}}}")
        frames: dict[str, Any] = {_BATCH: batch}
        return batch.sparkSession.sql(text, **frames)


def flattening(settings: PipelineSettings) -> Transform:
    """Fields of structs become columns: `a.b` becomes `a_b`."""
    return _Flat()


class _Flat:
    def __call__(self, batch: pa.Table) -> pa.Table:
        while any(pt.is_struct(field.type) for field in batch.schema):
            batch = batch.flatten()
        return batch.rename_columns(_flat_names(batch.schema.names))

    def frame(self, batch: SparkDataFrame) -> SparkDataFrame:
        while any(field.dataType.typeName() == "struct" for field in batch.schema.fields):
            columns = []
            for field in batch.schema.fields:
                inner = getattr(field.dataType, "names", None)
                paths = [(field.name,)] if inner is None else [(field.name, one) for one in inner]
                columns += [f"{'.'.join(map(_quoted, path))} AS {_quoted('.'.join(path))}" for path in paths]
            batch = batch.selectExpr(*columns)
        return batch.toDF(*_flat_names(batch.columns))


def _flat_names(names: Sequence[str]) -> list[str]:
    flat = [name.replace(".", "_") for name in names]
    twice = next((name for name in flat if flat.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"FlatteningTransformer: two columns become {twice!r}. Rename one by a query before it.")
    return flat


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@dataclass(frozen=True, slots=True)
class OwnTransform:
    """A user's function."""

    name: str
    function: Callable[[Any], Any]

    def __call__(self, batch: pa.Table) -> pa.Table:
        """The function's result for an Arrow table."""
        answer = self.function(batch)
        if answer is None:
            raise ConfigError(f"The transformer {self.name} returned None; expected a table.")
        rows = to_arrow_rows(answer)
        return rows if isinstance(rows, pa.Table) else rows.read_all()

    def frame(self, batch: SparkDataFrame) -> SparkDataFrame:
        """The function's result for a DataFrame."""
        answer = self.function(batch)
        if not is_spark_frame(answer):
            raise ConfigError(
                f"The transformer {self.name} returned {type(answer).__name__}; on Spark it gets a DataFrame and "
                "returns one."
            )
        return answer
