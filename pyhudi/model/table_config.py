"""TableConfig: the typed settings of a table, from its `hoodie.properties`.

Source: docs/formats/table-config.md, "Table versions", "Keys"; docs/formats/merging.md, "Mode of a table",
"What properties say".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timezone, tzinfo

from pyhudi.display import html_pairs
from pyhudi.errors import ConfigError, CorruptFile, UnsupportedTable
from pyhudi.model.buckets import TableBuckets
from pyhudi.model.change_logs import CDC_ENABLED, DATA_BEFORE_AFTER, LOGGING_MODE, LOGGING_MODES, logging_mode
from pyhudi.model.keys import USER_PROVIDED, key_generator_type
from pyhudi.model.merge_mode import infer_merge_mode
from pyhudi.model.new_table import CREATE_SCHEMA, WRITABLE_VERSIONS, NewTable, new_table_properties
from pyhudi.model.table_format import TableFormat, TimelineLayout
from pyhudi.redaction import without_credentials
from pyhudi.result import Result

__all__ = [
    "METADATA_PARTITIONS",
    "METADATA_PARTITIONS_INFLIGHT",
    "METADATA_TO_BUILD",
    "READABLE_VERSIONS",
    "WRITABLE_VERSIONS",
    "NewTable",
    "TableConfig",
    "new_table_properties",
]

_DEFAULT_LAYOUT = "default"  # of hoodie.table.storage.layout: base files with log files
READABLE_VERSIONS = (4, 5, 6, 8, 9)
METADATA_PARTITIONS = "hoodie.table.metadata.partitions"
METADATA_PARTITIONS_INFLIGHT = "hoodie.table.metadata.partitions.inflight"
METADATA_TO_BUILD = "hoodie.pyhudi.metadata.to.build"  # our property, which Hudi ignores

_KEYGEN_PREFIXES = ("hoodie.keygen.", "hoodie.streamer.keygen.", "hoodie.deltastreamer.keygen.")
_SLASH_DATES_KEY = "hoodie.datasource.write.slash.separated.date.partitioning"
_SLASH_DATES_EXTRACTOR = "SlashEncodedDayPartitionValueExtractor"


@dataclass(frozen=True, slots=True, repr=False)
class TableConfig(Result):
    """The properties of a table. Attributes read them; absent ones have Hudi's default.

    Raises CorruptFile when the name or the version is missing, or a number is invalid.
    """

    properties: Mapping[str, str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "properties", dict(self.properties))
        for key in ("hoodie.table.name", "hoodie.table.version"):
            if not self.properties.get(key):
                raise CorruptFile(
                    f"hoodie.properties: expected the key {key}, which every table has, found only "
                    f"{len(self.properties)} other keys. The file is cut off or was edited; restore it from "
                    f"hoodie.properties.backup or from another copy of the table."
                )
        _ = self.table_version, self.layout_version

    def __str__(self) -> str:
        return f"{self.table_name!r}: {self.description}"

    def _repr_html_(self) -> str:
        return html_pairs(sorted((key, without_credentials(value)) for key, value in self.properties.items()))

    def with_changes(self, set: Mapping[str, str] | None = None, remove: Iterable[str] = ()) -> TableConfig:
        """A config with some keys set and others removed."""
        removed = frozenset(remove)
        return TableConfig(
            {key: value for key, value in self.properties.items() if key not in removed} | dict(set or {})
        )

    # Description and paths

    @property
    def description(self) -> str:
        """The type, version, keys and partition columns, in one line."""
        keys = ", ".join(self.record_key_fields) or "generated keys"
        partitioning = f", partitioned by {', '.join(self.partition_fields)}" if self.partition_fields else ""
        return f"{self.table_type}, version {self.table_version}, key {keys}{partitioning}"

    @property
    def table_name(self) -> str:
        return self.properties["hoodie.table.name"]

    @property
    def database_name(self) -> str | None:
        return self.properties.get("hoodie.database.name") or None

    @property
    def table_type(self) -> str:
        """COPY_ON_WRITE or MERGE_ON_READ."""
        return self.properties.get("hoodie.table.type") or "COPY_ON_WRITE"

    @property
    def is_merge_on_read(self) -> bool:
        return self.table_type == "MERGE_ON_READ"

    @property
    def table_version(self) -> int:
        return self._integer("hoodie.table.version", 0)

    @property
    def layout_version(self) -> int:
        """Timeline layout, 1 or 2."""
        return self._integer("hoodie.timeline.layout.version", self.format.layout.version)

    @property
    def format(self) -> TableFormat:
        """The format of the table's version."""
        return TableFormat(self.table_version)

    @property
    def layout(self) -> TimelineLayout:
        """The properties of the timeline layout."""
        return TimelineLayout(self.layout_version)

    @property
    def base_file_format(self) -> str:
        """PARQUET, ORC, HFILE or LANCE."""
        text = self._first("hoodie.table.base.file.format", "hoodie.table.ro.file.format")
        return (text or "PARQUET").upper()

    @property
    def timeline_zone(self) -> tzinfo | None:
        """Zone of the instant times; None is the machine's local zone."""
        return timezone.utc if self.properties.get("hoodie.table.timeline.timezone", "").upper() == "UTC" else None

    @property
    def timeline_path(self) -> str:
        """Folder of the active timeline, relative to the table."""
        if not self.layout.has_own_folder:
            return ".hoodie"
        return f".hoodie/{self.properties.get('hoodie.timeline.path') or 'timeline'}"

    @property
    def history_path(self) -> str:
        """Folder of the archived timeline, relative to the table."""
        if not self.layout.has_own_folder:
            return f".hoodie/{self.properties.get('hoodie.archivelog.folder') or 'archived'}"
        return f"{self.timeline_path}/{self.properties.get('hoodie.timeline.history.path') or 'history'}"

    @property
    def create_schema(self) -> str | None:
        """Avro JSON of the schema at creation, or of the only write when that was undone; without meta columns."""
        return self.properties.get(CREATE_SCHEMA) or None

    @property
    def populate_meta_fields(self) -> bool:
        return self._flag("hoodie.populate.meta.fields", True)

    @property
    def cdc_enabled(self) -> bool:
        """True if changes of rows are logged."""
        return self._flag(CDC_ENABLED, False)

    @property
    def logging_mode(self) -> str:
        """The content of change logs: OP_KEY_ONLY, DATA_BEFORE or DATA_BEFORE_AFTER. Raises ConfigError for any other
        value.
        """
        text = self.properties.get(LOGGING_MODE) or DATA_BEFORE_AFTER
        mode = logging_mode(text)
        if mode is None:
            raise ConfigError(
                f"{LOGGING_MODE} of the table {self.table_name!r} is {text!r}; expected {', '.join(LOGGING_MODES)}."
            )
        return mode

    # Keys and partitions

    @property
    def record_key_fields(self) -> tuple[str, ...]:
        """The record key fields, () when Hudi generates keys."""
        return _names(self.properties.get("hoodie.table.recordkey.fields"))

    @property
    def partition_fields(self) -> tuple[str, ...]:
        """The partition fields without ":TYPE"; () for a non-partitioned table."""
        return tuple(field.partition(":")[0] for field in self._partition_entries())

    @property
    def partition_field_types(self) -> tuple[str, ...]:
        """SIMPLE or TIMESTAMP for each partition field with a type, else ""."""
        return tuple(field.partition(":")[2].upper() for field in self._partition_entries())

    @property
    def ordering_fields(self) -> tuple[str, ...]:
        return _names(self._first("hoodie.table.ordering.fields", "hoodie.table.precombine.field"))

    @property
    def key_generator(self) -> str | None:
        """SIMPLE, COMPLEX, TIMESTAMP, CUSTOM, NON_PARTITION, GLOBAL_DELETE; another class or type unchanged."""
        kind = self.properties.get("hoodie.table.keygenerator.type")
        class_name = self.properties.get("hoodie.table.keygenerator.class")
        if class_name and (not kind or kind == USER_PROVIDED):
            return key_generator_type(class_name)
        return key_generator_type(kind) if kind else None

    @property
    def hive_style_partitioning(self) -> bool:
        return self._flag("hoodie.datasource.write.hive_style_partitioning", False)

    @property
    def url_encode_partitioning(self) -> bool:
        return self._flag("hoodie.datasource.write.partitionpath.urlencode", False)

    @property
    def slash_separated_dates(self) -> bool:
        extractor = self.properties.get("hoodie.table.partition_extractor_class", "")
        return extractor.endswith(f".{_SLASH_DATES_EXTRACTOR}") or self._flag(_SLASH_DATES_KEY, False)

    @property
    def drop_partition_columns(self) -> bool:
        return self._flag("hoodie.datasource.write.drop.partition.columns", False)

    @property
    def dropped_partition_fields(self) -> tuple[str, ...]:
        """The partition fields that files leave out."""
        return self.partition_fields if self.drop_partition_columns else ()

    @property
    def keygen_properties(self) -> dict[str, str]:
        """Stored settings of the key generator, `hoodie.keygen.timebased.*` and its older spellings."""
        return {key: value for key, value in self.properties.items() if key.startswith(_KEYGEN_PREFIXES)}

    @property
    def buckets(self) -> TableBuckets | None:
        """The table's buckets; None if the properties don't define them, as in tables made by Hudi."""
        return TableBuckets.of(self.properties)

    # Merging

    @property
    def payload_class(self) -> str | None:
        return self.properties.get("hoodie.compaction.payload.class") or None

    @property
    def legacy_payload_class(self) -> str | None:
        """The payload class with which a table of version 9 was made; its mode is equivalent."""
        return self.properties.get("hoodie.table.legacy.payload.class") or None

    @property
    def merge_strategy_id(self) -> str | None:
        return self._first("hoodie.record.merge.strategy.id", "hoodie.compaction.record.merger.strategy")

    @property
    def partial_update_mode(self) -> str:
        return self.properties.get("hoodie.table.partial.update.mode") or "NONE"

    @property
    def record_merge_mode(self) -> str:
        """COMMIT_TIME_ORDERING, EVENT_TIME_ORDERING or CUSTOM; inferred if it is not stored."""
        return infer_merge_mode(
            table_version=self.table_version,
            is_merge_on_read=self.is_merge_on_read,
            mode=self.properties.get("hoodie.record.merge.mode") or None,
            payload_class=self.payload_class,
            strategy_id=self.merge_strategy_id,
            has_ordering=bool(self.ordering_fields),
        )

    # Metadata table

    @property
    def metadata_partitions(self) -> tuple[str, ...]:
        """Usable partitions of the metadata table; () when the table has none."""
        return _names(self.properties.get(METADATA_PARTITIONS))

    @property
    def metadata_partitions_inflight(self) -> tuple[str, ...]:
        """Partitions of the metadata table that are being built; not to be read."""
        return _names(self.properties.get(METADATA_PARTITIONS_INFLIGHT))

    @property
    def metadata_to_build(self) -> tuple[str, ...]:
        """The partitions of a removed metadata table that have to be rebuilt."""
        return _names(self.properties.get(METADATA_TO_BUILD))

    # Support in this release

    def check_readable(self) -> TableConfig:
        """Return the config itself. Raises UnsupportedTable if this release must not read such a table."""
        self._check_version(READABLE_VERSIONS, "reads")
        format_name = self.properties.get("hoodie.table.format") or "native"
        if format_name != "native":
            raise UnsupportedTable(
                f"The table {self.table_name!r} is kept in the pluggable table format {format_name!r}; this release of "
                f"PyHudi reads Hudi's own format (native) only. Read it with the engine that wrote it."
            )
        layout = self.properties.get("hoodie.table.storage.layout") or _DEFAULT_LAYOUT
        if layout.strip().lower() != _DEFAULT_LAYOUT:
            raise UnsupportedTable(
                f"The table {self.table_name!r} has the storage layout {layout!r} (hoodie.table.storage.layout): its "
                f"files are to be merged in another way than base files and log files, which this release of PyHudi "
                f"does not know. Nothing was read or written; use the engine that wrote it."
            )
        return self

    def check_writable(self) -> TableConfig:
        """Return the config itself. Raises UnsupportedTable if this release must not write to such a table."""
        self._check_version(WRITABLE_VERSIONS, "writes")
        return self.check_readable()

    def _check_version(self, versions: tuple[int, ...], verb: str) -> None:
        version = self.table_version
        if version not in versions:
            if version > max(versions):
                advice = "Use a newer release of PyHudi, or downgrade the table with Apache Hudi."
            elif version in READABLE_VERSIONS:
                advice = "Take it to a higher version first: HudiTable.open(path).maintenance.upgrade()."
            else:
                advice = "Upgrade the table with Apache Hudi (hoodie.write.auto.upgrade) first."
            raise UnsupportedTable(
                f"The table {self.table_name!r} has version {version}; this release of PyHudi {verb} versions "
                f"{', '.join(map(str, versions))}. {advice}"
            )
        if self.layout != self.format.layout:
            raise UnsupportedTable(
                f"The table {self.table_name!r} has version {version} and timeline layout {self.layout_version}, which "
                "do not belong together (layout 2 from version 8 on). An upgrade stopped half-way: finish it with Hudi."
            )

    def _partition_entries(self) -> tuple[str, ...]:
        return _names(self.properties.get("hoodie.table.partition.fields"))

    def _first(self, *keys: str) -> str | None:
        return next((self.properties[key] for key in keys if self.properties.get(key)), None)

    def _flag(self, key: str, default: bool) -> bool:
        text = self.properties.get(key)
        return default if text is None or not text.strip() else text.strip().lower() == "true"

    def _integer(self, key: str, default: int) -> int:
        text = self.properties.get(key)
        if text is None:
            return default
        try:
            return int(text)
        except ValueError:
            raise CorruptFile(
                f"hoodie.properties: expected a whole number for {key}, found {text!r}. Restore the file from "
                f"hoodie.properties.backup or correct the line."
            ) from None


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())
