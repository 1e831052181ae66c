"""The object stores behind ArrowStorage, for two clients: pyarrow.fs, and obstore for conditional puts.

Both use the same location with the same credentials. Hadoop's keys are described in the file of each store.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, Protocol, TypeAlias, cast

import pyarrow as pa
import pyarrow.fs as pafs

from pyhudi.errors import ConfigError, StorageError
from pyhudi.redaction import is_text, quoted, without_credentials
from pyhudi.storage.base import ClientArguments
from pyhudi.storage.paths import child
from pyhudi.storage.stores.azure import AzurePlace, azure_arguments, azure_store_arguments, deletes_many_at_once
from pyhudi.storage.stores.gcs import gcs_arguments, gcs_retry_time, gcs_store_arguments
from pyhudi.storage.stores.s3 import s3_arguments, s3_store_arguments
from pyhudi.storage.waiting import timeout_s

if TYPE_CHECKING:
    from obstore.store import AzureStore, GCSStore, S3Store

    from pyhudi.storage.base import Storage

    Store: TypeAlias = AzureStore | GCSStore | S3Store

__all__ = [
    "OBJECT_STORES",
    "ObjectStore",
    "connect",
    "delete_files",
    "find_object_store",
    "find_store_of_deletes",
    "object_store",
    "open_object_store",
    "shown_error",
    "shown_store_error",
    "text_options",
]

_NO_TOKEN = "AuthenticationException"  # of Azure's client in C++
_LINE_END = "\n"
_ANSWER = re.compile(r"<(Code|Message)>([^<]*)</")  # of a store's answer, which is XML
_NO_BUCKET = frozenset({"NoSuchBucket", "ContainerNotFound"})
_ENDPOINTS = frozenset({"fs.s3a.endpoint", "fs.gs.storage.root.url", "fs.azure.abfs.endpoint"})
_ENDPOINT = re.compile(r"(?:https?://)?(?:[\w.-]+|\[[\da-fA-F:.]+\])(?::\d{1,5})?(?:/[\w./-]*)?")

OBJECT_STORES: Mapping[str, str] = {"s3": "aws", "gcs": "gcs", "abfs": "azure"}  # pyarrow's type name → our extra


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """A store rooted at the table, obstore's module, and its module of exceptions."""

    store: Store
    module: ModuleType
    exceptions: ModuleType


class _WithOptions(Protocol):
    """The part of an ArrowStorage that opening its store needs."""

    _options: tuple[tuple[str, str], ...]


def object_store(storage: Storage) -> ObjectStore | None:
    """The object store of an ArrowStorage, None when its file system is not an object store. Raises ConfigError without
    obstore.
    """
    kind = getattr(getattr(storage, "_filesystem", None), "type_name", "")
    if kind not in OBJECT_STORES:
        return None
    return open_object_store(storage.root, cast("_WithOptions", storage)._options, kind)


def open_object_store(uri: str, options: tuple[tuple[str, str], ...], kind: str) -> ObjectStore:
    """Open the store for a URI. Raises ConfigError when obstore is not installed."""
    store = find_object_store(uri, options, kind)
    if store is None:
        raise ConfigError(
            f"{uri}: writing needs puts that refuse an existing object, which pyarrow can't do. Install the extra "
            f"`pyhudi[{OBJECT_STORES[kind]}]` (package obstore); reading works without."
        )
    return store


def find_object_store(uri: str, options: tuple[tuple[str, str], ...], kind: str) -> ObjectStore | None:
    """Find the store for a URI, None when obstore is not installed."""
    try:
        obstore = importlib.import_module("obstore")
        stores = importlib.import_module("obstore.store")
        exceptions = importlib.import_module("obstore.exceptions")
    except ImportError:
        return None
    try:
        return ObjectStore(_open_store(stores, kind, uri, options), obstore, exceptions)
    except (exceptions.BaseError, OSError, ValueError, TypeError) as error:
        raise shown_store_error(uri, error) from shown_error(error)


def delete_files(api: ObjectStore, paths: Sequence[str], where: str) -> None:
    """Delete objects, many with one request; missing ones are no error. Raises StorageError."""
    try:
        try:
            api.module.delete(api.store, paths)
        except (api.exceptions.NotFoundError, FileNotFoundError):  # one is missing, the others were not deleted
            for path in paths:
                with suppress(api.exceptions.NotFoundError, FileNotFoundError):
                    api.module.delete(api.store, path)
    except (api.exceptions.BaseError, OSError) as error:
        raise shown_store_error(where, error) from shown_error(error)


def shown_error(error: Exception) -> Exception:
    """Redact an error if an address in it holds a credential, such as the signed ones of Azure's client."""
    text = str(error)
    clean = without_credentials(text)
    return error if clean == text else OSError(clean)


