"""The object stores behind ArrowStorage as obstore sees them: for puts with conditions, which pyarrow.fs has not.

Hadoop's options (`fs.s3a.*`) become those of the two clients here.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pyhudi.errors import ConfigError

__all__ = [
    "OBJECT_STORES",
    "ObjectStore",
    "first_line",
    "object_store",
    "obstore_arguments",
    "open_object_store",
    "s3_arguments",
]

OBJECT_STORES: Mapping[str, str] = {"s3": "aws", "gcs": "gcs", "abfs": "azure"}  # pyarrow's type name → our extra


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """A store rooted at the table, obstore's module, and its module of exceptions."""

    store: Any
    module: Any
    exceptions: Any


def object_store(storage: Any) -> ObjectStore | None:
    """The object store of an ArrowStorage, None when its file system is none. Raises ConfigError without obstore."""
    kind = getattr(getattr(storage, "_filesystem", None), "type_name", "")
    return open_object_store(storage.root, storage._options, kind) if kind in OBJECT_STORES else None


def open_object_store(uri: str, options: tuple[tuple[str, str], ...], kind: str) -> ObjectStore:
    """The store for a URI. Raises ConfigError when obstore is not installed."""
    try:
        obstore = importlib.import_module("obstore")
        stores = importlib.import_module("obstore.store")
        exceptions = importlib.import_module("obstore.exceptions")
    except ImportError as error:
        raise ConfigError(
            f"{uri}: writing needs puts that refuse an existing object, which pyarrow can't do. Install the extra "
            f"`pyhudi[{OBJECT_STORES[kind]}]` (package obstore); reading works without."
        ) from error
    return ObjectStore(_opened(stores.from_url, uri, options), obstore, exceptions)


def first_line(error: Exception) -> str:
    """What a client says before its long story."""
    return str(error).partition("\n")[0]


@lru_cache(maxsize=64)
def _opened(from_url: Callable[..., Any], uri: str, options: tuple[tuple[str, str], ...]) -> Any:
    return from_url(uri, **obstore_arguments(dict(options)))


def s3_arguments(options: Mapping[str, str]) -> dict[str, Any]:
    """Hadoop's options as arguments of pyarrow's S3FileSystem."""
    endpoint = options.get("fs.s3a.endpoint")
    arguments: dict[str, Any] = {
        "access_key": options.get("fs.s3a.access.key"),
        "secret_key": options.get("fs.s3a.secret.key"),
        "session_token": options.get("fs.s3a.session.token"),
        "region": options.get("fs.s3a.endpoint.region"),
    }
    if endpoint:
        scheme, separator, host = endpoint.rpartition("://")
        secure = options.get("fs.s3a.connection.ssl.enabled", "true").lower() == "true"
        arguments["endpoint_override"] = host
        arguments["scheme"] = scheme if separator else ("https" if secure else "http")
        arguments["force_virtual_addressing"] = options.get("fs.s3a.path.style.access", "true").lower() == "false"
    return {name: value for name, value in arguments.items() if value is not None}


def obstore_arguments(options: Mapping[str, str]) -> dict[str, Any]:
    """Hadoop's options as arguments of obstore's `from_url`."""
    given = s3_arguments(options)
    names = {"access_key": "access_key_id", "secret_key": "secret_access_key", "session_token": "session_token"}
    arguments: dict[str, Any] = {names[name]: value for name, value in given.items() if name in names}
    if "region" in given:
        arguments["region"] = given["region"]
    if "endpoint_override" in given:
        arguments["endpoint"] = f"{given['scheme']}://{given['endpoint_override']}"
        arguments["virtual_hosted_style_request"] = given["force_virtual_addressing"]
        if given["scheme"] == "http":
            arguments["client_options"] = {"allow_http": True}
    return arguments
