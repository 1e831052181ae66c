"""`ArrowStorage`: a table on S3, Google Cloud Storage, Azure or HDFS, through pyarrow.fs.

Object stores replace whole objects, so `write` is atomic there. pyarrow.fs has no conditional put: `create_new` goes
through obstore (extra `pyhudi[aws]`, `[gcs]`, `[azure]`). On HDFS it uses a rename, which HDFS refuses when the name
exists.

`open_object_stream` writes an object as a stream; the object appears only when the stream is closed. It is for Azure:
pyarrow's stream empties the old object when it opens, so a dead writer would leave an empty file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar, cast

import pyarrow as pa
import pyarrow.fs as pafs

from pyhudi.errors import ConfigError, PathExists, PathNotFound
from pyhudi.storage.base import READ_BYTES_MAX, AlwaysSynced, FileInfo, check_size
from pyhudi.storage.clock import SystemClock
from pyhudi.storage.paths import (
    TEMPORARY_PREFIX,
    TEMPORARY_SUFFIX,
    check_no_credentials,
    child,
    inside,
    is_temporary,
    parent,
)
from pyhudi.storage.stores.connection import (
    OBJECT_STORES,
    ObjectStore,
    connect,
    delete_files,
    find_object_store,
    find_store_of_deletes,
    open_object_store,
    shown_error,
    shown_store_error,
    text_options,
)
from pyhudi.storage.stores.gcs_listing import entries_of_walk, list_by_store
from pyhudi.storage.waiting import answer_of, change_by, timeout_s

__all__ = ["ArrowStorage", "open_object_stream"]


Answer = TypeVar("Answer")


def open_object_stream(api: ObjectStore, path: str, where: str) -> pa.NativeFile:
    """Open a sink for pyarrow, whose calls raise StorageError."""
    return pa.PythonFile(_ObjectStream(api, path, where), mode="w")  # type: ignore[arg-type]  # its methods are enough


class _ObjectStream:
    """pyarrow's file interface over obstore's writer, which sends an object in parts and joins them at the end."""

    def __init__(self, api: ObjectStore, path: str, where: str) -> None:
        self._exceptions, self._where = api.exceptions, where
        self._writer = self._call(lambda: api.module.open_writer(api.store, path))
        self.closed = False

    def write(self, data: bytes | memoryview) -> int:
        content = memoryview(data).cast("B")
        return int(self._call(lambda: self._writer.write(content)))

    def flush(self) -> None:
        """Do nothing: parts are sent when they are full."""

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._call(self._writer.close)

    def _call(self, act: Callable[[], Answer]) -> Answer:
        try:
            return change_by(act, self._where)
        except (self._exceptions.BaseError, OSError) as error:
            raise shown_store_error(self._where, error) from shown_error(error)


# Minimum number of entries in one response of the store; longer listings take several requests.
_PAGES = {"s3": 1000, "gcs": 1000, "abfs": 1000, "hdfs": 1000}
_OF_PUT = "pyhudiput"  # metadata of an empty object: identifies the put that made it
_SPARK_SCHEMES = {"s3": "s3a", "s3n": "s3a"}  # Hadoop reads S3 only through s3a


@dataclass(frozen=True, init=False)
class ArrowStorage(AlwaysSynced):
    """The table at `uri`.

    Args: `options`: Hadoop's keys for the store (docs/storage.md lists them); without them the store's environment
              variables and profiles are used. `filesystem`: use this one (rooted at the table) instead of making one.
    """

    root: str
    _options: tuple[tuple[str, str], ...] = field(repr=False)
    _filesystem: pafs.FileSystem = field(repr=False, compare=False)
    _base: str = field(repr=False)
    _asked: list[bool] = field(repr=False, compare=False)  # empty until the store has answered once
    _timeout_s: float | None = field(repr=False, compare=False)

    def __init__(
        self, uri: str, options: Mapping[str, str] | None = None, filesystem: pafs.FileSystem | None = None
    ) -> None:
        check_no_credentials(uri)
        texts = text_options(options or {})
        base = ""
        if filesystem is None:
            filesystem, base = connect(uri, texts)
        object.__setattr__(self, "root", uri.rstrip("/"))
        object.__setattr__(self, "_options", tuple(sorted(texts.items())))
        object.__setattr__(self, "_filesystem", filesystem)
        object.__setattr__(self, "_base", base.rstrip("/"))
        object.__setattr__(self, "_asked", [])
        object.__setattr__(self, "_timeout_s", timeout_s(texts))

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_asked": []}  # a copy logs in again

    @property
    def listed_at_once(self) -> int:
        return _PAGES.get(self._filesystem.type_name, 0)

    def full_path(self, path: str) -> str:
        scheme, _, rest = self.root.partition("://")
        return child(f"{_SPARK_SCHEMES.get(scheme, scheme)}://{rest}", inside(path, self.root))

    def read(self, path: str, limit_bytes: int = READ_BYTES_MAX) -> bytes:
        with self.open_input(path) as file, self._translate_errors(path):
            check_size(file.size(), limit_bytes, self.full_path(path))
            try:
                return bytes(answer_of(file.read, self.full_path(path), self._timeout_s))
            except OSError as error:
                if self._infos([self._at(path)], path)[0].type is not pafs.FileType.NotFound:
                    raise
                # Deleted since it was opened. S3's error response may be longer than the object; PyArrow then has no
                # room for it and can't read it.
                raise FileNotFoundError(path) from error

    def open_input(self, path: str) -> pa.NativeFile:
        with self._translate_errors(path):
            if not self._asked and self._filesystem.type_name == "abfs":
                # PyArrow aborts the process if it gets no token while it opens a file. This request fails without that.
                self._infos([self._at(path)], path)
                self._asked.append(True)
            open_file = partial(self._filesystem.open_input_file, self._at(path))
            return answer_of(open_file, self.full_path(path), self._timeout_s)

    def open_output(self, path: str) -> pa.NativeFile:
        inside(path, self.root)
        if self._filesystem.type_name == "abfs":
            api = open_object_store(self.root, self._options, "abfs")
            return open_object_stream(api, path, self.full_path(path))
        with self._translate_errors(path):
            self._make_parent(path)
            return self._changed(path, partial(self._filesystem.open_output_stream, self._at(path)))

    def write(self, path: str, data: bytes) -> None:
        if self._filesystem.type_name in OBJECT_STORES:
            # A stream of pyarrow that fails half-way is completed in that state when it is closed or dropped.
            self._put(path, data, "overwrite")
            return
        with self._translate_errors(path), self.open_output(path) as file:
            file.write(data)

    def create_new(self, path: str, data: bytes) -> None:
        inside(path, self.root)
        kind = self._filesystem.type_name
        with self._translate_errors(path):
            if kind in OBJECT_STORES:
                self._put(path, data, "create")
            elif kind == "hdfs":
                self._rename_if_absent(path, data)
            else:
                raise ConfigError(
                    f"{self.root}: a {kind!r} file system of pyarrow can't create a file exclusively, so it can be "
                    f"read but not written. Name a local folder by its plain path."
                )

    def list(self, path: str) -> tuple[FileInfo, ...]:
        if self._filesystem.type_name == "gcs":
            return self._list_gcs(path)
        selector = pafs.FileSelector(self._at(path), allow_not_found=True)
        with self._translate_errors(path):
            entries = self._infos(selector, path)
        return _visible_entries(_file_info(child(path, entry.base_name), entry) for entry in entries)

    def walk(self, path: str) -> Iterator[FileInfo]:
        selector = pafs.FileSelector(self._at(path), allow_not_found=True, recursive=True)
        with self._translate_errors(path):
            entries = self._infos(selector, path)
        start = len(self._at(path)) + 1 if self._at(path) else 0
        for entry in entries:
            if entry.type is pafs.FileType.File and not is_temporary(entry.base_name):
                yield _file_info(child(path, entry.path[start:]), entry)

    def stat(self, path: str) -> FileInfo | None:
        with self._translate_errors(path):
            (entry,) = self._infos([self._at(path)], path)
        return None if entry.type is pafs.FileType.NotFound else _file_info(path, entry)

    def delete(self, path: str) -> bool:
        if self.stat(path) is None:
            return False
        if api := find_store_of_deletes(self.root, self._options, self._filesystem.type_name):
            self._changed(path, partial(delete_files, api, [path], self.full_path(path)))
            return True
        with self._translate_errors(path):
            try:
                self._changed(path, partial(self._filesystem.delete_file, self._at(path)))
            except FileNotFoundError:  # another process was faster
                return False
        return True

    def delete_tree(self, path: str) -> None:
        inside(path, self.root)
        kind = self._filesystem.type_name
        if api := find_store_of_deletes(self.root, self._options, kind):
            paths = [info.path for info in self.walk(path)]
            self._changed(path, partial(delete_files, api, paths, self.full_path(path)))
            if not path or self.stat(path) is None:
                return
        elif kind == "abfs":  # one by one: pyarrow, too, would send a batch request; an empty folder may stay
            for info in self.walk(path):
                self.delete(info.path)
            return
        with self._translate_errors(path):  # real folders: markers of other writers, Azure's, HDFS's
            where = self._at(path)
            empties = partial(self._filesystem.delete_dir_contents, accept_root_dir=not where, missing_dir_ok=True)
            self._changed(path, partial(empties, where))
            if path and kind != "gcs" and self.stat(path) is not None:
                self._changed(path, partial(self._filesystem.delete_dir, where))

    def copy_file(self, source: str, target: str) -> None:
        """Copy a file. Object stores copy it on the server."""
        inside(source, self.root)
        with self._translate_errors(target):
            self._make_parent(target)
            self._changed(target, partial(self._filesystem.copy_file, self._at(source), self._at(target)))

    def check_deletable(self, path: str) -> None:
        """Do nothing: no store can check beforehand."""

    def make_folder(self, path: str) -> None:
        inside(path, self.root)
        if self._filesystem.type_name not in OBJECT_STORES:
            with self._translate_errors(path):
                self._changed(path, partial(self._filesystem.create_dir, self._at(path), recursive=True))

    def set_modified(self, path: str, modified_ms: int) -> None:
        """Do nothing: neither object stores nor pyarrow.fs support it."""

    def _infos(self, selector: pafs.FileSelector | Sequence[str], path: str) -> Sequence[pafs.FileInfo]:
        """Ask the store for information on paths, or on a folder's entries."""
        asks = cast("Callable[[], Sequence[pafs.FileInfo]]", partial(self._filesystem.get_file_info, selector))  # type: ignore[arg-type]
        return answer_of(asks, self.full_path(path), self._timeout_s)

    def _changed(self, path: str, change: Callable[[], Answer]) -> Answer:
        return change_by(change, self.full_path(path))

    def _at(self, path: str) -> str:
        inside(path, self.root)
        return child(self._base, path) if path else self._base

    def _make_parent(self, path: str) -> None:
        folder = parent(path)
        if folder:
            self.make_folder(folder)

    def _put(self, path: str, data: bytes, mode: str) -> None:
        """Put an object atomically, even a large one that is sent in parts."""
        inside(path, self.root)
        api = open_object_store(self.root, self._options, self._filesystem.type_name)
        # An empty object can't be recognised by its bytes.
        mark = None if data or mode == "overwrite" else {_OF_PUT: SystemClock().new_uuid()}
        try:
            self._changed(path, partial(api.module.put, api.store, path, data, mode=mode, attributes=mark))
        except api.exceptions.AlreadyExistsError as error:
            # When the answer to a put is lost, the client repeats it, and finds its own object.
            is_ours = self.read(path) == data if mark is None else self._has_mark(path, mark, api)
            if not is_ours:
                raise PathExists(f"{self.full_path(path)} exists already.") from error
        except (api.exceptions.BaseError, OSError) as error:
            raise shown_store_error(self.full_path(path), error) from shown_error(error)

    def _has_mark(self, path: str, mark: Mapping[str, str], api: ObjectStore) -> bool:
        try:
            asks = partial(api.module.get, api.store, path)
            attributes = answer_of(asks, self.full_path(path), self._timeout_s).attributes
        except (api.exceptions.BaseError, OSError):
            return False
        return mark.items() <= dict(attributes).items()

    def _list_gcs(self, path: str) -> tuple[FileInfo, ...]:
        inside(path, self.root)
        api, place = find_object_store(self.root, self._options, "gcs"), self.full_path(path)
        if api is None:
            infos = entries_of_walk(path, self.walk(path))
        else:
            infos = answer_of(partial(list_by_store, api, path, place), place, self._timeout_s)
        return _visible_entries(infos)

    def _rename_if_absent(self, path: str, data: bytes) -> None:
        if self.stat(path) is not None:
            raise PathExists(f"{self.full_path(path)} exists already.")
        temporary = child(parent(path), f"{TEMPORARY_PREFIX}{SystemClock().new_uuid()}{TEMPORARY_SUFFIX}")
        self.write(temporary, data)
        try:
            self._changed(path, partial(self._filesystem.move, self._at(temporary), self._at(path)))
        except OSError as error:
            self.delete(temporary)
            if self.stat(path) is not None:
                raise PathExists(f"{self.full_path(path)} exists already.") from error
            raise

    @contextmanager
    def _translate_errors(self, path: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            raise PathNotFound(f"{self.full_path(path)} does not exist.") from shown_error(error)
        except FileExistsError as error:
            raise PathExists(f"{self.full_path(path)} exists already.") from shown_error(error)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise shown_store_error(self.full_path(path), error) from shown_error(error)


def _visible_entries(infos: Iterable[FileInfo]) -> tuple[FileInfo, ...]:
    """Return the entries of a listing, sorted by name, without half-written files."""
    return tuple(sorted((i for i in infos if i.is_dir or not is_temporary(i.name)), key=lambda info: info.name))


def _file_info(path: str, entry: pafs.FileInfo) -> FileInfo:
    is_dir = entry.type is pafs.FileType.Directory
    return FileInfo(path, 0 if is_dir else entry.size or 0, (entry.mtime_ns or 0) // 1_000_000, is_dir)
