"""The columns of tables of events, S3's and Google's, and which of the files that they name are read."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote_plus

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from pyhudi.errors import ConfigError
from pyhudi.model.keys import COMMIT_TIME
from pyhudi.model.options.streamer.aws import EventFilesOptions

__all__ = ["GCS", "S3", "FileChoice", "NotificationColumns"]

_FLAT = pa.schema(
    [
        (COMMIT_TIME, pa.string()), ("bucket", pa.string()), ("raw_key", pa.string()), ("key", pa.string()),
        ("size", pa.int64()), ("time", pa.string()), ("version", pa.string()),
    ]
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class NotificationColumns:
    """Where a table of events has what is needed, by names of columns and of fields in them.

    `scheme`: of URIs; "" where an option says it. `encodes_keys`: keys are encoded as in URLs. `versions`: what tells
    an event from others of its object.
    """

    scheme: str
    bucket: tuple[str, ...]
    key: tuple[str, ...]
    size: tuple[str, ...]
    time: tuple[str, ...]
    versions: tuple[tuple[str, ...], ...]
    encodes_keys: bool

    def read(self, names: Sequence[str], table: str) -> list[str]:
        """The columns of the table that are read. Raises ConfigError for a table that is none of events."""
        lacking = sorted({path[0] for path in (self.bucket, self.key, self.size)} - set(names))
        if lacking:
            raise ConfigError(
                f"{table} is no table of events: it has no column {', '.join(lacking)}. Name one that S3EventsSource, "
                "or Hudi's GcsEventsSource, has written."
            )
        paths = (self.bucket, self.key, self.size, self.time, *self.versions)
        return [name for name in dict.fromkeys(path[0] for path in paths) if name in names]

    def flat(self, rows: pa.Table) -> pa.Table:
        """The events as columns: bucket, key, size, time, and what tells an event from others."""
        raw = _field(rows, self.key).cast(pa.string())
        keys = raw
        if self.encodes_keys and pc.any(pc.match_substring_regex(raw, "[%+]")).as_py():
            keys = pa.chunked_array([pa.array([key and unquote_plus(key) for key in raw.to_pylist()], pa.string())])
        versions = [pc.fill_null(_field(rows, path).cast(pa.string()), "") for path in self.versions]
        columns = [
            rows[COMMIT_TIME].cast(pa.string()),
            _field(rows, self.bucket).cast(pa.string()),
            raw,
            keys,
            _field(rows, self.size).cast(pa.int64()),
            _field(rows, self.time).cast(pa.string()),
            pc.binary_join_element_wise(*versions, "\0"),
        ]
        return pa.Table.from_arrays(columns, schema=_FLAT)

    @staticmethod
    def none() -> pa.Table:
        """No events."""
        return _FLAT.empty_table()


S3 = NotificationColumns(
    "",
    ("s3", "bucket", "name"),
    ("s3", "object", "key"),
    ("s3", "object", "size"),
    ("eventTime",),
    (("s3", "object", "versionId"), ("s3", "object", "sequencer"), ("s3", "object", "eTag")),
    encodes_keys=True,
)
GCS = NotificationColumns(
    "gs", ("bucket",), ("name",), ("size",), ("updated",), (("generation",), ("md5Hash",)), encodes_keys=False
)


@dataclass(frozen=True, slots=True)
class FileChoice:
    """Which files are read, by their keys."""

    options: EventFilesOptions
    endings: tuple[str, ...]
    pattern: re.Pattern[str] | None

    @classmethod
    def of(cls, options: EventFilesOptions, *, has_csv_header: bool) -> FileChoice:
        """Raises ConfigError for options that don't go together."""
        header = has_csv_header
        if options.reader is not None:
            try:
                given = json.loads(options.reader)
                header = header or str(given.pop("header", "false")).lower() == "true"
            except (ValueError, AttributeError, TypeError) as error:
                raise ConfigError(
                    f"hoodie.streamer.source.cloud.data.datasource.options: expected a JSON object, found "
                    f"{options.reader!r:.200}: {error}."
                ) from error
            if given:
                raise ConfigError(
                    f"hoodie.streamer.source.cloud.data.datasource.options: {', '.join(sorted(given))}: only header is "
                    "done here; the others are of Spark's readers."
                )
        if options.format == "csv" and not header:
            raise ConfigError(
                "hoodie.streamer.source.cloud.data.datafile.format=csv reads files whose first line has the columns: "
                'add hoodie.streamer.source.cloud.data.datasource.options={"header": "true"}. Files without one can\'t '
                "be read yet."
            )
        pattern = None
        if options.pattern:
            prefix = options.prefix or ""
            text = f"{prefix}{'' if not prefix or prefix.endswith('/') else '/'}{options.pattern}"
            try:
                pattern = re.compile(text)
            except re.error as error:
                raise ConfigError(
                    f"hoodie.streamer.source.cloud.data.select.relative.path.regex: {text!r:.200}: {error}."
                ) from error
        return cls(options, options.endings or (options.format,), pattern)

    def of_events(self, events: pa.Table) -> pa.Table:
        """The events of files to read. Objects without bytes, such as marks of folders, are none."""
        keys, options = events["key"], self.options
        chosen = pc.greater(events["size"], 0)
        endings = "|".join(map(re.escape, self.endings))
        chosen = pc.and_(chosen, pc.match_substring_regex(keys, f"(?:{endings})$"))
        if self.pattern is not None:
            found = [key is not None and self.pattern.search(key) is not None for key in keys.to_pylist()]
            chosen = pc.and_(chosen, pa.chunked_array([pa.array(found, pa.bool_())]))
        elif options.prefix:
            chosen = pc.and_(chosen, pc.starts_with(keys, options.prefix))
        if options.ignored_prefix:
            chosen = pc.and_(chosen, pc.invert(pc.starts_with(keys, options.ignored_prefix)))
        if options.ignored_part:
            chosen = pc.and_(chosen, pc.invert(pc.match_substring(keys, options.ignored_part)))
        return events.filter(chosen)


def _field(rows: pa.Table, path: Sequence[str]) -> pa.ChunkedArray:
    """A field of a column, nulls where the table has none of this name."""
    if path[0] not in rows.schema.names:
        return pa.chunked_array([pa.nulls(rows.num_rows, pa.string())])
    array = rows[path[0]]
    for name in path[1:]:
        if not pt.is_struct(array.type) or array.type.get_field_index(name) < 0:
            return pa.chunked_array([pa.nulls(rows.num_rows, pa.string())])
        array = pc.struct_field(array, name)
    return array