def shown_store_error(where: str, error: Exception) -> StorageError:
    """Return a client's error about a path, shortened to its first part, with advice if the login failed."""
    text = str(error)
    if _NO_TOKEN in text:
        return StorageError(
            f"{where}: Azure's client found no credentials, or they gave no token. Give fs.azure.account.key, "
            f"fs.azure.sas.fixed.token or fs.azure.account.oauth2.client.id with .secret and .endpoint, or "
            f"AZURE_STORAGE_ACCOUNT_KEY and its like in the environment; docs/storage.md lists them."
        )
    answer = dict(_ANSWER.findall(text))
    if answer.get("Code") in _NO_BUCKET:
        bucket = where.partition("://")[2].partition("/")[0]
        return StorageError(
            f"{where}: the store has no bucket '{bucket}'. Make it, or correct the path, or the endpoint of the store."
        )
    line = text.partition(_LINE_END)[0].partition("<")[0].rstrip(" :")
    reason = ": ".join(filter(None, [line, *answer.values()]))
    return StorageError(f"{where}: the store refused: {reason}")


def text_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options. Raises ConfigError for values that are not text (never shown) and for invalid addresses."""
    for key, value in options.items():
        if not isinstance(key, str) or not isinstance(value, str) or not is_text(key + value):
            kind = type(value if isinstance(key, str) else key).__name__
            raise ConfigError(
                f"The option '{quoted(str(key))}' of the store: expected text, found {kind}, or text with half of a "
                f"UTF-16 pair. Give keys and values as text."
            )
        if key in _ENDPOINTS and value and _ENDPOINT.fullmatch(value) is None:
            raise ConfigError(
                f"{key}={quoted(value)}: expected a host, with http:// or https:// before it or a port behind it, and "
                f"without a user."
            )
    return dict(options)


def find_store_of_deletes(uri: str, options: tuple[tuple[str, str], ...], kind: str) -> ObjectStore | None:
    """Find obstore's client for deletes if pyarrow's would make an empty object for a deleted file's folder."""
    if kind == "s3" or (kind == "abfs" and deletes_many_at_once(dict(options), AzurePlace.of(uri))):
        return find_object_store(uri, options, kind)
    return None


@lru_cache(maxsize=64)
def _open_store(stores: ModuleType, kind: str, uri: str, options: tuple[tuple[str, str], ...]) -> Store:
    """Open a store without obstore's `from_url`, which, unlike pyarrow and Hadoop, decodes "%" and cuts at "?", "#"."""
    settings = dict(options)
    if kind == "abfs":
        place = AzurePlace.of(uri)
        arguments = _with_time_limit(azure_store_arguments(settings, place), settings)
        store: Store = stores.AzureStore(place.container, prefix=place.path or None, **arguments)
        return store
    bucket, _, prefix = uri.partition("://")[2].partition("/")
    if kind == "gcs":
        arguments = {**gcs_store_arguments(settings), "retry_config": {"retry_timeout": gcs_retry_time(settings)}}
        store = stores.GCSStore(bucket, prefix=prefix or None, **_with_time_limit(arguments, settings))
    else:
        store = stores.S3Store(
            bucket, prefix=prefix or None, **_with_time_limit(s3_store_arguments(settings), settings)
        )
    return store


def _with_time_limit(arguments: ClientArguments, options: Mapping[str, str]) -> ClientArguments:
    """Return the arguments of obstore's client with the options' time limit, for calls that change the store."""
    limit_s = timeout_s(options)
    if limit_s is None:
        return arguments
    limit = timedelta(seconds=limit_s)
    client_options = {**arguments.get("client_options", {}), "timeout": limit, "connect_timeout": limit}
    return {**arguments, "client_options": client_options, "retry_config": {"retry_timeout": limit}}


def connect(uri: str, options: Mapping[str, str]) -> tuple[pafs.FileSystem, str]:
    """Return the file system behind a URI, and the table's path in it. Raises ConfigError, StorageError."""
    try:
        return _connect_cached(uri, options)
    except (OSError, ValueError, OverflowError, TypeError, pa.ArrowException) as error:
        if re.search(r"libjvm|libhdfs", str(error)):
            raise ConfigError(
                f"{uri}: hdfs:// needs Hadoop's native library and Java on this machine; PyArrow did not find them. "
                f"Install Hadoop's client, and set JAVA_HOME, HADOOP_HOME (or ARROW_LIBHDFS_DIR) and CLASSPATH, as "
                f"`hadoop classpath --glob` prints it."
            ) from error
        raise shown_store_error(uri, error) from shown_error(error)


def _connect_cached(uri: str, options: Mapping[str, str]) -> tuple[pafs.FileSystem, str]:
    scheme, _, rest = uri.partition("://")
    scheme = scheme.lower()
    if scheme in ("s3", "s3a", "s3n"):
        return pafs.S3FileSystem(**s3_arguments(options)), rest
    if scheme == "gs":
        return pafs.GcsFileSystem(**gcs_arguments(options), retry_time_limit=gcs_retry_time(options)), rest
    if scheme in ("abfs", "abfss"):
        place = AzurePlace.of(uri)
        return pafs.AzureFileSystem(**azure_arguments(options, place)), child(place.container, place.path)
    host, _, path = rest.partition("/")
    name, _, port = host.partition(":")
    return pafs.HadoopFileSystem(name or "default", int(port or 0)), f"/{path}"
