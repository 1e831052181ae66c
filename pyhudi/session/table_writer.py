"""`df.writeTo(name)` after `enable`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

from pyspark.sql import DataFrame, DataFrameWriterV2

from pyhudi.errors import ConfigError, TableNotFound
from pyhudi.session.spark_calls import FORMATS

if TYPE_CHECKING:
    from pyspark.sql._typing import OptionalPrimitiveType

__all__ = ["HudiAwareTableWriter"]

_COLUMN = re.compile(r"Column<'`?([^'`(]+)`?'>")


class HudiAwareTableWriter:
    """`df.writeTo(name)` after `enable`: passes calls on to Spark's, but for Hudi tables and `using("hudi")`."""

    def __init__(self, owner: DataFrame, real: DataFrameWriterV2, table: str) -> None:
        self._owner, self._real, self._table = owner, real, table
        self._uses: str | None = None
        self._given: dict[str, OptionalPrimitiveType] = {}
        self._partitions: tuple[str, ...] = ()

    def __getattr__(self, name: str) -> object:
        if name == "_real":
            raise AttributeError(name)
        return getattr(self._real, name)

    def using(self, provider: str) -> HudiAwareTableWriter:
        self._uses = provider.lower()
        self._real.using(provider)
        return self

    def option(self, key: str, value: OptionalPrimitiveType) -> HudiAwareTableWriter:
        self._given[key] = value
        self._real.option(key, value)
        return self

    def options(self, **options: OptionalPrimitiveType) -> HudiAwareTableWriter:
        self._given.update(options)
        self._real.options(**options)
        return self

    def tableProperty(self, property: str, value: str) -> HudiAwareTableWriter:  # noqa: N802
        self._given[property] = value
        self._real.tableProperty(property, value)
        return self

    def partitionedBy(self, col: object, *cols: object) -> HudiAwareTableWriter:  # noqa: N802
        if self._uses in FORMATS:
            self._partitions = tuple(_column_name(column) for column in (col, *cols))
        else:
            self._real.partitionedBy(cast("str", col), *cast("tuple[str, ...]", cols))
        return self

    def create(self) -> None:
        self._save("create", create=True)

    def replace(self) -> None:
        from pyhudi.session.named_writes import is_hudi_name

        if self._uses in FORMATS and not is_hudi_name(self._owner.sparkSession, self._table):
            raise TableNotFound(f"There is no Hudi table {self._table!r:.200} to replace; create() makes one.")
        self._save("replace", or_replace=True)

    def createOrReplace(self) -> None:  # noqa: N802
        self._save("createOrReplace", or_replace=True)

    def append(self) -> None:
        from pyhudi.session.named_writes import insert_frame, is_hudi_name

        if not is_hudi_name(self._owner.sparkSession, self._table):
            self._real.append()
            return
        insert_frame(self._owner, self._table, by_name=True)

    def overwritePartitions(self) -> None:  # noqa: N802
        from pyhudi.session.named_writes import is_hudi_name, overwrite_frame

        if not is_hudi_name(self._owner.sparkSession, self._table):
            self._real.overwritePartitions()
            return
        overwrite_frame(self._owner, self._table, self._given)

    def overwrite(self, condition: object) -> None:
        from pyhudi.session.named_writes import is_hudi_name

        if is_hudi_name(self._owner.sparkSession, self._table):
            raise ConfigError(
                "writeTo(…).overwrite(condition) is two writes for a Hudi table: DELETE FROM … WHERE, then append(). "
                "overwritePartitions() replaces the partitions that get rows."
            )
        self._real.overwrite(cast("str", condition))

    def _save(self, call: str, *, create: bool = False, or_replace: bool = False) -> None:
        if self._uses not in FORMATS:
            getattr(self._real, call)()
            return
        from pyhudi.session.named_writes import save_frame

        save_frame(
            self._owner, self._table, "overwrite", self._given, self._partitions, create=create, or_replace=or_replace
        )


def _column_name(column: object) -> str:
    """The name of a column of a call, given as a text or as a Column."""
    if isinstance(column, str):
        return column
    text = str(column)
    found = _COLUMN.fullmatch(text)
    if found is None:
        raise ConfigError(f"partitionedBy takes columns of the frame for a Hudi table, found {text}.")
    return found[1]
