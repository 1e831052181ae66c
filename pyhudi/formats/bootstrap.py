"""The bootstrap index: which source file has the data columns of a skeleton base file.

A bootstrap by metadata makes a table over existing files without copying them. Each source file gets a skeleton: a base
file with the meta columns alone, whose row n belongs to row n of the source. Skeletons have a fixed instant time.

    .hoodie/.aux/.bootstrap/.partitions/<name>.hfile    part=<partition>               → its file ids and source files
    .hoodie/.aux/.bootstrap/.fileids/<name>.hfile       part=<partition>;fileid=<id>   → the source file

Values are Avro containers. The source folder is named in `hoodie.properties`, and no source file may lie outside it.
Source: docs/formats/bootstrap.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pyhudi.errors import CorruptFile, PathNotFound, UnsupportedTable
from pyhudi.formats.avro.container import decode_container, encode_container
from pyhudi.formats.hfile.cached_reader import open_hfile
from pyhudi.formats.hfile.writer import HFileWriter
from pyhudi.formats.properties import PROPERTIES_BYTES_MAX, parse_properties
from pyhudi.model.filenames import AUXILIARY_FOLDER, PROPERTIES_PATH, SKELETON_TIME, data_path, may_be_skeleton
from pyhudi.storage import open_storage
from pyhudi.storage.base import Storage
from pyhudi.storage.file_cache import get_or_load
from pyhudi.storage.paths import inside

__all__ = [
    "BASE_PATH_KEY",
    "FILE_INDEX_PATH",
    "FULL_TIME",
    "PARTITION_INDEX_PATH",
    "SourceFile",
    "open_source",
    "read_index",
    "source_folder",
    "source_of",
    "source_uri",
    "write_index",
]

FULL_TIME = "00000000000002"
BASE_PATH_KEY = "hoodie.bootstrap.base.path"

_NAME = f"00000000-0000-0000-0000-000000000000-0_1-0-1_{SKELETON_TIME}.hfile"
PARTITION_INDEX_PATH = f"{AUXILIARY_FOLDER}/.bootstrap/.partitions/{_NAME}"
FILE_INDEX_PATH = f"{AUXILIARY_FOLDER}/.bootstrap/.fileids/{_NAME}"
_INDEX_INFO = "INDEX_INFO"
_ENABLED_KEY = "hoodie.bootstrap.index.enable"
_BLOCK_SIZE = 32 << 20  # Hadoop's for local files; readers split large files by it
_NAMESPACE = "org.apache.hudi.avro.model"


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A source file and the slice that it belongs to. `path` is relative to the source folder."""

    partition_path: str
    file_id: str
    source_partition: str
    path: str
    size_bytes: int = 0
    modified_ms: int = 0


def source_of(storage: Storage, path: str) -> SourceFile:
    """The source file of the skeleton at `path`. Raises CorruptFile when the index does not name it, or names a file
    outside the source folder; UnsupportedTable for a table whose index is switched off.
    """
    file_id = path.rpartition("/")[2].partition("_")[0]
    where = storage.full_path(FILE_INDEX_PATH)
    value = _entry(storage, path)
    if value is None:
        raise CorruptFile(
            f"{where}: expected the source file of {path!r}, which has meta columns only, found none. Restore the "
            "index from a copy of the table."
        )
    return _decoded(value, file_id, source_folder(storage), where)


def _entry(storage: Storage, path: str) -> bytes | None:
    """Return the index's value for the base file at `path`. Raises CorruptFile for a table without index."""
    partition_path, _, name = path.rpartition("/")
    key = f"part={partition_path};fileid={name.partition('_')[0]}".encode()
    where = storage.full_path(FILE_INDEX_PATH)
    try:
        with open_hfile(storage, FILE_INDEX_PATH, where) as index:
            return next((value for _, value in index.lookup([key])), None)
    except PathNotFound as error:
        raise CorruptFile(
            f"{where} is missing: {path!r} has meta columns only, and this index names the file with its other "
            f"columns. Restore the table's folder {AUXILIARY_FOLDER}/.bootstrap from a copy."
        ) from error


def delete_index(storage: Storage) -> None:
    """Delete the index, with the skeletons of a bootstrap that is undone."""
    for path in (FILE_INDEX_PATH, PARTITION_INDEX_PATH):
        storage.delete(path)


