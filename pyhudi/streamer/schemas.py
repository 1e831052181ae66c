"""Schema providers: the columns of what is read and of what is written."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pyarrow as pa

from pyhudi.errors import ConfigError, CorruptFile, StorageError
from pyhudi.formats.avro.schema import arrow_from_avro
from pyhudi.registry import Registry
from pyhudi.storage import open_storage
from pyhudi.streamer.schema_changes import changed_schema
from pyhudi.streamer.settings import PipelineSettings

__all__ = ["PROVIDERS", "ProvidedColumns", "fetched_answer", "fetched_schema", "provided_columns"]

_PACKAGE = "org.apache.hudi.utilities.schema."
_ROWS = {
    "FilebasedSchemaProvider": f"{__name__}:from_files",
    "SchemaRegistryProvider": f"{__name__}:from_registry",
    "RowBasedSchemaProvider": f"{__name__}:from_rows",
    "ProtoClassBasedSchemaProvider": "pyhudi.streamer.sources.kafka.protobuf:columns_of_class",
}
_TIMEOUT_S = 30


@dataclass(frozen=True, slots=True)
class ProvidedColumns:
    """`source`: of what is read; `target`: of what is written. None: the table's, and what the rows bring."""

    source: pa.Schema | None = None
    target: pa.Schema | None = None


PROVIDERS: Registry[Callable[[PipelineSettings], ProvidedColumns]] = Registry(
    kind="schema provider", entries=_ROWS, aliases={f"{_PACKAGE}{name}": name for name in _ROWS}
)


def provided_columns(settings: PipelineSettings) -> ProvidedColumns:
    """The columns by the provider that the configuration names. Raises ConfigError, StorageError."""
    name = settings.options.schema_provider
    if name is not None:
        provided = PROVIDERS.load(name)(settings)
    else:
        provided = from_files(settings) if settings.options.schemas.source_file is not None else ProvidedColumns()
    changes = settings.options.schema_changes.names
    if changes and provided.source is None:
        raise ConfigError(f"{settings.place}: {changes[0]} changes the schema of a provider, and there is none.")
    source, target = (
        None if schema is None else changed_schema(schema, settings) for schema in (provided.source, provided.target)
    )
    return ProvidedColumns(source, target)


def from_rows(settings: PipelineSettings) -> ProvidedColumns:
    """The rows' own."""
    return ProvidedColumns()


def from_files(settings: PipelineSettings) -> ProvidedColumns:
    """Avro schemas in files."""
    files = settings.options.schemas
    if files.source_file is None:
        raise ConfigError(f"{settings.place}: hoodie.streamer.schemaprovider.source.schema.file is missing.")
    source = _columns(_read(files.source_file, settings), files.source_file)
    if files.target_file is None:
        return ProvidedColumns(source, source if not settings.options.transformer_names else None)
    return ProvidedColumns(source, _columns(_read(files.target_file, settings), files.target_file))


def from_registry(settings: PipelineSettings) -> ProvidedColumns:
    """Schemas of a Confluent registry, by their URLs, whole or by parts around the topic."""
    schemas = settings.options.schemas
    registry_parts = schemas.registry_parts
    suffix = registry_parts.suffix
    url = schemas.registry_url or _url(settings, suffix or registry_parts.source_suffix, "sourceUrlSuffix")
    if url is None:
        raise ConfigError(f"{settings.place}: hoodie.streamer.schemaprovider.registry.url is missing.")
    target_url = registry_parts.target_url
    if target_url is None and registry_parts.target_suffix is not None:
        target_url = _url(settings, suffix or registry_parts.target_suffix, "targetUrlSuffix")
    columns = _columns(fetched_schema(url), url)
    if target_url is None or target_url == url:
        return ProvidedColumns(columns, columns if not settings.options.transformer_names else None)
    return ProvidedColumns(columns, _columns(fetched_schema(target_url), target_url))


def _url(settings: PipelineSettings, suffix: str | None, which: str) -> str | None:
    """A schema's URL by its parts; None where there is no first one. Raises ConfigError for parts that are missing."""
    base, topic = settings.options.schemas.registry_parts.base_url, settings.options.kafka.topic
    if base is None:
        return None
    if suffix is None or topic is None:
        missing = "source.kafka.topic" if topic is None else f"schemaprovider.registry.urlSuffix, or {which}"
        raise ConfigError(
            f"{settings.place}: hoodie.streamer.{missing} is missing: the schema's URL is registry.baseUrl, the topic, "
            "and the suffix."
        )
    return f"{base}{topic}{suffix}"


def fetched_schema(url: str, user: str | None = None) -> str:
    """The schema that a registry has at a URL. `user`: "name:password". Raises ConfigError, StorageError."""
    return str(fetched_answer(url, user)["schema"])


def fetched_answer(url: str, user: str | None = None) -> Mapping[str, Any]:
    """A schema of a registry with what is said of it. The arguments and errors are those of `fetched_schema`."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        raise ConfigError(f"The schema registry {url!r:.200}: expected a URL of http or https.")
    host = parts.netloc.rpartition("@")[2]
    request = Request(parts._replace(netloc=host).geturl())
    user = user or (f"{parts.username}:{parts.password or ''}" if parts.username else None)
    if user is not None:
        request.add_header("Authorization", f"Basic {b64encode(user.encode()).decode()}")
    try:
        with urlopen(request, timeout=_TIMEOUT_S) as answer:
            said: Mapping[str, Any] = json.loads(answer.read())
            if "schema" not in said:
                raise ValueError("the answer has no schema")
    except HTTPError as error:
        if error.code in (401, 403, 404):
            raise ConfigError(f"The schema registry at {host} answers {error.code} to {parts.path}.") from error
        raise StorageError(f"The schema registry at {host} gives no schema: {error}. Nothing was written.") from error
    except (OSError, ValueError, TypeError) as error:
        raise StorageError(f"The schema registry at {host} gives no schema: {error}. Nothing was written.") from error
    return said


def _read(path: str, settings: PipelineSettings) -> str:
    folder, _, name = path.rpartition("/")
    return open_storage(folder or ".", settings.store).read(name, 1 << 24).decode("utf-8", "replace")


def _columns(text: str, where: str) -> pa.Schema:
    try:
        return arrow_from_avro(text)
    except CorruptFile as error:
        raise ConfigError(f"{where}: no Avro schema of a record: {error}") from error
