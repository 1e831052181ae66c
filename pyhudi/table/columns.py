"""What HudiTable does to the table's columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyhudi.actions.alter_schema import AlterSchema
from pyhudi.errors import ConfigError
from pyhudi.model.options import WriteOptions
from pyhudi.schema.changes import SchemaChange
from pyhudi.table.calls import Options, TableCalls, session_options, with_engine
from pyhudi.table.write_table import change_table
from pyhudi.timeline.table_properties import load_table_config

if TYPE_CHECKING:
    from pyhudi.actions.result import WriteResult

__all__ = ["TableColumns"]


class TableColumns(TableCalls):
    """alter."""

    def alter(
        self, *changes: SchemaChange, schema_on_read: bool | None = None, options: Options | None = None, **more: object
    ) -> WriteResult:
        """Change the table's columns in one commit; no row is rewritten.

        Args:
            changes: of `pyhudi.schema.changes`, done in this order.
            schema_on_read: True: columns get ids, for good, as with Hudi's `hoodie.schema.on.read.enable`; False: they
                may not; None: they do when the changes need it.
        Raises: SchemaMismatch for changes that the table does not take, ConfigError when they need ids and may not have
            them; WriteConflict when another write changed the schema meanwhile.
        """
        if not changes:
            raise ConfigError("alter takes changes of columns, and none is given.")
        given = self._options(options, more)
        storage = self._meta.storage
        parsed = WriteOptions.parse(given, session_options(self._spark), load_table_config(storage))
        action = AlterSchema(tuple(changes), by_id=schema_on_read)
        return with_engine(self._spark, parsed, lambda engine: change_table(storage, action, engine, parsed))
