"""The entry points of a sync: a separate call, which raises, the end of a call that committed, which only warns, and a
check, which changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, closing
from difflib import get_close_matches

from pyhudi.errors import ConfigError
from pyhudi.meta_client import MetaClient
from pyhudi.model.options import WriteOptions
from pyhudi.model.options.catalogs.bigquery import BigQueryOptions
from pyhudi.model.options.catalogs.syncing import SyncOptions, check_sync_library
from pyhudi.queries.query import Query
from pyhudi.registry import Registry
from pyhudi.storage.base import Storage
from pyhudi.sync.catalog import Catalog
from pyhudi.sync.check.checking import check, check_engine
from pyhudi.sync.check.result import SyncCheck
from pyhudi.sync.result import SyncResult
from pyhudi.sync.syncing import sync_to
from pyhudi.warnings import warn_caller

__all__ = ["CATALOGS", "check_now", "sync_after_commit", "sync_now"]

CATALOGS: Registry[Callable[[SyncOptions], Catalog]] = Registry(
    kind="catalog", entries={"hive": "pyhudi.sync.hive:open_metastore", "glue": "pyhudi.sync.glue:open_glue"}
)
# Catalogs that read a list of the table's files beside it.
_BY_FILES: Registry[Callable[[MetaClient, BigQueryOptions], SyncResult]] = Registry(
    kind="catalog", entries={"bigquery": "pyhudi.sync.bigquery:sync_to_bigquery"}
)
_TITLES = {"hive": "the Hive metastore", "glue": "AWS Glue", "bigquery": "BigQuery"}


def sync_now(catalog: str, meta: MetaClient, options: SyncOptions) -> SyncResult:
    """Register a table in a catalog. Raises ConfigError for an unknown catalog, and what `sync_to` raises."""
    name = catalog.lower() if isinstance(catalog, str) else catalog
    if name in _BY_FILES.entries:
        return _BY_FILES.load(name)(meta, options.bigquery)
    if name not in CATALOGS.entries:
        names = [*CATALOGS.entries, *_BY_FILES.entries]
        similar = get_close_matches(str(name), names, n=1)
        hint = f" Did you mean {similar[0]!r}?" if similar else ""
        raise ConfigError(f"Tables can be registered in {', '.join(names)}; found {catalog!r:.100}.{hint}")
    check_sync_library(f"sync({name!r})", name)
    catalog_options = options.of(name)
    with closing(CATALOGS.load(name)(catalog_options)) as connection:
        return sync_to(connection, meta, catalog_options)


def check_now(engine: str | None, meta: MetaClient, options: WriteOptions) -> SyncCheck:
    """Check how engines read a table, and the entries of the catalogs that the options name.

    Raises: ConfigError for an unknown engine, StorageError when the catalog does not answer.
    """
    check_engine(engine)
    query = Query(merger_classes=options.merger_classes, memory=options.memory, damage=options.damage)
    with ExitStack() as stack:
        catalogs = []
        for name in options.sync.named_catalogs:
            check_sync_library("sync_check with a catalog", name)
            catalog_options = options.sync.of(name)
            catalogs.append((name, stack.enter_context(closing(CATALOGS.load(name)(catalog_options))), catalog_options))
        return check(meta, engine, query, catalogs)


def sync_after_commit(storage: Storage, options: WriteOptions) -> None:
    """Register a call's commit in each catalog that the options name.

    An error becomes a warning, and does not stop other syncs: the commit is complete; the next sync catches up.
    """
    for catalog in options.sync.catalogs:
        try:
            sync_now(catalog, MetaClient.load(storage), options.sync)
        except Exception as error:  # of any class: no fault here may make a complete commit look failed
            warn_caller(
                f"{storage.root}: the commit is complete, but it is not registered at {_TITLES[catalog]} yet; the next "
                f"sync catches up. {type(error).__name__}: {error}"
            )
