"""One check: the rules of the requested engines, the entries in the named catalogs, and the age of exports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from pyhudi.errors import ConfigError
from pyhudi.meta_client import MetaClient
from pyhudi.model.options.catalogs.syncing import SyncOptions
from pyhudi.queries.query import Query
from pyhudi.sync.catalog import Catalog
from pyhudi.sync.check.conditions import CONDITIONS
from pyhudi.sync.check.exports import findings_of_exports
from pyhudi.sync.check.facts import TableFacts
from pyhudi.sync.check.registered import findings_of
from pyhudi.sync.check.result import EngineVerdict, SyncCheck, SyncFinding
from pyhudi.sync.check.rules import ENGINES, RULES

__all__ = ["check", "check_engine"]

_ORDER = ("unreadable", "wrong", "unknown", "note")


def check_engine(engine: str | None) -> None:
    """Raise ConfigError for an engine without rules."""
    if engine is None or engine in ENGINES:
        return
    similar = get_close_matches(str(engine).lower(), ENGINES, n=1)
    hint = f" Did you mean {similar[0]!r}?" if similar else ""
    raise ConfigError(f"sync_check knows {', '.join(ENGINES)}; found {engine!r:.100}.{hint}")


def check(
    meta: MetaClient, engine: str | None, query: Query, catalogs: Sequence[tuple[str, Catalog, SyncOptions]] = ()
) -> SyncCheck:
    """Check how engines read a table.

    Args:    engine: one of `ENGINES`, None: all. query: how log rows are merged. catalogs: the name of each catalog
             to compare with, the catalog itself, and the options of the registration.
    Raises:  the errors of listing the table, StorageError when the catalog does not answer.
    """
    facts = TableFacts(meta, query)
    engines = ENGINES if engine is None else {engine: ENGINES[engine]}
    findings = {name: list(_of_engine(name, facts)) for name in engines}
    verdicts = tuple(
        EngineVerdict.of(name, f"{one.title}, {one.checked}", findings[name]) for name, one in engines.items()
    )
    registered: list[SyncFinding] = []
    if any(one.by_catalog for one in engines.values()):
        for kind, catalog, options in catalogs:
            registered += findings_of(kind, catalog, facts, options)
    if engine is None:
        registered += findings_of_exports(meta)
    newest = meta.timeline.last_commit()
    every = [*registered, *(finding for one in findings.values() for finding in one)]
    return SyncCheck(
        meta.storage.root,
        meta.config.table_type,
        meta.config.table_version,
        None if newest is None else newest.requested_time,
        verdicts,
        tuple(sorted(every, key=lambda finding: _ORDER.index(finding.level))),
        ", ".join(catalog.name for _, catalog, _ in catalogs),
    )


def _of_engine(engine: str, facts: TableFacts) -> Iterator[SyncFinding]:
    for rule in RULES:
        observed = CONDITIONS[rule.condition](facts, rule.argument) if engine in rule.engines else None
        if observed is not None:
            text = rule.what.format(seen=observed.text)
            yield SyncFinding(
                engine,
                rule.level,
                rule.condition,
                text,
                observed.rows,
                observed.is_bound,
                observed.since,
                rule.run,
                rule.source,
            )
