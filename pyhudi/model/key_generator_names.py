"""How `hoodie.properties` names key generators: a type from table version 8 on, a Java class below."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["KEY_GENERATOR_ALIASES", "KEY_GENERATOR_CLASSES", "USER_PROVIDED", "key_generator_type"]

USER_PROVIDED = "USER_PROVIDED"

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

# Every other name of a type: Hudi's classes, and its types for rows in Avro.
KEY_GENERATOR_ALIASES: Mapping[str, str] = {
    name: kind for name, kind in (_TYPES_BY_CLASS | _TYPE_ALIASES).items() if kind in KEY_GENERATOR_CLASSES
}


def key_generator_type(name: str) -> str:
    """The type that a type's spelling or one of Hudi's classes stands for; another name stays as it is."""
    if name in _TYPES_BY_CLASS:
        return _TYPES_BY_CLASS[name]
    upper = name.upper()
    kind = _TYPE_ALIASES.get(upper, upper)
    return kind if kind in KEY_GENERATOR_CLASSES or kind == "HOODIE_TABLE_METADATA" else name
