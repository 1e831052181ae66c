"""A Spark DataFrame as the input of a write: its options, its checks, and who writes its rows.

Small inputs are fetched once and written by this process (`fetching`), larger ones by Spark. Either way it is the same
action on the same files. Source: docs/decisions/0002-two-engines.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from pyspark.sql import DataFrame

from pyhudi.engine.base import Engine, Frame, frame_and_engine
from pyhudi.engine.local import in_this_process
from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.meta_client import MetaClient
from pyhudi.model.options import WriteOptions, canonical_keys
from pyhudi.spark.engine import SparkEngine
from pyhudi.spark.fetching import fetched
from pyhudi.spark.session import hudi_options
from pyhudi.spark.types import arrow_from_spark
from pyhudi.storage.base import Storage

__all__ = ["FrameInput"]


@dataclass(frozen=True, slots=True)
class FrameInput:
    """`df`: classic or Connect."""

    df: DataFrame

    @property
    def session_options(self) -> Mapping[str, str]:
        """`spark.hoodie.*` of the session, which come after those of the call."""
        return hudi_options(self.df.sparkSession)

    def column_names(self, table: MetaClient | None) -> tuple[str, ...]:
        """Raises SchemaMismatch when a column has a type that can't be stored, or the name of another one."""
        names = arrow_from_spark(self.df.schema).names
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise SchemaMismatch(
                f"The DataFrame has several columns called {', '.join(twice)}. Rename or drop the others."
            )
        return tuple(names)

    def rows(self, options: WriteOptions, given: Iterable[str]) -> tuple[Frame, Engine]:
        """The rows as a frame, and the engine that it is for. `given`: keys of the options that the caller gave."""
        rows = fetched(self.df, options, canonical_keys([*given, *self.session_options]))
        if rows is not None:
            return in_this_process(rows)
        return frame_and_engine(self.df, SparkEngine(self.df.sparkSession))

    def check_outlives(self, storage: Storage, rows: Frame) -> None:
        """Raises ConfigError when deleting the table would take rows away that have not been read yet."""
        if rows is not Frame(self.df):
            return
        root = _plain_path(storage.full_path("")).rstrip("/") + "/"
        if any(_plain_path(file).startswith(root) for file in self.df.inputFiles()):
            raise ConfigError(
                f"The input reads from {storage.root}, which mode overwrite is about to delete. Write to another path, "
                "or use operation upsert, insert or delete with mode append."
            )


def _plain_path(uri: str) -> str:
    parts = urlsplit(uri)
    return unquote(parts.netloc + parts.path)
