"""Options of key generation, parsed once into one frozen value.

Source: docs/formats/keys.md, "Which generator", "Record keys", "Partition paths", "Custom", "Times"; Hudi's page on key
generation (its prefix `hoodie.streamer.keygen.timebased.` is accepted, though Hudi's own generators don't know it).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyhudi.errors import ConfigError
from pyhudi.keygen.partition_path import PathStyle
from pyhudi.model.table_format import TableFormat

__all__ = ["TIMEBASED_PREFIXES", "KeySettings", "infer", "option_text", "parse_settings", "split_fields"]

RECORD_KEY = ("hoodie.datasource.write.recordkey.field", "hoodie.table.recordkey.fields")
PARTITION_PATH = ("hoodie.datasource.write.partitionpath.field", "hoodie.table.partition.fields")
GENERATOR_CLASS = "hoodie.datasource.write.keygenerator.class"
GENERATOR_TYPE = "hoodie.datasource.write.keygenerator.type"
TABLE_GENERATOR = ("hoodie.table.keygenerator.class", "hoodie.table.keygenerator.type")
HIVE_STYLE = "hoodie.datasource.write.hive_style_partitioning"
URL_ENCODE = "hoodie.datasource.write.partitionpath.urlencode"
SLASH_DATES = "hoodie.datasource.write.slash.separated.date.partitioning"
CONSISTENT_TIMESTAMPS = "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled"
NEW_COMPLEX_ENCODING = "hoodie.write.complex.keygen.new.encoding"
STORED_COMPLEX_ENCODING = "hoodie.table.complex.keygenerator.encoding"
WRITE_VERSION = ("hoodie.write.table.version", "hoodie.table.version")
TIMEBASED_PREFIXES = (
    "hoodie.keygen.timebased.",
    "hoodie.streamer.keygen.timebased.",
    "hoodie.deltastreamer.keygen.timebased.",
)
CURRENT_VERSION = 9


@dataclass(frozen=True, slots=True)
class KeySettings:
    """All settings that a generator may need."""

    record_fields: tuple[str, ...]  # dotted names; () asks for automatic keys
    partition_fields: tuple[str, ...]  # as configured, with ":TYPE" for CUSTOM
    style: PathStyle
    single_field_prefix: bool  # COMPLEX with one key field: `f:v` or the bare value
    timebased: Mapping[str, str]  # settings of the TIMESTAMP generator, without prefix
    current_year: int | None  # for years of two digits
    options: Mapping[str, str]  # all options, for a user's class

    def single_partition_style(self) -> PathStyle:
        """Return the style for one partition field among several: slash-separated dates are for a single field only."""
        if len(self.partition_fields) == 1 or not self.style.slash_dates:
            return self.style
        return replace(self.style, slash_dates=False)


def option_text(options: Mapping[str, str], *names: str) -> str:
    """Return the first option that is set and not blank, trimmed; "" if there is none."""
    for name in names:
        text = str(options.get(name) or "").strip()
        if text:
            return text
    return ""


def split_fields(text: str) -> tuple[str, ...]:
    """Return names from a list with commas, trimmed, without empty ones."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def infer(options: Mapping[str, str]) -> str:
    """Return the name of the key generator when neither class nor type is set.

    No partition field is NON_PARTITION, a first field with ":" CUSTOM, one field SIMPLE, several COMPLEX; SIMPLE with
    several key fields becomes COMPLEX (docs/formats/keys.md, "Which generator").
    """
    partition_fields = split_fields(option_text(options, *PARTITION_PATH))
    if not partition_fields:
        return "NON_PARTITION"
    if ":" in partition_fields[0]:
        return "CUSTOM"
    record_fields = split_fields(option_text(options, *RECORD_KEY))
    return "SIMPLE" if len(partition_fields) == 1 and len(record_fields) <= 1 else "COMPLEX"


def parse_settings(
    options: Mapping[str, str], *, table_version: int | None = None, current_year: int | None = None
) -> KeySettings:
    """Parse. Raises ConfigError for values that can't be read."""
    version = table_version if table_version is not None else _version(options)
    return KeySettings(
        record_fields=split_fields(option_text(options, *RECORD_KEY)),
        partition_fields=split_fields(option_text(options, *PARTITION_PATH)),
        style=PathStyle(
            hive_style=_flag(options, HIVE_STYLE),
            url_encode=_flag(options, URL_ENCODE),
            slash_dates=_flag(options, SLASH_DATES),
            consistent_timestamps=_flag(options, CONSISTENT_TIMESTAMPS),
        ),
        single_field_prefix=_single_field_prefix(options, version),
        timebased=_timebased(options),
        current_year=current_year,
        options=dict(options),
    )


def _single_field_prefix(options: Mapping[str, str], version: int) -> bool:
    encoding = option_text(options, STORED_COMPLEX_ENCODING)
    if encoding:
        if encoding not in ("FIELD_PREFIXED", "VALUE_ONLY"):
            raise ConfigError(f"{STORED_COMPLEX_ENCODING} is {encoding!r}; expected FIELD_PREFIXED or VALUE_ONLY.")
        return encoding == "FIELD_PREFIXED"
    return TableFormat(version).prefixes_single_complex_key or not _flag(options, NEW_COMPLEX_ENCODING)


def _timebased(options: Mapping[str, str]) -> Mapping[str, str]:
    converters: dict[str, str] = {}
    for prefix in reversed(TIMEBASED_PREFIXES):  # the first prefix wins
        converters.update({key.removeprefix(prefix): str(v) for key, v in options.items() if key.startswith(prefix)})
    return converters


def _flag(options: Mapping[str, str], key: str) -> bool:
    text = str(options.get(key, "false")).strip().lower()
    if text not in ("true", "false"):
        raise ConfigError(f"{key} is {options[key]!r}; expected true or false.")
    return text == "true"


def _version(options: Mapping[str, str]) -> int:
    text = option_text(options, *WRITE_VERSION)
    if not text:
        return CURRENT_VERSION
    if not text.isdecimal():
        raise ConfigError(f"{WRITE_VERSION[0]} is {text!r}; expected a table version such as {CURRENT_VERSION}.")
    return int(text)
