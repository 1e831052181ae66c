"""LockOptions: which lock a writer takes and how, typed.

Source: docs/formats/writers.md, "Locks".
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pyhudi.errors import ConfigError
from pyhudi.model.options.values import Values

__all__ = ["DynamoOptions", "HiveLockOptions", "LockOptions", "StorageLockOptions", "ZookeeperOptions", "lock_options"]

_PREFIX = "hoodie.write.lock."
_RENEWALS_MIN = 10  # of the storage-based lock within its validity, as Hudi demands


@dataclass(frozen=True, slots=True)
class StorageLockOptions:
    """The lock file of a table: how long it is valid without renewal, and how often it is renewed."""

    validity_s: int = 300
    renewal_s: int = 30


@dataclass(frozen=True, slots=True)
class ZookeeperOptions:
    """A ZooKeeper ensemble. `url`: hosts with ports, comma separated; `port`: of hosts that have none."""

    url: str | None = None
    port: int | None = None
    base_path: str | None = None
    lock_key: str | None = None
    session_timeout_s: float = 60.0
    connection_timeout_s: float = 15.0


@dataclass(frozen=True, slots=True)
class DynamoOptions:
    """A DynamoDB table for locks. `partition_key`: the lock's name in it."""

    table: str | None = None
    partition_key: str | None = None
    region: str | None = None
    endpoint_url: str | None = None
    billing_mode: str = "PAY_PER_REQUEST"
    read_capacity: int = 20
    write_capacity: int = 10
    creation_timeout_s: float = 120.0


@dataclass(frozen=True, slots=True)
class HiveLockOptions:
    """A Hive metastore. `uris`: thrift://host:port, comma separated."""

    database: str | None = None
    table: str | None = None
    uris: str | None = None


@dataclass(frozen=True, slots=True)
class LockOptions:
    """A caller's choice of lock.

    `provider`: a name of docs/locks.md, Hudi's class name of one, or "module:Class" of one's own. `filesystem_path`:
    folder of the lock file, None for the table's `.hoodie`. `expire_min`: minutes after which a lock file counts as
    left behind, 0 for never. `wait_timeout_s`: longest wait. `retry_wait_ms`: pause between two attempts, None for the
    provider's own. `lease_renewal_ms`: how often leases at servers are renewed. `table_name`: names the lock at
    servers that many tables share.
    """

    provider: str = "IN_PROCESS"
    filesystem_path: str | None = None
    expire_min: int = 0
    wait_timeout_s: float = 60.0
    retry_wait_ms: int | None = None
    lease_renewal_ms: int = 60_000
    table_name: str | None = None
    storage: StorageLockOptions = field(default_factory=StorageLockOptions)
    zookeeper: ZookeeperOptions = field(default_factory=ZookeeperOptions)
    dynamo: DynamoOptions = field(default_factory=DynamoOptions)
    hive: HiveLockOptions = field(default_factory=HiveLockOptions)


def lock_options(values: Values) -> LockOptions:
    """The options of a write or of a call of a service. Raises ConfigError."""
    retry_wait = values.text(f"{_PREFIX}wait_time_ms_between_retry")
    return LockOptions(
        provider=values.text(f"{_PREFIX}provider") or "IN_PROCESS",
        filesystem_path=values.text(f"{_PREFIX}filesystem.path"),
        expire_min=values.integer(f"{_PREFIX}filesystem.expire", minimum=0),
        wait_timeout_s=values.integer(f"{_PREFIX}wait_time_ms", minimum=0) / 1000,
        retry_wait_ms=None if retry_wait is None else max(1, int(retry_wait)),
        lease_renewal_ms=values.integer(f"{_PREFIX}heartbeat_interval_ms", minimum=100),
        table_name=values.text("hoodie.table.name"),
        storage=_storage_options(values),
        zookeeper=_zookeeper_options(values),
        dynamo=_dynamo_options(values),
        hive=HiveLockOptions(
            database=values.text(f"{_PREFIX}hivemetastore.database"),
            table=values.text(f"{_PREFIX}hivemetastore.table"),
            uris=values.text(f"{_PREFIX}hivemetastore.uris"),
        ),
    )


def _storage_options(values: Values) -> StorageLockOptions:
    validity_key, renewal_key = f"{_PREFIX}storage.validity.timeout.secs", f"{_PREFIX}storage.renew.interval.secs"
    validity_s, renewal_s = values.integer(validity_key, minimum=5), values.integer(renewal_key, minimum=1)
    if validity_s < _RENEWALS_MIN * renewal_s:
        raise ConfigError(
            f"{validity_key}={validity_s} and {renewal_key}={renewal_s}: a lock is to be renewed {_RENEWALS_MIN} times "
            f"before it runs out: give at least {_RENEWALS_MIN * renewal_s} seconds of validity, or renew more often."
        )
    return StorageLockOptions(validity_s, renewal_s)


def _zookeeper_options(values: Values) -> ZookeeperOptions:
    port = values.text(f"{_PREFIX}zookeeper.port")
    return ZookeeperOptions(
        url=values.text(f"{_PREFIX}zookeeper.url"),
        port=None if port is None else int(port),
        base_path=values.text(f"{_PREFIX}zookeeper.base_path"),
        lock_key=values.text(f"{_PREFIX}zookeeper.lock_key"),
        session_timeout_s=values.integer(f"{_PREFIX}zookeeper.session_timeout_ms", minimum=1) / 1000,
        connection_timeout_s=values.integer(f"{_PREFIX}zookeeper.connection_timeout_ms", minimum=1) / 1000,
    )


def _dynamo_options(values: Values) -> DynamoOptions:
    return DynamoOptions(
        table=values.text(f"{_PREFIX}dynamodb.table"),
        partition_key=values.text(f"{_PREFIX}dynamodb.partition_key"),
        region=values.text(f"{_PREFIX}dynamodb.region"),
        endpoint_url=values.text(f"{_PREFIX}dynamodb.endpoint_url"),
        billing_mode=values.must(f"{_PREFIX}dynamodb.billing_mode"),
        read_capacity=values.integer(f"{_PREFIX}dynamodb.read_capacity", minimum=1),
        write_capacity=values.integer(f"{_PREFIX}dynamodb.write_capacity", minimum=1),
        creation_timeout_s=values.integer(f"{_PREFIX}dynamodb.table_creation_timeout", minimum=0) / 1000,
    )