def read_index(storage: Storage) -> Iterator[SourceFile]:
    """Yield all entries, by partition and file id; none for a table without an index. Raises CorruptFile."""
    if storage.stat(FILE_INDEX_PATH) is None:
        return
    where, folder = storage.full_path(FILE_INDEX_PATH), source_folder(storage)
    with open_hfile(storage, FILE_INDEX_PATH, where) as index:
        for entries in index.scan():
            for row, key in enumerate(entries.keys):
                file_id = key.decode("utf-8", "replace").rpartition(";fileid=")[2]
                yield _decoded(entries.value(row), file_id, folder, where)


def source_folder(storage: Storage) -> str:
    """Return the folder of the source files, from `hoodie.properties`. Raises UnsupportedTable."""
    properties = get_or_load(
        storage,
        PROPERTIES_PATH,
        "bootstrap",
        lambda: parse_properties(storage.read(PROPERTIES_PATH, PROPERTIES_BYTES_MAX), PROPERTIES_PATH),
        lambda texts: sum(len(key) + len(text) for key, text in texts.items()),
    )
    folder = properties.get(BASE_PATH_KEY)
    if not folder:
        raise UnsupportedTable(
            f"{storage.root}: files of the table have meta columns only, but {BASE_PATH_KEY} does not name the folder "
            "with their other columns. Restore hoodie.properties from a copy."
        )
    if properties.get(_ENABLED_KEY, "true").strip().lower() == "false":
        raise UnsupportedTable(
            f"{storage.root}: {_ENABLED_KEY}=false, so nothing says where the columns of bootstrapped files are. Read "
            "the table with the engine that wrote it."
        )
    return folder


def open_source(storage: Storage, source: SourceFile) -> tuple[Storage, str]:
    """Open the storage of the source folder, with the table's options of the store, and the path in it."""
    return open_storage(source_folder(storage), dict(getattr(storage, "_options", ()))), source.path


def source_uri(storage: Storage, partition_path: str, name: str | None) -> str | None:
    """Return the URI of a skeleton's source file, as plans of table services name it; None for other base files."""
    if name is None or not may_be_skeleton(name):
        return None
    base_file = data_path(partition_path, name)
    if _entry(storage, base_file) is None:
        return None  # its rows were copied
    outside, path = open_source(storage, source_of(storage, base_file))
    return outside.full_path(path)


