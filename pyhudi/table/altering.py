"""Changes of a table's columns: `HudiTable.alter`."""

from __future__ import annotations

from pyhudi.actions.alter import AlterSchema
from pyhudi.actions.result import WriteResult
from pyhudi.errors import ConfigError
from pyhudi.model.options import WriteOptions
from pyhudi.schema.changes import SchemaChange
from pyhudi.table.calls import Options, TableCalls, session_options, with_engine
from pyhudi.table.write import change_table
from pyhudi.timeline.table_properties import load_table_config

__all__ = ["TableAltering"]


class TableAltering(TableCalls):
    """alter."""

    def alter(
        self,
        *changes: SchemaChange,
        schema_on_read: bool | None = None,
        options: Options | None = None,
        **more: object,
    ) -> WriteResult:
        """Change the table's columns by one commit, which has no files: older files are read as the new schema says.

        Args:
            changes: of `pyhudi.schema.changes`: AddColumn, RenameColumn, DropColumn, ChangeType, MoveColumn,
                SetComment, DropNotNull; paths of nested columns have dots. From the first change on that is more than
                new columns at the end, wider numbers and comments, the table has a schema history, as Hudi's
                `ALTER TABLE` makes it with `hoodie.schema.on.read.enable`.
            schema_on_read: True: the table gets a history in any case; False: it may not get one.
        Raises: SchemaMismatch for columns that are not there and changes that rows can't follow; ConfigError when they
            need a history and it may not be; WriteConflict when a write or a service that began meanwhile knows nothing
            of the change.
        """
        if not changes:
            raise ConfigError("alter takes changes of columns, such as pyhudi.schema.changes.AddColumn; found none.")
        storage = self._meta.storage
        given = self._options(options, more)
        parsed = WriteOptions.parse(given, session_options(self._spark), load_table_config(storage))
        action = AlterSchema(changes, schema_on_read)
        return with_engine(self._spark, parsed, lambda engine: change_table(storage, action, engine, parsed))
