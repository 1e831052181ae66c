"""`.hoodie/.index_defs/index.json`: the definitions of the metadata table's indexes.

The table's properties say which partitions may be read; a definition alone proves nothing, since Hudi leaves those of
failed builds. Fields unknown to this release are kept. Source: docs/formats/metadata-table.md, "Index definitions".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyhudi.errors import CorruptFile, PathNotFound
from pyhudi.expressions.predicates import Call
from pyhudi.formats.json_text import parse_json, pretty_json
from pyhudi.formats.timeline.bodies import Fields, fields_of
from pyhudi.metadata.schema import MetadataKind
from pyhudi.model.filenames import INDEX_DEFINITIONS_PATH
from pyhudi.model.table_format import TableFormat
from pyhudi.storage.base import Storage

__all__ = [
    "EXPRESSION_OPTION",
    "IndexDefinition",
    "IndexDefinitions",
    "column_stats_definition",
    "delete_unreadable",
    "expression_index_definition",
    "is_partitioned_record_index",
    "read_index_definitions",
    "secondary_index_definition",
    "write_index_definitions",
]

EXPRESSION_OPTION = "expr"  # in the options of an expression index: its function, again

_DEFINITIONS = "indexDefinitions"
_NAME, _TYPE, _FUNCTION = "indexName", "indexType", "indexFunction"
_SOURCE_FIELDS, _OPTIONS, _VERSION = "sourceFields", "indexOptions", "version"
_IS_PARTITIONED = "isPartitioned"
_KNOWN = frozenset({_NAME, _TYPE, _FUNCTION, _SOURCE_FIELDS, _OPTIONS, _VERSION})


@dataclass(frozen=True, slots=True)
class IndexDefinition:
    """One index. `name`: its partition of the metadata table; `kind`: Hudi's name of the index type; `function`: the
    function of the columns (`column_stats`, `identity`, one of an expression); `version`: V1 or V2, None before table
    version 9; `unknown_fields`: fields unknown to this release.
    """

    name: str
    kind: str
    function: str = ""
    source_fields: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    version: str | None = None
    unknown_fields: Mapping[str, object] = field(default_factory=dict)

    def body(self) -> dict[str, object]:
        """The JSON object of the file."""
        body: dict[str, object] = {
            _NAME: self.name,
            _TYPE: self.kind,
            _FUNCTION: self.function,
            _SOURCE_FIELDS: list(self.source_fields),
            _OPTIONS: dict(self.options),
        }
        if self.version is not None:
            body[_VERSION] = self.version
        return {**body, **self.unknown_fields}


@dataclass(frozen=True, slots=True)
class IndexDefinitions:
    """All indexes of a table, by name, in the order of the file. `unknown_fields`: the file's other fields."""

    by_name: Mapping[str, IndexDefinition] = field(default_factory=dict)
    unknown_fields: Mapping[str, object] = field(default_factory=dict)

    def merged(self, definitions: Iterable[IndexDefinition]) -> IndexDefinitions:
        """These definitions, replacing those with the same names but keeping their unknown fields."""
        by_name = dict(self.by_name)
        for one in definitions:
            before = by_name.get(one.name)
            by_name[one.name] = (
                one if before is None else replace(one, unknown_fields={**before.unknown_fields, **one.unknown_fields})
            )
        return replace(self, by_name=by_name)

    def without(self, names: Collection[str]) -> IndexDefinitions:
        """The definitions without the indexes of these names."""
        return replace(self, by_name={name: one for name, one in self.by_name.items() if name not in names})


def column_stats_definition(table_version: int, columns: Sequence[str]) -> IndexDefinition:
    """The definition of column statistics, from table version 8 on. Partition statistics have none."""
    name = MetadataKind.COLUMN_STATS.value.prefix
    return IndexDefinition(name, name, name, tuple(columns), version=_version(table_version))


def _version(table_version: int) -> str | None:
    return "V2" if TableFormat(table_version).has_versioned_definitions else None


def is_partitioned_record_index(definitions: IndexDefinitions) -> bool:
    """True if the record index has separate file groups for each partition of the table."""
    definition = definitions.by_name.get(MetadataKind.RECORD_INDEX.value.prefix)
    return definition is not None and definition.options.get(_IS_PARTITIONED) == "true"


def secondary_index_definition(table_version: int, name: str, column: str) -> IndexDefinition:
    """The definition of a secondary index. `name`: its partition's name."""
    return IndexDefinition(name, "secondary_index", "identity", (column,), version=_version(table_version))


def expression_index_definition(table_version: int, name: str, kind: str, call: Call) -> IndexDefinition:
    """The definition of an expression index. `name`: its partition; `kind`: `column_stats` or `bloom_filters`."""
    options = {EXPRESSION_OPTION: call.function, **dict(call.options)}
    return IndexDefinition(name, kind, call.function, (str(call.column),), options, _version(table_version))


def read_index_definitions(storage: Storage) -> IndexDefinitions:
    """The definitions of a table's indexes; none when there is no file. Raises CorruptFile."""
    try:
        data = storage.read(INDEX_DEFINITIONS_PATH)
    except PathNotFound:
        return IndexDefinitions()
    where = storage.full_path(INDEX_DEFINITIONS_PATH)
    body = fields_of(parse_json(data, where, "index definitions as JSON"), where)
    by_name = {name: _definition(name, one) for name, one in body.record_map(_DEFINITIONS)}
    return IndexDefinitions(by_name, {key: value for key, value in body.body.items() if key != _DEFINITIONS})


def write_index_definitions(storage: Storage, definitions: IndexDefinitions) -> None:
    """Create or replace the file atomically. Nothing is written if nothing changes.

    The caller holds the table's lock. Raises CorruptFile when the existing file can't be read, StorageError.
    """
    if definitions == read_index_definitions(storage):
        return
    bodies = {name: one.body() for name, one in definitions.by_name.items()}
    storage.write(INDEX_DEFINITIONS_PATH, pretty_json({_DEFINITIONS: bodies, **definitions.unknown_fields}).encode())
    storage.sync([INDEX_DEFINITIONS_PATH])


def delete_unreadable(storage: Storage) -> None:
    """Delete the file if it can't be read: a process died while writing it, on a store that does not replace files
    atomically. Call this only before all definitions are rewritten, under the table's lock.
    """
    try:
        read_index_definitions(storage)
    except CorruptFile:
        storage.delete(INDEX_DEFINITIONS_PATH)


def _definition(name: str, fields: Fields) -> IndexDefinition:
    if fields.text(_NAME) not in ("", name):
        raise CorruptFile(
            f"{fields.where}: the definition of {name!r:.100} says that it is of {fields.text(_NAME)!r:.100}. Restore "
            f"or delete the file; Hudi makes it again when it builds an index."
        )
    options = fields.record(_OPTIONS)
    texts = {} if options is None else {key: options.text(key) for key in options.body}
    return IndexDefinition(
        name,
        fields.text(_TYPE),
        fields.text(_FUNCTION),
        fields.texts(_SOURCE_FIELDS),
        texts,
        fields.optional_text(_VERSION),
        {key: value for key, value in fields.body.items() if key not in _KNOWN},
    )