def _decoded(value: bytes, file_id: str, folder: str, where: str) -> SourceFile:
    body, _ = decode_container(value, where)
    status = body.get("bootstrapFileStatus")
    path = status.get("path") if isinstance(status, dict) else None
    uri = path.get("uri") if isinstance(path, dict) else None
    if not isinstance(uri, str) or not isinstance(status, dict):
        raise CorruptFile(
            f"{where}: the entry of {file_id!r:.100} names no source file. Restore the index from a copy."
        )
    base = _plain(folder).rstrip("/") + "/"
    if not _plain(uri).startswith(base):
        raise CorruptFile(
            f"{where}: the entry of {file_id!r:.100} names {uri!r:.300}, which is not in the source folder {folder!r} "
            f"({BASE_PATH_KEY}). Nothing was read; restore the index from a copy."
        )
    return SourceFile(
        _text(body.get("partitionPath")),
        file_id,
        _text(body.get("bootstrapPartitionPath")),
        inside(_plain(uri)[len(base) :], folder),
        _number(status.get("length")),
        _number(status.get("modificationTime")),
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _plain(uri: str) -> str:
    """Return the path of a URI: `file:/a`, `file:///a` and `/a` are equal, and so are `s3://b/a` and `s3a://b/a`."""
    scheme, colon, rest = uri.partition(":")
    if not colon or "/" in scheme:
        return uri
    return ("/" if scheme.lower() == "file" else "") + rest.lstrip("/")


# ---- writing ---------------------------------------------------------------------------------------------------------


def write_index(storage: Storage, folder: str, files: Iterable[SourceFile], now_ms: int) -> tuple[str, ...]:
    """Write both indexes; return their paths.

    Args:    folder: the source folder as `hoodie.properties` names it; files: in any order, all in memory.
    """
    source = open_storage(folder, dict(getattr(storage, "_options", ())))
    by_file = {f"part={file.partition_path};fileid={file.file_id}".encode(): file for file in files}
    partitions: dict[bytes, list[SourceFile]] = {}
    for file in by_file.values():
        partitions.setdefault(f"part={file.partition_path}".encode(), []).append(file)
    _write(
        storage, FILE_INDEX_PATH, folder, now_ms, len(by_file),
        ((key, encode_container(_FILE_SCHEMA, _file_body(by_file[key], source))) for key in sorted(by_file)),
    )  # fmt: skip
    _write(
        storage, PARTITION_INDEX_PATH, folder, now_ms, len(partitions),
        ((key, encode_container(_PARTITION_SCHEMA, _partition_body(partitions[key], source)))
         for key in sorted(partitions)),
    )  # fmt: skip
    storage.sync([FILE_INDEX_PATH, PARTITION_INDEX_PATH])
    return FILE_INDEX_PATH, PARTITION_INDEX_PATH


def _write(
    storage: Storage, path: str, folder: str, now_ms: int, keys: int, entries: Iterable[tuple[bytes, bytes]]
) -> None:
    info = {"version": 1, "bootstrapBasePath": folder, "createdTimestamp": now_ms, "numKeys": keys}
    with storage.open_output(path) as sink:
        writer = HFileWriter(sink, info={_INDEX_INFO: encode_container(_INFO_SCHEMA, info)}, created_ms=now_ms)
        writer.append(entries)
        writer.close()


def _file_body(file: SourceFile, source: Storage) -> dict[str, object]:
    return {
        "version": 1,
        "bootstrapPartitionPath": file.source_partition,
        "bootstrapFileStatus": _status(file, source),
        "partitionPath": file.partition_path,
    }


def _partition_body(files: list[SourceFile], source: Storage) -> dict[str, object]:
    return {
        "version": 1,
        "bootstrapPartitionPath": files[0].source_partition,
        "partitionPath": files[0].partition_path,
        "fileIdToBootstrapFile": {file.file_id: _status(file, source) for file in files},
    }


def _status(file: SourceFile, source: Storage) -> dict[str, object]:
    return {
        "version": 1,
        "path": {"version": 1, "uri": source.full_path(file.path)},
        "length": file.size_bytes,
        "isDir": False,
        "blockReplication": 1,
        "blockSize": _BLOCK_SIZE,
        "modificationTime": file.modified_ms,
        "accessTime": file.modified_ms,
        "permission": None,
        "owner": None,
        "group": None,
        "symlink": None,
    }


_Kind = str | dict[str, object] | list[object]


def _optional(kind: _Kind) -> list[object]:
    return ["null", kind]


def _record(name: str, **fields: _Kind) -> dict[str, object]:
    """Return a record with a version, and fields that may be null."""
    version: dict[str, object] = {"name": "version", "type": ["int", "null"], "default": 1}
    others = [{"name": field, "type": _optional(kind), "default": None} for field, kind in fields.items()]
    return {"type": "record", "name": name, "namespace": _NAMESPACE, "fields": [version, *others]}


_TEXT: _Kind = {"type": "string", "avro.java.string": "String"}
_PERMISSION = _record("HoodieFSPermission", userAction=_TEXT, groupAction=_TEXT, otherAction=_TEXT, stickyBit="boolean")
_STATUS = _record(
    "HoodieFileStatus",
    path=_record("HoodiePath", uri=_TEXT),
    length="long",
    isDir="boolean",
    blockReplication="int",
    blockSize="long",
    modificationTime="long",
    accessTime="long",
    permission=_PERMISSION,
    owner=_TEXT,
    group=_TEXT,
    symlink="HoodiePath",
)
_FILE_SCHEMA = json.dumps(
    _record(
        "HoodieBootstrapFilePartitionInfo",
        bootstrapPartitionPath=_TEXT,
        bootstrapFileStatus=_STATUS,
        partitionPath=_TEXT,
    )
)
_PARTITION_SCHEMA = json.dumps(
    _record(
        "HoodieBootstrapPartitionMetadata",
        bootstrapPartitionPath=_TEXT,
        partitionPath=_TEXT,
        fileIdToBootstrapFile={"type": "map", "values": _STATUS, "avro.java.string": "String"},
    )
)
_INFO_SCHEMA = json.dumps(
    _record("HoodieBootstrapIndexInfo", bootstrapBasePath=_TEXT, createdTimestamp="long", numKeys="int")
)
