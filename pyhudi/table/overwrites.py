"""What HudiTable does to whole partitions: overwriting and deleting them. Earlier instants keep the old rows."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from pyhudi.actions.writes.delete_partition import DeletePartitions
from pyhudi.errors import ConfigError
from pyhudi.model.options import WriteOptions
from pyhudi.services.partition_ttl import TtlResult, expire_partitions
from pyhudi.table.calls import Options, TableCalls, session_options, with_engine
from pyhudi.table.write import change_table, write
from pyhudi.timeline.table_properties import load_table_config

if TYPE_CHECKING:
    from pyhudi.actions.result import WriteResult
    from pyhudi.table.input import TableInput

__all__ = ["TableOverwrites"]

_PARTITIONS_TO_DELETE = "hoodie.datasource.write.partitions.to.delete"
_STATIC_PARTITIONS = "hoodie.static.overwrite.partition.paths"


class TableOverwrites(TableCalls):
    """insert_overwrite, insert_overwrite_table, delete_partitions, truncate, run_ttl."""

    def insert_overwrite(
        self,
        data: TableInput,
        *,
        partitions: Iterable[str] | None = None,
        options: Options | None = None,
        **more: object,
    ) -> WriteResult:
        """Put rows in the place of all rows of their partitions, in one commit. For `data` and options: `write_hudi`.

        Args:
            partitions: paths of the partitions to overwrite, also those that get no rows; None: those that get rows.
        Raises: ConfigError for rows that go to other partitions than `partitions`, WriteConflict when another write
            changed rows of these partitions meanwhile.
        """
        named = {} if partitions is None else {_STATIC_PARTITIONS: _listed(partitions)}
        return self._overwrite(data, "insert_overwrite", options, {**more, **named})

    def insert_overwrite_table(
        self, data: TableInput, *, options: Options | None = None, **more: object
    ) -> WriteResult:
        """Put rows in the place of all rows of the table, in one commit. For `data` and options: `write_hudi`."""
        return self._overwrite(data, "insert_overwrite_table", options, more)

    def delete_partitions(
        self,
        partitions: str | Iterable[str] = (),
        *,
        matching: str | Iterable[str] = (),
        options: Options | None = None,
        **more: object,
    ) -> WriteResult:
        """Take whole partitions out of the table, in one commit.

        Args:
            partitions: their paths, as `partitions()` gives them; outer slashes, and whether the names of the fields
                are there (`y=2022`, `2022`), don't matter. Those that are not there are passed over with a warning that
                names the nearest; without any there is no commit.
            matching: patterns of paths, with `*` for any text.
        Raises:  WriteConflict for partitions that a pending compaction or clustering is going to rewrite, ConfigError
            for a path with a star that no partition has.
        """
        given = self._options(options, more)
        storage = self._meta.storage
        given.setdefault("hoodie.datasource.write.operation", "delete_partition")
        parsed = WriteOptions.parse(given, session_options(self._spark), load_table_config(storage))
        action = DeletePartitions(_names(partitions), _names(matching))
        if not (action.paths or action.patterns):
            raise ConfigError("No partitions are named; give their paths, or patterns with * for any text as matching.")
        if parsed.replacing.partitions_to_delete:
            raise ConfigError(f"{_PARTITIONS_TO_DELETE}: name the partitions in the call instead, and once.")
        return with_engine(self._spark, parsed, lambda engine: change_table(storage, action, engine, parsed))

    def truncate(self, *, options: Options | None = None, **more: Any) -> WriteResult:
        """Take all rows out of the table, in one commit; the table stays, and its history can be read."""
        return self.delete_partitions(matching="*", options=options, **more)

    def run_ttl(self, *, dry_run: bool = False, options: Options | None = None, **more: object) -> TtlResult:
        """Delete the partitions that have expired, by `hoodie.partition.ttl.strategy.days.retain` and its like.

        Args:    dry_run: only say which.
        Raises:  WriteConflict for partitions that a pending compaction or clustering is going to rewrite.
        """
        run = partial(expire_partitions, dry_run=dry_run)
        return self._serve(run, options, more, dry_run=dry_run)

    def _overwrite(self, data: TableInput, operation: str, options: Options | None, more: Options) -> WriteResult:
        given = self._options(options, {**more, "operation": operation})
        result = write(self._meta.storage, data, given, "append", self._spark)
        assert result is not None
        return result


def _names(names: str | Iterable[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _listed(partitions: str | Iterable[str]) -> str:
    """Paths as the option takes them. Raises ConfigError for none, and for a path that can't be in a list."""
    paths = _names(partitions)
    if not paths:
        raise ConfigError("No partitions are named; give their paths.")
    strange = [path for path in paths if "," in path or path != path.strip()]
    if strange:
        raise ConfigError(
            f"The partition path {strange[0]!r} has a comma or outer blanks, which a list of paths can't hold. Leave "
            "partitions out: those that get rows are overwritten."
        )
    return ",".join(paths)
