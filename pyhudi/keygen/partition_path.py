"""Partition paths: text of the partition fields, the default for missing values, URL encoding, hive style, in this
order.

Made over the distinct values of a column, since partitions are few. A path that would leave the table's folder, or go
into its `.hoodie` folder, is refused, though Hudi accepts it. Source: docs/formats/keys.md, "Partition paths".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import KeyGenError
from pyhudi.java.key_text import text_of
from pyhudi.keygen.base import read_field
from pyhudi.model.filenames import META_FOLDER, PARTITION_METADATA_NAME
from pyhudi.model.keys import HIVE_DEFAULT_PARTITION

__all__ = [
    "PLAIN",
    "PathStyle",
    "check_folders",
    "check_path",
    "constant_path",
    "join_parts",
    "place",
    "url_decode",
    "url_encode",
    "value_part",
]

# U+0001 to U+001F, U+007F and these; everything else stays, also blanks and all of Unicode.
_ESCAPED = re.compile("[\x01-\x1f\x7f\"#%'*/:=?\\\\{\\[\\]^]")
_ESCAPE = re.compile("%([0-9A-Fa-f]{2})")


@dataclass(frozen=True, slots=True)
class PathStyle:
    """The rules that turn a value into a folder name."""

    hive_style: bool = False  # <field>=<value>
    url_encode: bool = False
    slash_dates: bool = False  # every "-" of the value becomes "/"; with a single partition field only
    consistent_timestamps: bool = False

    def decorate(self, field: str, text: str | None) -> str:
        """Return the path of one value; null and "" give the default partition."""
        path = text or HIVE_DEFAULT_PARTITION
        if self.url_encode:
            path = url_encode(path)
        if self.slash_dates:
            path = path.replace("-", "/")
        return f"{field}={path}" if self.hive_style else path


PLAIN = PathStyle()


def url_encode(text: str) -> str:
    """Escape as Hive does: `%` and two upper-case hex digits."""
    return _ESCAPED.sub(lambda match: f"%{ord(match.group()):02X}", text)


def url_decode(text: str) -> str:
    """Undo url_encode: every `%XX` is one character; a `%` without two hex digits stays."""
    return _ESCAPE.sub(lambda match: chr(int(match.group(1), 16)), text)


def value_part(batch: pa.RecordBatch, field: str, style: PathStyle, first_row: int = 0) -> pa.Array:
    """Return paths from the text of one field. A field that the data lacks gives the default partition, as in Hudi."""
    column = read_field(batch, field)
    if column is None:
        return constant_path(style.decorate(field, None), batch.num_rows)
    if pa.types.is_nested(column.type) or pa.types.is_floating(column.type) or pa.types.is_dictionary(column.type):
        # Equal values may have different texts (0.0 and -0.0), or Arrow has no distinct values of the type.
        column = text_of(column, consistent_timestamps=style.consistent_timestamps, field=field)
    encoded = column.dictionary_encode()
    texts = text_of(encoded.dictionary, consistent_timestamps=style.consistent_timestamps, field=field)
    paths = [style.decorate(field, text) for text in texts.to_pylist()]
    return place(encoded.indices, paths, style.decorate(field, None), field, first_row)


def place(indices: pa.Array, paths: Sequence[str], null_path: str, field: str, first_row: int = 0) -> pa.Array:
    """Return the paths of the rows from those of the distinct values; `indices`: null where the value is null.

    Raises KeyGenError for a path that leaves the folder, naming its first row.
    """
    for number, path in enumerate(paths):
        problem = check_path(path)
        if problem:
            row = pc.index(indices, pa.scalar(number, indices.type)).as_py()
            if row >= 0:
                raise KeyGenError(
                    f"Row {first_row + row} (counted from 0 in its partition): partition field {field!r} gives the "
                    f"path {path!r}, which {problem}. Correct the value, or turn on "
                    f"hoodie.datasource.write.partitionpath.urlencode when its slashes are not meant as folders."
                )
    placed = pa.array(paths, pa.string()).take(indices)
    return placed.fill_null(null_path) if placed.null_count else placed


def check_path(path: str) -> str | None:
    """Return the fault of a partition path, None if it stays in the table's folder and out of `.hoodie`."""
    if path.startswith("/"):
        return "starts with a slash and so leaves the table's folder"
    segments = path.split("/")
    if ".." in segments:
        return "has a segment '..' and so leaves its folder"
    if ".hoodie" in (next((s for s in segments if s not in ("", ".")), ""),):
        return "lies in the table's own .hoodie folder"
    if "\x00" in path:
        return "holds a NUL character"
    return None


def check_folders(paths: pa.Array) -> None:
    """Refuse paths whose folder would not be found again. Raises KeyGenError with the path.

    `a//b` and `a/` would be stored in `a/b` and `a`. Apache Hudi writes such rows, and its readers find them, but a
    listing finds other paths than the rows name. Hudi's listing skips folders named `.hoodie` on every level, and
    mistakes a folder whose name begins like the partition metadata file for that file.
    """
    for path in cast("list[str]", pc.unique(paths).to_pylist()):
        reserved = next((segment for segment in path.split("/") if _is_reserved(segment)), None)
        if reserved is not None:
            raise KeyGenError(
                f"The partition path {path!r} has a segment {reserved!r}, a name that tables use for their own files, "
                "so its rows would not be found again. Correct the values of the partition fields; in a new table "
                "hoodie.datasource.write.hive_style_partitioning=true puts the field's name before them. Nothing was "
                "written."
            )
        if path and not {"", "."}.isdisjoint(path.split("/")):
            raise KeyGenError(
                f"The partition path {path!r} has an empty segment or a segment '.', so its folder would have another "
                "name than the path that the rows carry, and their keys would not be found again. Correct the values "
                "of the partition fields; in a new table hoodie.datasource.write.partitionpath.urlencode=true keeps "
                "slashes as part of the value. Nothing was written."
            )


def _is_reserved(segment: str) -> bool:
    """True for a name that no folder of a partition may have."""
    return segment == META_FOLDER or segment.startswith(PARTITION_METADATA_NAME)


def constant_path(path: str, rows: int) -> pa.Array:
    """Return one path for all rows."""
    return pa.repeat(pa.scalar(path, pa.string()), rows)


def join_parts(parts: Sequence[pa.Array], rows: int) -> pa.Array:
    """Return parts joined with "/"; no parts give the empty path."""
    if not parts:
        return constant_path("", rows)
    return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, "/")
