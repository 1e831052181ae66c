"""The ways to a sync: a call of its own, which raises, the end of a call that committed, which only warns, and a check,
which changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, closing
from difflib import get_close_matches

from pyhudi.errors import ConfigError
from pyhudi.meta_client import MetaClient
from pyhudi.model.options import WriteOptions
from pyhudi.model.options.bigquery_sync import BigQueryOptions
from pyhudi.model.options.syncing import SyncOptions, check_sync_library
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
    """Register a table in a catalog. Raises ConfigError for a catalog that is not there, and what `sync_to` raises."""
    name = catalog.lower() if isinstance(catalog, str) else catalog
    if name in _BY_FILES.entries:
        return _BY_FILES.load(name)(meta, options.bigquery)
    if name not in CATALOGS.entries:
        known = [*CATALOGS.entries, *_BY_FILES.entries]
        near = get_close_matches(str(name), known, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ConfigError(f"Tables are registered in {', '.join(known)}; found {catalog!r:.100}.{hint}")
    check_sync_library(f"sync({name!r})", name)
    own = options.of(name)
    with closing(CATALOGS.load(name)(own)) as opened:
        return sync_to(opened, meta, own)


def check_now(engine: str | None, meta: MetaClient, options: WriteOptions) -> SyncCheck:
    """What engines make of a table, and what the catalogs that the options name have of it.

    Raises: ConfigError for an unknown engine, StorageError when the catalog does not answer.
    """
    check_engine(engine)
    query = Query(merger_classes=options.merger_classes, memory=options.memory, damage=options.damage)
    with ExitStack() as stack:
        catalogs = []
        for name in options.sync.named_catalogs:
            check_sync_library("sync_check with a catalog", name)
            own = options.sync.of(name)
            catalogs.append((name, stack.enter_context(closing(CATALOGS.load(name)(own))), own))
        return check(meta, engine, query, catalogs)


def sync_after_commit(storage: Storage, options: WriteOptions) -> None:
    """Register what a call has committed, in each catalog that the options name.

    An error is a warning, and keeps no other catalog from its sync: the commit is complete; the next sync catches up.
    """
    for catalog in options.sync.catalogs:
        try:
            sync_now(catalog, MetaClient.load(storage), options.sync)
        except Exception as error:  # of any class: our fault must not make a complete commit look failed
            warn_caller(
                f"{storage.root}: the commit is complete, but it is not registered at {_TITLES[catalog]} yet; the next "
                f"sync catches up. {type(error).__name__}: {error}"
            )
