"""LockOptions: which lock a writer takes and how.

Source: Hudi's documented keys; docs/formats/writers.md, "Locks"; sides taken are in docs/compatibility.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pyhudi.errors import ConfigError
from pyhudi.model.options.declare import Values, milliseconds, option, own_texts, parse, part
from pyhudi.model.options.spec import Kind
from pyhudi.model.options.table import TABLE_NAME

__all__ = [
    "LOCK_PROVIDER",
    "DynamoOptions",
    "HiveLockOptions",
    "LockOptions",
    "StorageLockOptions",
    "ZookeeperOptions",
    "lock_options",
]

_LOCK = "hoodie.write.lock."
LOCK_PROVIDER = f"{_LOCK}provider"
_VALIDITY = f"{_LOCK}storage.validity.timeout.secs"
_RENEWAL = f"{_LOCK}storage.renew.interval.secs"
_RENEWALS_MIN = 10  # of the storage-based lock within its validity, as Hudi demands


@dataclass(frozen=True, slots=True)
class StorageLockOptions:
    """The lock file of a table: how long it is valid without renewal, and how often it is renewed."""

    validity_s: int = option(_VALIDITY, 300, "STORAGE: seconds after which an unrenewed lock runs out.", minimum=5)
    renewal_s: int = option(
        _RENEWAL,
        30,
        "STORAGE: seconds between two renewals; at most a tenth of the validity.",
        minimum=1,
        aliases=(f"{_LOCK}storage.heartbeat.poll.secs",),
    )


@dataclass(frozen=True, slots=True)
class ZookeeperOptions:
    """A ZooKeeper ensemble. `url`: hosts with ports, comma separated; `port`: of hosts that have none."""

    url: str | None = option(f"{_LOCK}zookeeper.url", None, "ZOOKEEPER: hosts of the ensemble, `host:port,host:port`.")
    port: int | None = option(
        f"{_LOCK}zookeeper.port", None, "ZOOKEEPER: port of the hosts that have none.", kind=Kind.INTEGER
    )
    base_path: str | None = option(f"{_LOCK}zookeeper.base_path", None, "ZOOKEEPER: node below which locks are.")
    lock_key: str | None = option(
        f"{_LOCK}zookeeper.lock_key", None, "ZOOKEEPER: name of the lock; the table's name when not given."
    )
    session_timeout_s: float = milliseconds(
        f"{_LOCK}zookeeper.session_timeout_ms", 60.0, "ZOOKEEPER: after which a dead holder's lock is free.", minimum=1
    )
    connection_timeout_s: float = milliseconds(
        f"{_LOCK}zookeeper.connection_timeout_ms", 15.0, "ZOOKEEPER: longest wait for a connection.", minimum=1
    )


@dataclass(frozen=True, slots=True)
class DynamoOptions:
    """A DynamoDB table for locks. `partition_key`: the lock's name in it."""

    table: str | None = option(
        f"{_LOCK}dynamodb.table", None, "DYNAMODB: table of locks; it is made when there is none."
    )
    partition_key: str | None = option(
        f"{_LOCK}dynamodb.partition_key", None, "DYNAMODB: name of the lock; the table's name when not given."
    )
    region: str | None = option(
        f"{_LOCK}dynamodb.region", None, "DYNAMODB: region; that of the environment when not given."
    )
    endpoint_url: str | None = option(
        f"{_LOCK}dynamodb.endpoint_url", None, "DYNAMODB: another endpoint than the region's."
    )
    billing_mode: str = option(
        f"{_LOCK}dynamodb.billing_mode",
        "PAY_PER_REQUEST",
        "DYNAMODB: how a table that is made is paid for.",
        choices=("PAY_PER_REQUEST", "PROVISIONED"),
    )
    read_capacity: int = option(
        f"{_LOCK}dynamodb.read_capacity", 20, "DYNAMODB: of a table that is made PROVISIONED.", minimum=1
    )
    write_capacity: int = option(
        f"{_LOCK}dynamodb.write_capacity", 10, "DYNAMODB: of a table that is made PROVISIONED.", minimum=1
    )
    creation_timeout_s: float = milliseconds(
        f"{_LOCK}dynamodb.table_creation_timeout",
        120.0,
        "DYNAMODB: longest wait for a table that is made, ms.",
        minimum=0,
    )


