"""Options of a Streamer of several tables. Source: Hudi's HoodieMultiTableStreamer; docs/streamer.md."""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.model.options.declare import option
from pyhudi.model.options.spec import Kind, OptionScope

__all__ = ["RegistryPartsOptions", "TablesOptions"]

_STREAM = frozenset({OptionScope.STREAM})
_REGISTRY = "hoodie.streamer.schemaprovider.registry."


@dataclass(frozen=True, slots=True)
class TablesOptions:
    """Options by which one configuration has several tables."""

    names: tuple[str, ...] = option(
        "hoodie.streamer.ingestion.tablesToBeIngested",
        (),
        "The tables of a configuration, `db.table,db.table`. Each has a file of its own: "
        "`hoodie.streamer.ingestion.<db>.<table>.configFile`, else `<config-folder>/<db>_<table>_config.properties`.",
        scopes=_STREAM,
    )
    folder: str | None = option(
        "hoodie.streamer.config-folder",
        None,
        "The folder of the tables' files, where `configFile` does not name them.",
        Kind.TEXT,
        scopes=_STREAM,
    )
    prefix: str | None = option(
        "hoodie.streamer.base-path-prefix",
        None,
        "The folder of several tables: that of db.table is `<base-path-prefix>/<db>/<table>`, unless the table says "
        "another.",
        Kind.TEXT,
        scopes=_STREAM,
    )


@dataclass(frozen=True, slots=True)
class RegistryPartsOptions:
    """The URL of a schema in a registry by its parts, the topic in their middle, for tables of several topics."""

    base_url: str | None = option(
        f"{_REGISTRY}baseUrl",
        None,
        "Where `registry.url` is missing: the schema's URL is this, the topic, and `urlSuffix`.",
        Kind.TEXT,
        scopes=_STREAM,
    )
    suffix: str | None = option(
        f"{_REGISTRY}urlSuffix", None, "What follows the topic in it, such as -value/versions/latest.", Kind.TEXT,
        scopes=_STREAM,
    )  # fmt: skip
    source_suffix: str | None = option(
        f"{_REGISTRY}sourceUrlSuffix", None, "The same of what is read, where there is no `urlSuffix`.", Kind.TEXT,
        scopes=_STREAM,
    )  # fmt: skip
    target_suffix: str | None = option(
        f"{_REGISTRY}targetUrlSuffix", None, "The same of what is written, where there is no `urlSuffix`.", Kind.TEXT,
        scopes=_STREAM,
    )  # fmt: skip
    target_url: str | None = option(
        f"{_REGISTRY}targetUrl",
        None,
        "The whole URL of the schema of what is written; that of the source without it.",
        Kind.TEXT,
        scopes=_STREAM,
    )
