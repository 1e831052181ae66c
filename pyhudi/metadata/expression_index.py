"""What an expression index is of: the call that its definition means, and whether this release can follow it.

Source: docs/formats/metadata-table.md, "Expression index", "Index definitions".
"""

from __future__ import annotations

import pyarrow as pa

from pyhudi.arrow.kinds import is_text
from pyhudi.errors import HudiError
from pyhudi.java.spark_functions import result_type, why_not
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.index_definitions import EXPRESSION_OPTION, IndexDefinition, read_index_definitions
from pyhudi.metadata.partitions import MetadataKind
from pyhudi.model.predicate.calls import call_of
from pyhudi.model.predicate.tree import Call, Column

__all__ = ["call_of_definition", "is_bloom_index", "why_no_expression_index"]

_FIRST = 8  # table version from which there are expression indexes
_BY_VALUE_TYPE = 9  # from which they are of version V2
_COLUMN_STATS, _BLOOM = MetadataKind.COLUMN_STATS.value.prefix, MetadataKind.BLOOM_FILTERS.value.prefix
_BLOOM_OPTIONS = frozenset({"filtertype", "numentries", "fpp", "maxentries"})  # each filter says its own


def call_of_definition(definition: IndexDefinition) -> Call:
    """The function of the column that the index is of. The definition has one column."""
    (column,) = definition.source_fields
    passed_over = {EXPRESSION_OPTION, *(_BLOOM_OPTIONS if is_bloom_index(definition) else ())}
    options = {name: text for name, text in definition.options.items() if name not in passed_over}
    return call_of(definition.function, Column((column,)), options)


def is_bloom_index(definition: IndexDefinition) -> bool:
    """Has it bloom filters of the values, and not their ranges?"""
    return definition.kind == _BLOOM


def why_no_expression_index(data: MetaClient, partition: str, definition: IndexDefinition | None = None) -> str | None:
    """Why this release can't build or keep up an expression index, as a part of a sentence; None when it can.

    Args:   definition: of one that is to be made; None: as the table has it.
    """
    version = data.config.table_version
    if version < _FIRST:
        return f"the table has version {version}, and expression indexes begin with {_FIRST}"
    try:
        found = definition or read_index_definitions(data.storage).by_name.get(partition)
        schema = data.stored_schema()
    except HudiError as error:
        return str(error)
    if found is None:
        return f"index.json has no definition of {partition}"
    if found.version != ("V2" if version >= _BY_VALUE_TYPE else None):
        return f"it is of version {found.version}, which tables of version {version} do not have"
    if found.kind not in (_COLUMN_STATS, _BLOOM):
        return f"it is of the type {found.kind!r}; known are {_COLUMN_STATS} and {_BLOOM}"
    if len(found.source_fields) != 1:
        return f"it is of the columns {', '.join(found.source_fields) or 'none'}, and not of one"
    return _why_not_of(found, schema)


def _why_not_of(definition: IndexDefinition, schema: pa.Schema) -> str | None:
    (column,) = definition.source_fields
    if column not in schema.names:
        return f"the table stores no column {column!r}"
    kind, call = schema.field(column).type, call_of_definition(definition)
    why = why_not(call, kind)
    if why is None and is_bloom_index(definition):
        result = result_type(call, kind)
        if not (is_text(result) or pa.types.is_integer(result)):
            return f"it is not known what text Apache Hudi makes of {result} for a bloom filter"
    return why
