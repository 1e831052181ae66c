"""Proxies of Spark's readers and writers, which forward each call and record what `format("hudi")` needs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

from pyspark.sql import DataFrame, DataFrameReader, DataFrameWriter, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

from pyhudi.errors import ConfigError
from pyhudi.session.temp_views import FORMATS

if TYPE_CHECKING:
    from pyspark.sql._typing import OptionalPrimitiveType

__all__ = ["RecordedCalls", "column_names"]

OwnerT = TypeVar("OwnerT", SparkSession, DataFrame)
RealT = TypeVar("RealT", DataFrameReader, DataFrameWriter, DataStreamReader, DataStreamWriter)
CallsT = TypeVar(
    "CallsT",
    bound="RecordedCalls[SparkSession, DataFrameReader] | RecordedCalls[DataFrame, DataFrameWriter]"
    " | RecordedCalls[SparkSession, DataStreamReader] | RecordedCalls[DataFrame, DataStreamWriter]",
)


class RecordedCalls(Generic[OwnerT, RealT]):
    """A proxy of one of Spark's readers or writers. It claims Spark's class, so that `isinstance` works."""

    def __init__(self, owner: OwnerT, real: RealT) -> None:
        """`owner`: the session or the DataFrame that has this property; `real`: the value of Spark's property."""
        self._owner: OwnerT = owner
        self._real: RealT = real
        self._format: str | None = None
        self._options: dict[str, OptionalPrimitiveType] = {}

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self._real)

    def __getattr__(self, name: str) -> object:
        if name == "_real":  # read before it is set, for example by copying
            raise AttributeError(name)
        return getattr(self._real, name)

    def __dir__(self) -> list[str]:
        return dir(self._real)

    def format(self: CallsT, source: str) -> CallsT:
        self._format = source
        self._real.format(source)
        return self

    def option(self: CallsT, key: str, value: OptionalPrimitiveType) -> CallsT:
        self._options[key] = value
        self._real.option(key, value)
        return self

    def options(self: CallsT, **options: OptionalPrimitiveType) -> CallsT:
        self._options.update(options)
        self._real.options(**options)
        return self

    def _is_hudi(self, format: str | None) -> bool:
        name = format or self._format
        return isinstance(name, str) and name.lower() in FORMATS

    def _split_path(
        self, path: object, more: Mapping[str, OptionalPrimitiveType], call: str
    ) -> tuple[str, dict[str, OptionalPrimitiveType]]:
        """Split off the single path of a call from the options. Raises ConfigError."""
        options = {**self._options, **more}
        paths = [options.pop(key) for key in list(options) if key.lower() == "path"]
        path = path if path is not None else (paths[-1] if paths else None)
        if isinstance(path, (list, tuple)) and len(path) == 1:
            path = path[0]
        if isinstance(path, os.PathLike):
            path = os.fspath(path)
        if not isinstance(path, str) or not path.strip():
            raise ConfigError(f"{call} of format hudi takes the path of one table, found {path!r}.")
        return path, options


def column_names(cols: Sequence[object]) -> tuple[str, ...]:
    """The columns passed to a call like `partitionBy`, one by one or as one list."""
    if len(cols) == 1 and isinstance(cols[0], (list, tuple)):
        cols = cols[0]
    return tuple(str(name) for name in cols)
