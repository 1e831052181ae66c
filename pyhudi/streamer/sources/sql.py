"""A query over Hudi tables as a source. Each round runs it. Source: Hudi's SqlSource, SqlFileBasedSource.

The commit notes no checkpoint, so that of the pipeline which fills the table otherwise remains.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from pyhudi.errors import ConfigError
from pyhudi.formats.avro.schema import without_meta
from pyhudi.storage import open_storage
from pyhudi.streamer.checkpoints import Start
from pyhudi.streamer.json_messages import RowColumns
from pyhudi.streamer.sources.source import Batch, SourceSetting

if TYPE_CHECKING:
    from pyhudi.sql.session import SqlSession

__all__ = ["SqlFileQuery", "SqlQuery"]

_BEFORE = ("SET", "CREATE TEMPORARY VIEW", "CREATE OR REPLACE TEMPORARY VIEW")
_LARGEST_BYTES = 1 << 20


class _QuerySource(ABC):
    """What both share. `reads_all`: each round runs the query, and notes no checkpoint."""

    writes_v2 = False
    reads_all = True

    def __init__(self, setting: SourceSetting) -> None:
        self._setting, self._options = setting, setting.settings.options.sql
        if setting.settings.options.source_limit is not None:
            raise ConfigError(
                f"{setting.settings.place}: source-limit would leave rows of the query out. Give the query a LIMIT."
            )
        self._text = self._whole_text()

    @abstractmethod
    def _whole_text(self) -> str:
        """The statements, the query as the last one. Raises ConfigError where there are none."""

    def read(self, start: Start, limit: int | None, columns: RowColumns) -> Batch | None:
        """The rows of the query, without meta columns."""
        from pyhudi.sql.duckdb_session import DuckDbSession

        settings = self._setting.settings
        session = DuckDbSession(storage_options=settings.store)
        *before, query = _statements(self._text, cast("SqlSession", session), settings.place)
        for text in before:
            session.sql(text)
        rows = session.sql(query).to_arrow()
        rows = rows.select(without_meta(rows.schema).names).slice(0, limit)
        return Batch(rows, self._checkpoint()) if rows.num_rows else None

    def _checkpoint(self) -> str | None:
        return None

    def close(self) -> None:  # noqa: B027  (nothing is open)
        """Do nothing."""


class SqlQuery(_QuerySource):
    """A query of the configuration."""

    def _whole_text(self) -> str:
        if self._options.query is None:
            raise ConfigError(f"{self._setting.settings.place}: hoodie.streamer.source.sql.sql.query is missing.")
        return self._options.query


class SqlFileQuery(_QuerySource):
    """Statements in a file; the last one is the query."""

    def _whole_text(self) -> str:
        if self._options.file is None:
            raise ConfigError(f"{self._setting.settings.place}: hoodie.streamer.source.sql.file is missing.")
        folder, _, name = self._options.file.rpartition("/")
        return open_storage(folder or ".", self._setting.settings.store).read(name, _LARGEST_BYTES).decode("utf-8")

    def _checkpoint(self) -> str | None:
        return str(self._setting.clock.now_ms()) if self._options.emits_time else None


def _statements(text: str, session: SqlSession, place: str) -> Sequence[str]:
    """The statements of a text. Raises ConfigError for one that may write: a check, or another try, runs it, too."""
    from pyhudi.sql.statement import parse_statement
    from pyhudi.sql.tokens import Reader, tokens_of

    parts = [part for part in Reader(text, tokens_of(text)).split(";") if not part.at_end]
    if not parts:
        raise ConfigError(f"{place}: the source has no query.")
    for part in parts:
        is_last = part is parts[-1]
        fits = not part.sees("CREATE") if is_last else any(part.sees(words) for words in _BEFORE)
        if not fits or (is_last and parse_statement(part.remaining_text, session) is not None):
            raise ConfigError(
                f"{place}: {part.remaining_text!r:.200}: expected a query; statements before it may be SET and CREATE "
                "TEMPORARY VIEW. Nothing was written."
            )
    return [part.remaining_text for part in parts]