@dataclass(frozen=True, slots=True)
class HiveLockOptions:
    """A Hive metastore. `uris`: thrift://host:port, comma separated."""

    database: str | None = option(
        f"{_LOCK}hivemetastore.database", None, "HIVE_METASTORE: database of the locked table."
    )
    table: str | None = option(f"{_LOCK}hivemetastore.table", None, "HIVE_METASTORE: name of the locked table.")
    uris: str | None = option(
        f"{_LOCK}hivemetastore.uris", None, "HIVE_METASTORE: `thrift://host:port`, several with commas."
    )


def _storage_options(values: Values) -> StorageLockOptions:
    options = parse(StorageLockOptions, values)
    if options.validity_s < _RENEWALS_MIN * options.renewal_s:
        raise ConfigError(
            f"{_VALIDITY}={options.validity_s} and {_RENEWAL}={options.renewal_s}: a lock is to be renewed "
            f"{_RENEWALS_MIN} times before it runs out: give at least {_RENEWALS_MIN * options.renewal_s} seconds of "
            f"validity, or renew more often."
        )
    return options


@dataclass(frozen=True, slots=True)
class LockOptions:
    """A caller's choice of lock.

    `provider`: a name of docs/locks.md, Hudi's class name of one, or "module:Class" of one's own; None: by the place
    of the table. `wait_timeout_s`:
    longest wait. `retry_wait_ms`: pause between two attempts, None for the provider's own. `filesystem_path`: folder of
    the lock file, None for the table's `.hoodie`. `expire_min`: minutes after which a lock file counts as left behind,
    0 for never. `lease_renewal_ms`: how often leases at servers are renewed. `table_name`: names the lock at servers
    that many tables share. `own_texts`: options of a user's own provider, key → text.
    """

    provider: str | None = option(
        LOCK_PROVIDER,
        None,
        "Lock provider: IN_PROCESS, FILESYSTEM, STORAGE, ZOOKEEPER, DYNAMODB, HIVE_METASTORE, Hudi's class names "
        "of these, or `module:Class`. Unset: FILESYSTEM on disks and mounts, STORAGE at object stores.",
        keyword="lock",
    )
    wait_timeout_s: float = milliseconds(
        f"{_LOCK}wait_time_ms", 60.0, "Longest wait for the lock, in milliseconds.", minimum=0
    )
    retry_wait_ms: int | None = option(
        f"{_LOCK}wait_time_ms_between_retry",
        None,
        "Pause between two attempts, in milliseconds. Unset: from 5 on this machine's disks to 1000 at object stores.",
        kind=Kind.INTEGER,
        convert=lambda text: max(1, int(text)),
    )
    filesystem_path: str | None = option(
        f"{_LOCK}filesystem.path", None, "FILESYSTEM: folder of the lock file; the table's `.hoodie` when not given."
    )
    expire_min: int = option(
        f"{_LOCK}filesystem.expire",
        0,
        "FILESYSTEM: minutes after which a lock file is left behind; 0: never.",
        minimum=0,
    )
    storage: StorageLockOptions = part(StorageLockOptions, _storage_options)
    lease_renewal_ms: int = option(
        f"{_LOCK}heartbeat_interval_ms", 60_000, "HIVE_METASTORE: milliseconds between two signs of life.", minimum=100
    )
    zookeeper: ZookeeperOptions = part(ZookeeperOptions)
    dynamo: DynamoOptions = part(DynamoOptions)
    hive: HiveLockOptions = part(HiveLockOptions)
    table_name: str | None = None
    own_texts: Mapping[str, str] = field(default_factory=dict)


def lock_options(values: Values) -> LockOptions:
    """The options of a write or of a call of a service. Raises ConfigError."""
    options = parse(LockOptions, values)
    return replace(
        options,
        table_name=values.given.get(TABLE_NAME) or None,
        own_texts=own_texts(LOCK_PROVIDER, options.provider or "", values),
    )
