"""What tasks do to the table, and what each write means: a function from rows to rows.

An action is one row of ACTIONS. The matrix of plays follows from this list: every action beside every other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyhudi import HudiTable
from pyhudi.errors import TableError
from tests.support.simulation.world import LOCK

__all__ = ["ACTIONS", "OPTIONS", "SAVED", "Action", "Row", "Rows", "effect", "open_rows"]

Row = tuple[str, str, int]  # partition, value, counter
Rows = dict[str, Row]

OPTIONS: Mapping[str, object] = {
    "hoodie.write.lock.provider": LOCK,
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
}
SAVED = "s1"  # the batch of the commit that has a savepoint


def _rows(rows: Rows) -> list[dict[str, object]]:
    return [{"id": key, "p": p, "v": v, "n": n} for key, (p, v, n) in rows.items()]


@dataclass(frozen=True)
class Action:
    """`call`: takes the table, its own name and the options. `means`: what a write makes of the rows; None for what
    changes none. `merge_on_read`: the type of table that it is for; None for both.
    """

    call: Callable[[HudiTable, str, dict[str, object]], object]
    means: Callable[[Rows, str], Rows] | None = None
    merge_on_read: bool | None = None
    versions: frozenset[int] = frozenset({6, 8, 9})
    undoes: bool = False


def _upserted(batch: str) -> Rows:
    return {"a": ("x", batch, 0), f"own {batch}": ("x", batch, 0)}


def _count(rows: Rows, batch: str) -> Rows:
    return {**rows, **{key: (p, batch, n + 1) for key, (p, _, n) in rows.items() if key in ("b", "c")}}


def _new(batch: str) -> Rows:
    return {f"new {batch}": ("y", batch, 0)}


def _without(rows: Rows, *, key: str = "", partition: str = "") -> Rows:
    return {one: row for one, row in rows.items() if one != key and row[0] != partition}


def _saved(table: HudiTable) -> str:
    saved = [one.requested_time for one in table.state().timeline if one.action.value == "savepoint"]
    if not saved:
        raise TableError("another task has deleted the savepoint")
    return saved[0]


def _second(table: HudiTable) -> str:
    commits = table.state().timeline.commits().instants
    if len(commits) < 2:
        raise TableError("other tasks have taken back all but one commit")
    return commits[-2].requested_time


def _one_key(batch: str) -> Rows:
    return {"z": ("x", batch, 0)}


ACTIONS: Mapping[str, Action] = {
    "upsert": Action(
        lambda table, name, options: table.upsert(_rows(_upserted(name)), options=options),
        lambda rows, name: {**rows, **_upserted(name)},
    ),
    "upsert of a new key": Action(
        lambda table, name, options: table.upsert(_rows(_one_key(name)), options=options),
        lambda rows, name: {**rows, **_one_key(name)},
    ),
    "insert": Action(
        lambda table, name, options: table.insert(_rows(_new(name)), options=options),
        lambda rows, name: {**rows, **_new(name)},
    ),
    "bulk insert": Action(
        lambda table, name, options: table.bulk_insert(_rows(_new(name)), options=options),
        lambda rows, name: {**rows, **_new(name)},
    ),
    "update": Action(
        lambda table, name, options: table.update(
            "id IN ('b', 'c')", set={"n": "n + 1", "v": f"'{name}'"}, options=options
        ),
        _count,
    ),
    "delete": Action(
        lambda table, name, options: table.delete([{"id": "d", "p": "y"}], options=options),
        lambda rows, name: _without(rows, key="d"),
    ),
    "overwrite of a partition": Action(
        lambda table, name, options: table.insert_overwrite(_rows(_new(name)), options=options),
        lambda rows, name: {**_without(rows, partition="y"), **_new(name)},
    ),
    "delete of a partition": Action(
        lambda table, name, options: table.delete_partitions("y", options=options),
        lambda rows, name: _without(rows, partition="y"),
    ),
    "overwrite of the table": Action(
        lambda table, name, options: table.overwrite(_rows(_new(name)), options=options),
        lambda rows, name: _new(name),
    ),
    "compaction": Action(lambda table, name, options: table.compact(options=options), merge_on_read=True),
    "clustering": Action(lambda table, name, options: table.cluster(options=options)),
    "cleaning": Action(lambda table, name, options: table.clean(options=options)),
    "archiving": Action(lambda table, name, options: table.maintenance.archive(options=options)),
    "index": Action(
        lambda table, name, options: table.indexes.create(
            "day", expression="from_unixtime(n, 'yyyy-MM-dd')", options=options
        ),
        versions=frozenset({9}),
    ),
    "index while writing": Action(
        lambda table, name, options: table.indexes.create("record_index", while_writing=True, options=options),
        versions=frozenset({8, 9}),
    ),
    "rollback": Action(lambda table, name, options: table.rollback(options=options), undoes=True),
    "rollback to": Action(lambda table, name, options: table.rollback(to=_second(table), options=options), undoes=True),
    "restore": Action(lambda table, name, options: table.restore(_saved(table), options=options), undoes=True),
    "savepoint": Action(lambda table, name, options: table.savepoints.create(options=options)),
    "delete of a savepoint": Action(
        lambda table, name, options: table.savepoints.delete(_saved(table), options=options)
    ),
    "change of type": Action(
        lambda table, name, options: table.maintenance.change_type(
            "cow" if table.state().config.is_merge_on_read else "mor", options=options
        )
    ),
    "change of version": Action(
        lambda table, name, options: (
            table.maintenance.upgrade(9, options=options)
            if table.state().config.table_version < 9
            else table.maintenance.downgrade(8, options=options)
        )
    ),
}


def effect(rows: Rows, batch: str) -> Rows:
    """The rows after a batch, whose name begins with its action's. The base's batches write rows as they are."""
    if batch.startswith("base "):
        return {**open_rows(), **rows}
    means = ACTIONS[batch.rpartition(" ")[0]].means
    return rows if means is None else means(rows, batch)


def open_rows() -> Rows:
    """The rows of the first commit."""
    return {key: (p, "s0", 0) for key, p in (("a", "x"), ("b", "x"), ("c", "y"), ("d", "y"))}
