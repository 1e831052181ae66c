"""Rows of the option table: the table's lock.

Source: Hudi's documented keys; sides taken are in docs/compatibility.md.
"""

from __future__ import annotations

from typing import Any

from pyhudi.model.options.row import honoured
from pyhudi.model.options.spec import Kind, OptionSpec

__all__ = ["LOCK_OPTIONS"]

INTEGER, TEXT = Kind.INTEGER, Kind.TEXT

_GROUP = "Locks"
_LOCK = "hoodie.write.lock."


def _row(name: str, kind: Kind, default: str | None, doc: str, *aliases: str, **more: Any) -> OptionSpec:
    return honoured(_GROUP, _LOCK + name, kind, default, doc, *(_LOCK + alias for alias in aliases), **more)


LOCK_OPTIONS: tuple[OptionSpec, ...] = (
    _row(
        "provider",
        TEXT,
        None,
        "Lock provider: IN_PROCESS, FILESYSTEM, STORAGE, ZOOKEEPER, DYNAMODB, HIVE_METASTORE, Hudi's class names of "
        "these, or `module:Class`. Default: in this process.",
    ),
    _row("wait_time_ms", INTEGER, "60000", "Longest wait for the lock, in milliseconds."),
    _row(
        "wait_time_ms_between_retry",
        INTEGER,
        None,
        "Pause between two attempts, in milliseconds. Unset: from 5 on this machine's disks to 1000 at object stores.",
    ),
    _row("filesystem.path", TEXT, None, "FILESYSTEM: folder of the lock file; the table's `.hoodie` when not given."),
    _row("filesystem.expire", INTEGER, "0", "FILESYSTEM: minutes after which a lock file is left behind; 0: never."),
    _row("storage.validity.timeout.secs", INTEGER, "300", "STORAGE: seconds after which an unrenewed lock runs out."),
    _row(
        "storage.renew.interval.secs",
        INTEGER,
        "30",
        "STORAGE: seconds between two renewals; at most a tenth of the validity.",
        "storage.heartbeat.poll.secs",
    ),
    _row("heartbeat_interval_ms", INTEGER, "60000", "HIVE_METASTORE: milliseconds between two signs of life."),
    _row("zookeeper.url", TEXT, None, "ZOOKEEPER: hosts of the ensemble, `host:port,host:port`."),
    _row("zookeeper.port", INTEGER, None, "ZOOKEEPER: port of the hosts that have none."),
    _row("zookeeper.base_path", TEXT, None, "ZOOKEEPER: node below which locks are."),
    _row("zookeeper.lock_key", TEXT, None, "ZOOKEEPER: name of the lock; the table's name when not given."),
    _row("zookeeper.session_timeout_ms", INTEGER, "60000", "ZOOKEEPER: after which a dead holder's lock is free."),
    _row("zookeeper.connection_timeout_ms", INTEGER, "15000", "ZOOKEEPER: longest wait for a connection."),
    _row("dynamodb.table", TEXT, None, "DYNAMODB: table of locks; it is made when there is none."),
    _row("dynamodb.partition_key", TEXT, None, "DYNAMODB: name of the lock; the table's name when not given."),
    _row("dynamodb.region", TEXT, None, "DYNAMODB: region; that of the environment when not given."),
    _row("dynamodb.endpoint_url", TEXT, None, "DYNAMODB: another endpoint than the region's."),
    _row(
        "dynamodb.billing_mode",
        TEXT,
        "PAY_PER_REQUEST",
        "DYNAMODB: how a table that is made is paid for.",
        choices=("PAY_PER_REQUEST", "PROVISIONED"),
    ),
    _row("dynamodb.read_capacity", INTEGER, "20", "DYNAMODB: of a table that is made PROVISIONED."),
    _row("dynamodb.write_capacity", INTEGER, "10", "DYNAMODB: of a table that is made PROVISIONED."),
    _row("dynamodb.table_creation_timeout", INTEGER, "120000", "DYNAMODB: longest wait for a table that is made, ms."),
    _row("hivemetastore.database", TEXT, None, "HIVE_METASTORE: database of the locked table."),
    _row("hivemetastore.table", TEXT, None, "HIVE_METASTORE: name of the locked table."),
    _row("hivemetastore.uris", TEXT, None, "HIVE_METASTORE: `thrift://host:port`, several with commas."),
)
