"""Names of the meta columns, the control columns of a write, and the key generators.

Control columns accompany rows inside a write and are never stored. `hoodie.properties` names a key generator by its
type from table version 8 on, by a Java class below.

Source: docs/formats/base-files.md, "Meta columns".
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = [
    "ARRIVAL",
    "BASE_ROW",
    "CHANGE",
    "COMBINED",
    "COMMIT_SEQNO",
    "COMMIT_TIME",
    "CONTROL_COLUMNS",
    "DELETE_FLAG_COLUMN",
    "FILE_NAME",
    "HIVE_DEFAULT_PARTITION",
    "IS_DELETE",
    "KEY_GENERATOR_ALIASES",
    "KEY_GENERATOR_CLASSES",
    "LOCATION",
    "META_COLUMNS",
    "OLD_DEFAULT_PARTITION",
    "PARTITION_PATH",
    "PLAIN_GENERATORS",
    "RECORD_KEY",
    "SLOT",
    "STORED_ROW",
    "USER_PROVIDED",
    "key_generator_type",
]


COMMIT_TIME = "_hoodie_commit_time"
COMMIT_SEQNO = "_hoodie_commit_seqno"
RECORD_KEY = "_hoodie_record_key"
PARTITION_PATH = "_hoodie_partition_path"
FILE_NAME = "_hoodie_file_name"
META_COLUMNS = (COMMIT_TIME, COMMIT_SEQNO, RECORD_KEY, PARTITION_PATH, FILE_NAME)

# A row whose boolean column of this name is true is a delete (docs/formats/merging.md, "Deletes").
DELETE_FLAG_COLUMN = "_hoodie_is_deleted"

HIVE_DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"
OLD_DEFAULT_PARTITION = "default"  # the name before table version 5

# Control columns of the write path. Rows carry RECORD_KEY and PARTITION_PATH under their Hudi names, and:
ARRIVAL = "_pyhudi_arrival"  # int64, no nulls: order of arrival; "later" in the merge rules means greater
IS_DELETE = "_pyhudi_is_delete"  # bool, no nulls: this row deletes its key
LOCATION = "_pyhudi_file_id"  # string: file id that holds the key, null = insert
SLOT = "_pyhudi_slot"  # int32, no nulls: which write task takes the row
CHANGE = "_pyhudi_change"  # int32, no nulls: which clause of an update or a merge made the row
BASE_ROW = "_pyhudi_base_row"  # int64: the row of the file group's base file that has the key, null = not known
# string: key and sequence number of the stored row that this one replaces, null = a new row. Used only if a key is in a
# file group twice, so that it does not identify a row.
STORED_ROW = "_pyhudi_stored_row"
COMBINED = "_pyhudi_combined"  # int32: in one row of a task, the number of rows removed by combining; else 0
CONTROL_COLUMNS = (ARRIVAL, IS_DELETE, LOCATION, SLOT, CHANGE, BASE_ROW, STORED_ROW, COMBINED)


USER_PROVIDED = "USER_PROVIDED"

# Types of key generators that write the values of partition columns into the path as they are.
PLAIN_GENERATORS = ("SIMPLE", "COMPLEX")

_PACKAGE = "org.apache.hudi.keygen."

# Key generator type → Hudi's class.
KEY_GENERATOR_CLASSES: Mapping[str, str] = {
    "SIMPLE": f"{_PACKAGE}SimpleKeyGenerator",
    "COMPLEX": f"{_PACKAGE}ComplexKeyGenerator",
    "TIMESTAMP": f"{_PACKAGE}TimestampBasedKeyGenerator",
    "CUSTOM": f"{_PACKAGE}CustomKeyGenerator",
    "NON_PARTITION": f"{_PACKAGE}NonpartitionedKeyGenerator",
    "GLOBAL_DELETE": f"{_PACKAGE}GlobalDeleteKeyGenerator",
}
_OTHER_CLASSES = {
    f"{_PACKAGE}SimpleAvroKeyGenerator": "SIMPLE",
    f"{_PACKAGE}ComplexAvroKeyGenerator": "COMPLEX",
    f"{_PACKAGE}TimestampBasedAvroKeyGenerator": "TIMESTAMP",
    f"{_PACKAGE}CustomAvroKeyGenerator": "CUSTOM",
    f"{_PACKAGE}NonpartitionedAvroKeyGenerator": "NON_PARTITION",
    f"{_PACKAGE}GlobalAvroDeleteKeyGenerator": "GLOBAL_DELETE",
    "org.apache.hudi.metadata.HoodieTableMetadataKeyGenerator": "HOODIE_TABLE_METADATA",
}
_TYPES_BY_CLASS = {name: kind for kind, name in KEY_GENERATOR_CLASSES.items()} | _OTHER_CLASSES
_TYPE_ALIASES = {f"{kind}_AVRO": kind for kind in KEY_GENERATOR_CLASSES} | {"NON_PARTITIONED": "NON_PARTITION"}

# Other names of types: Hudi's classes, and its types for rows in Avro.
KEY_GENERATOR_ALIASES: Mapping[str, str] = {
    name: kind for name, kind in (_TYPES_BY_CLASS | _TYPE_ALIASES).items() if kind in KEY_GENERATOR_CLASSES
}


def key_generator_type(name: str) -> str:
    """The type for a spelling of a type or one of Hudi's classes; any other name is returned unchanged."""
    if name in _TYPES_BY_CLASS:
        return _TYPES_BY_CLASS[name]
    upper = name.upper()
    kind = _TYPE_ALIASES.get(upper, upper)
    return kind if kind in KEY_GENERATOR_CLASSES or kind == "HOODIE_TABLE_METADATA" else name
