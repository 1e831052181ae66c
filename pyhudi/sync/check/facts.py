"""The facts of a table that conditions use. Each fact is looked up once, on first use."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from pyhudi.errors import HudiError
from pyhudi.formats.bootstrap import BASE_PATH_KEY
from pyhudi.lazy_property import lazy_property
from pyhudi.meta_client import MetaClient
from pyhudi.model.filenames import META_FOLDER, PROPERTIES_PATH, may_be_skeleton
from pyhudi.model.instant import ActionKind
from pyhudi.model.table_config import TableConfig
from pyhudi.queries.query import Query
from pyhudi.storage.base import FileInfo
from pyhudi.sync.check.log_rows import RowsInLogs, rows_in_logs
from pyhudi.sync.check.shown_files import ShownFiles, files_with_other_names, rows_of, shown_by_names
from pyhudi.sync.files import newest_files
from pyhudi.view.consistent_read import read_consistently
from pyhudi.view.file_system_view import FileSystemView, listed_partitions

__all__ = ["TableFacts"]

_FOOTERS = 16  # of base files, evenly spread over the table
_DELTA_LOG = "_delta_log"  # of a table that is exported to Delta
_ENCRYPTED = b"PARE"  # the end of a Parquet file whose footer is encrypted
Listed: TypeAlias = Sequence[tuple[str, Sequence[FileInfo]]]


class TableFacts:
    """A table at one moment. Facts raise the errors of listing the table."""

    def __init__(self, meta: MetaClient, query: Query) -> None:
        """`query`: how log rows are merged."""
        self.meta, self._query = meta, query

    @property
    def config(self) -> TableConfig:
        return self.meta.config

    # ---- files

    @lazy_property
    def view(self) -> FileSystemView:
        """The visible files."""
        return newest_files(self.meta)

    @lazy_property
    def _in_folders(self) -> tuple[Listed, FileSystemView]:
        """All files in partition folders, and the visible ones at the same moment."""

        def read(now: MetaClient) -> tuple[Listed, FileSystemView]:
            entries = list(listed_partitions(now.storage))
            return entries, FileSystemView.load(now, listed=dict(entries))

        return read_consistently(self.meta, read)

    def shown_by(self, engine: str) -> ShownFiles:
        """The files that an engine shows that uses only file names."""
        return shown_by_names(engine, *self._in_folders)

    def rows_of(self, paths: Sequence[str]) -> int | None:
        """The number of rows of base files; None if there are too many to count."""
        return rows_of(self.meta.storage, paths)

    @lazy_property
    def odd_names(self) -> tuple[str, ...]:
        """Parquet files in partition folders, and in a Delta log beside them, without names of base files."""
        return files_with_other_names([*self._in_folders[0], (_DELTA_LOG, self.meta.storage.list(_DELTA_LOG))])

    @lazy_property
    def other_folders(self) -> tuple[str, ...]:
        """Folders of a table without partitions that are not Hudi's own."""
        if self.config.partition_fields:
            return ()
        entries = self.meta.storage.list("")
        return tuple(entry.name for entry in entries if entry.is_dir and entry.name != META_FOLDER)

    @lazy_property
    def history_files(self) -> tuple[str, ...]:
        """Parquet files of the archived timeline."""
        entries = self.meta.storage.list(self.config.history_path)
        return tuple(entry.path for entry in entries if entry.name.endswith(".parquet"))

    @lazy_property
    def log_rows(self) -> RowsInLogs:
        """Rows that base files alone show wrongly."""
        return rows_in_logs(self.meta, self._query, self.view)

    @lazy_property
    def skeletons(self) -> tuple[str, ...]:
        """Base files whose data columns are in files outside the table."""
        if BASE_PATH_KEY not in self.config.properties:
            return ()
        return tuple(base.path for base in self.view.all_base_files() if may_be_skeleton(base.name))

    @lazy_property
    def _footers(self) -> Mapping[str, frozenset[str]]:
        """Some Parquet files with their codecs; an encrypted one has none."""
        bases = [base for base in self.view.all_base_files() if base.name.endswith(".parquet")]
        step = max(1, len(bases) // _FOOTERS)
        return dict(self._codecs([base.path for base in bases[::step]]))

    def _codecs(self, paths: Sequence[str]) -> Iterator[tuple[str, frozenset[str]]]:
        for path in paths:
            try:
                with self.meta.storage.open_input(path) as file:
                    file.seek(file.size() - len(_ENCRYPTED))
                    if file.read() == _ENCRYPTED:
                        yield path, frozenset()
                        continue
                    footer = pq.ParquetFile(file).metadata
            except (HudiError, pa.ArrowException, OSError):
                continue  # just cleaned, or damaged, which a reader will report
            groups = (footer.row_group(number) for number in range(footer.num_row_groups))
            yield path, frozenset(part.column(n).compression for part in groups for n in range(part.num_columns))

    @property
    def codecs(self) -> frozenset[str]:
        """Parquet's names of the codecs in some of the base files, such as ZSTD."""
        return frozenset[str]().union(*self._footers.values())

    @property
    def encrypted_files(self) -> tuple[str, ...]:
        """Those of some base files that are encrypted."""
        return tuple(path for path, codecs in self._footers.items() if not codecs)

    # ---- columns and properties

    @lazy_property
    def columns_by_kind(self) -> Mapping[str, tuple[str, ...]]:
        """Paths of data columns whose types some engines lack: time, nanoseconds, timestamp, local timestamp."""
        paths_by_kind: dict[str, list[str]] = defaultdict(list)
        for field in self.meta.table_schema():
            for kind, path in _kinds(field.type, field.name):
                paths_by_kind[kind].append(path)
        return {kind: tuple(paths) for kind, paths in paths_by_kind.items()}

    @lazy_property
    def property_lines(self) -> tuple[str, ...]:
        """The lines of `hoodie.properties`, unchanged."""
        lines = self.meta.storage.read(PROPERTIES_PATH).decode("iso-8859-1").splitlines()
        return tuple(line.strip() for line in lines if line.strip() and not line.strip().startswith("#"))

    @lazy_property
    def newest_commit_path(self) -> str | None:
        """The first file that the newest commit wrote; "" if it wrote none, None without a commit."""
        commits = [one for one in self.meta.timeline.completed() if one.action is ActionKind.COMMIT]
        if not commits:
            return None
        return next((stat.path for stat in self.meta.commits.metadata(commits[-1]).stats() if stat.path), "")


def _kinds(kind: pa.DataType, path: str) -> Iterator[tuple[str, str]]:
    if pa.types.is_time(kind):
        yield "time", path
    elif pa.types.is_timestamp(kind):
        yield ("nanoseconds" if kind.unit == "ns" else "timestamp" if kind.tz else "local timestamp"), path
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from _kinds(kind.value_type, f"{path}.element")
    elif pa.types.is_map(kind):
        yield from _kinds(kind.key_type, f"{path}.key")
        yield from _kinds(kind.item_type, f"{path}.value")
    elif pa.types.is_struct(kind):
        for field in kind:
            yield from _kinds(field.type, f"{path}.{field.name}")
