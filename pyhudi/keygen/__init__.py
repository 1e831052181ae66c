"""Key generators: which key a row has, and which partition it lives in.

    from_options({"hoodie.datasource.write.recordkey.field": "id", ...}).columns(batch)

One file per generator and one row per file in KEY_GENERATORS; a user's own class is named in full,
"my_package.keys:HashedKey". See docs/key-generators.md. Source: docs/formats/keys.md, "Which generator", "Record keys",
"Partition paths".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, cast

import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.keygen.auto import AutoKey
from pyhudi.keygen.base import BuiltInKey, KeyColumns, KeyGenerator, UserKeyGenerator, missing_field, read_field
from pyhudi.keygen.complex import detect_single_key_encoding
from pyhudi.keygen.parse import partition_values, record_key_values
from pyhudi.keygen.settings import (
    GENERATOR_CLASS,
    GENERATOR_TYPE,
    RECORD_KEY,
    TABLE_GENERATOR,
    KeySettings,
    infer,
    option_text,
    parse_settings,
)
from pyhudi.keygen.user import UserKey
from pyhudi.model.keys import KEY_GENERATOR_ALIASES, USER_PROVIDED
from pyhudi.registry import Registry

__all__ = [
    "KEY_GENERATORS",
    "AutoKey",
    "KeyColumns",
    "KeyGenerator",
    "UserKeyGenerator",
    "detect_single_key_encoding",
    "from_options",
    "generator_name",
    "infer",
    "partition_values",
    "record_key_values",
]

_ENTRIES = {
    "SIMPLE": "pyhudi.keygen.simple:SimpleKey",
    "COMPLEX": "pyhudi.keygen.complex:ComplexKey",
    "NON_PARTITION": "pyhudi.keygen.non_partition:NonPartitionKey",
    "GLOBAL_DELETE": "pyhudi.keygen.global_delete:GlobalDeleteKey",
    "CUSTOM": "pyhudi.keygen.custom:CustomKey",
    "TIMESTAMP": "pyhudi.keygen.timestamp:TimestampKey",
}

_PACKAGE = "org.apache.hudi.keygen."


class _GeneratorClass(Protocol):
    """A class of this package; UserKey makes a user's class."""

    def from_settings(self, settings: KeySettings) -> BuiltInKey: ...


KEY_GENERATORS: Registry[_GeneratorClass] = Registry(
    kind="key generator",
    entries=_ENTRIES,
    aliases={
        **KEY_GENERATOR_ALIASES,
        **{spelling.lower(): kind for spelling, kind in KEY_GENERATOR_ALIASES.items() if "." not in spelling},
        # Names without a package, and in the package of Hudi before 0.6: old tables still hold them.
        **{
            prefix + name.removeprefix(_PACKAGE): kind
            for name, kind in KEY_GENERATOR_ALIASES.items()
            for prefix in ("", "org.apache.hudi.")
            if name.startswith(_PACKAGE)
        },
    },
)


def generator_name(options: Mapping[str, str]) -> str:
    """Return the name of the generator that the options ask for: class, else type, else the table's, else inferred.

    A user's "module:Class" counts only in the writer's class option: nothing in a table's properties (the type
    included) can make its readers import code.
    """
    requested = option_text(options, GENERATOR_CLASS)
    if requested:
        return KEY_GENERATORS.canonical(requested)
    named = option_text(options, GENERATOR_TYPE)
    table_generator = option_text(options, *TABLE_GENERATOR)
    if not named and not table_generator:
        return infer(options)
    name = named or table_generator
    is_built_in = name in KEY_GENERATORS.aliases or name.upper() in KEY_GENERATORS.entries
    if not is_built_in and (not named or ":" in name or "." in name or name == USER_PROVIDED):
        raise ConfigError(
            f"The table's key generator is {name!r}, which is not one of Hudi's own. "
            f"Name a Python class that makes the same keys with {GENERATOR_CLASS}='module:Class'."
        )
    return KEY_GENERATORS.canonical(name)


def from_options(
    options: Mapping[str, str],
    *,
    schema: pa.Schema | None = None,
    table_version: int | None = None,
    instant_time: str | None = None,
    current_year: int | None = None,
) -> KeyGenerator:
    """Return the key generator that Hudi's options describe.

    Args:    schema: the data's; if given, key fields that it lacks are reported now and not at the first batch;
                 table_version: the table's (default: the option hoodie.write.table.version, else 9); instant_time: the
                 commit's, for automatic keys; current_year: for texts with two-digit years (default: year of the
                 instant).
    Raises:  ConfigError for options that contradict each other, lack something or are unknown.
    """
    year = current_year if current_year is not None else _year_of(instant_time)
    settings = parse_settings(options, table_version=table_version, current_year=year)
    name = generator_name(options)
    if ":" in name:
        return UserKey.make(name, cast("type", KEY_GENERATORS.load(name)), settings)
    generator = KEY_GENERATORS.load(name).from_settings(settings)
    if not settings.record_fields:
        return AutoKey(generator, instant_time)
    if schema is not None:
        empty = schema.empty_table()
        for field in settings.record_fields:
            if read_field(empty, field) is None:
                raise missing_field(field, schema, RECORD_KEY[0])
    return generator


def _year_of(instant_time: str | None) -> int | None:
    return int(instant_time[:4]) if instant_time and instant_time[:4].isdecimal() else None
