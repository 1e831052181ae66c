"""Options for concurrent writers: the concurrency mode, heartbeats, and the lock.

`ConcurrencyOptions` has the mode, which is checked together with the options that it needs. `LivenessOptions` has the
heartbeats. `LockOptions` defines which lock a writer takes and how.

Source: Hudi's documented keys; docs/formats/writers.md, "Conflicts", "Early conflict detection",
"Non-blocking writers", "Locks"; sides taken are in docs/compatibility.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pyhudi.errors import ConfigError
from pyhudi.model.options.aws import AwsOptions
from pyhudi.model.options.declare import Values, milliseconds, option, own_texts, parse, part
from pyhudi.model.options.index import INDEX_TYPE, IndexOptions
from pyhudi.model.options.operation import OperationOptions
from pyhudi.model.options.spec import Kind
from pyhudi.model.options.table import TABLE_NAME, TableOptions
from pyhudi.model.table_format import TableFormat

__all__ = [
    "LOCK_PROVIDER",
    "ConcurrencyOptions",
    "DynamoOptions",
    "HiveLockOptions",
    "LivenessOptions",
    "LockOptions",
    "StorageLockOptions",
    "ZookeeperOptions",
    "concurrency_options",
    "liveness_options",
    "lock_options",
]


_MODE = "hoodie.write.concurrency.mode"
_POLICY = "hoodie.clean.failed.writes.policy"
_SINGLE, _OPTIMISTIC = "SINGLE_WRITER", "OPTIMISTIC_CONCURRENCY_CONTROL"
_NON_BLOCKING = "NON_BLOCKING_CONCURRENCY_CONTROL"
_RETRIES = "hoodie.write.num.retries.on.conflict.failures"
RETRIES_BY_DEFAULT = 20  # with growing pauses, for writers without a named mode
_REPLACING = ("insert_overwrite", "insert_overwrite_table", "delete_partition")


@dataclass(frozen=True)  # no slots: WriteOptions has several bases
class LivenessOptions:
    """Options that keep instants of several machines distinct, and define which pending writes count as dead."""

    max_clock_skew_ms: int = option(
        "hoodie.time.generator.max_expected_clock_skew_ms",
        200,
        "Milliseconds to wait under the lock after an instant time was generated.",
        minimum=0,
    )
    failed_writes_policy: str = option(
        _POLICY,
        "LAZY",
        "Pending writes that the next write considers dead and rolls back: all (EAGER), those without a heartbeat "
        "(LAZY), none (NEVER). EAGER and NEVER imply the mode SINGLE_WRITER, as in Hudi.",
        aliases=("hoodie.cleaner.policy.failed.writes",),
        choices=("EAGER", "LAZY", "NEVER"),
    )
    heartbeat_interval_ms: int = option(
        "hoodie.client.heartbeat.interval_in_ms",
        60000,
        "Milliseconds between two heartbeats of a writer.",
        minimum=1000,
    )
    heartbeat_misses: int = option(
        "hoodie.client.heartbeat.tolerable.misses",
        2,
        "Missed heartbeats after which a writer counts as dead.",
        minimum=0,
    )


@dataclass(frozen=True, slots=True)
class ConcurrencyOptions:
    """Options of a write. `conflict_strategy` None: by bucket with the bucket index, else by file group."""

    mode: str = option(
        _MODE,
        _OPTIMISTIC,
        "Optimistic: if two writers change one file group, the second to commit fails or is retried. Non-blocking, for "
        "buckets of merge-on-read tables: both append. Single writer: every pending write counts as dead and is rolled "
        "back.",
        choices=(_SINGLE, _OPTIMISTIC, _NON_BLOCKING),
        keyword="concurrency_mode",
    )
    conflict_retries: int = option(
        _RETRIES,
        0,
        "With many writers: how often a write that lost a conflict is retried on the table's new state. "
        f"{RETRIES_BY_DEFAULT} if {_MODE} is not set.",
        minimum=0,
        keyword="conflict_retries",
    )
    conflict_strategy: str | None = option(
        "hoodie.write.lock.conflict.resolution.strategy",
        None,
        "Definition of a conflict: SIMPLE (same file group), PREFER_WRITER (the writer wins over plans of table "
        "services made during the write), BUCKET (same bucket), Hudi's class names of these, or `module:Class`. Unset: "
        "BUCKET with that index, else SIMPLE.",
    )
    detects_early: bool = option(
        "hoodie.write.concurrency.early.conflict.detection.enable",
        False,
        "Before creating a file, check if another live writer has announced a file of the same file group; if so, "
        "fail.",
    )
    detects_commits_early: bool = option(
        "hoodie.write.concurrency.early.conflict.check.commit.conflict",
        False,
        "Before creating files, also check commits that completed since the write began.",
    )
    guards_schema: bool = option(
        "hoodie.write.concurrency.schema.conflict.resolution.enable",
        True,
        "Two writes must not change the schema in different ways. A write that did not change it adopts the other's "
        "schema.",
    )

    guards_new_keys: bool = False  # two upserts of one new key conflict if the caller names no mode

    @property
    def has_many_writers(self) -> bool:
        """True if other processes write to the table, too."""
        return self.mode != _SINGLE

    @property
    def is_optimistic(self) -> bool:
        """True if writers check for conflicts, and the second of two loses."""
        return self.mode == _OPTIMISTIC

    @property
    def is_non_blocking(self) -> bool:
        """True if writers append log files in parallel and never conflict."""
        return self.mode == _NON_BLOCKING


def concurrency_options(values: Values) -> ConcurrencyOptions:
    """The options of a write. Raises ConfigError if a mode for many writers lacks a required option.

    Without a named mode, writers are optimistic and retry, unless the policy for failed writes is a single writer's.
    """
    options = parse(ConcurrencyOptions, values)
    if not values.is_given(_MODE):
        mode = _SINGLE if parse(LivenessOptions, values).failed_writes_policy != "LAZY" else options.mode
        retries = options.conflict_retries if values.is_given(_RETRIES) else RETRIES_BY_DEFAULT
        return replace(options, mode=mode, conflict_retries=retries, guards_new_keys=mode != _SINGLE)
    if options.is_non_blocking:
        _check_non_blocking(values)
    return options


def liveness_options(values: Values) -> LivenessOptions:
    """The options of a write. A mode for many writers needs LAZY; a single writer's default is EAGER.

    Raises: ConfigError.
    """
    options, mode = parse(LivenessOptions, values), concurrency_options(values).mode
    if mode == _SINGLE:
        return options if values.is_given(_POLICY) else replace(options, failed_writes_policy="EAGER")
    if values.is_given(_POLICY) and options.failed_writes_policy != "LAZY":
        raise ConfigError(
            f"{_MODE}={mode} and {_POLICY}={options.failed_writes_policy}: with many writers a pending write may well "
            f"be alive, so only those without a heartbeat may be rolled back (LAZY). Leave {_POLICY} out; nothing was "
            f"written."
        )
    return replace(options, failed_writes_policy="LAZY")


def _check_non_blocking(values: Values) -> None:
    """Check that the table has buckets: only their log files can be written in parallel. Raises ConfigError."""
    table, index_type = parse(TableOptions, values), parse(IndexOptions, values).index_type
    wrong = []
    if table.table_type != "MERGE_ON_READ":
        wrong.append(f"the table is {table.table_type}, expected MERGE_ON_READ")
    if not TableFormat(table.table_version).has_non_blocking_writers:
        wrong.append(f"the table has version {table.table_version}, expected 8 or 9")
    if index_type != "BUCKET":
        wrong.append(f"{INDEX_TYPE}={index_type}, expected BUCKET")
    operation = parse(OperationOptions, values).operation.lower()
    if operation in _REPLACING:
        wrong.append(f"{operation} replaces file groups that others append to")
    if wrong:
        raise ConfigError(
            f"{_MODE}={_NON_BLOCKING}: {'; '.join(wrong)}. Use OPTIMISTIC_CONCURRENCY_CONTROL; nothing was written."
        )


_LOCK = "hoodie.write.lock."
LOCK_PROVIDER = f"{_LOCK}provider"
_VALIDITY = f"{_LOCK}storage.validity.timeout.secs"
_RENEWAL = f"{_LOCK}storage.renew.interval.secs"
_RENEWALS_MIN = 10  # of the storage-based lock within its validity, as Hudi requires


@dataclass(frozen=True, slots=True)
class StorageLockOptions:
    """The lock file of a table: how long it is valid without renewal, and how often it is renewed."""

    validity_s: int = option(_VALIDITY, 300, "STORAGE: seconds after which an unrenewed lock expires.", minimum=5)
    renewal_s: int = option(
        _RENEWAL,
        30,
        "STORAGE: seconds between two renewals, at most a tenth of the validity.",
        minimum=1,
        aliases=(f"{_LOCK}storage.heartbeat.poll.secs",),
    )


@dataclass(frozen=True, slots=True)
class ZookeeperOptions:
    """A ZooKeeper ensemble. `url`: hosts with ports, comma separated; `port`: for hosts without one."""

    url: str | None = option(f"{_LOCK}zookeeper.url", None, "ZOOKEEPER: hosts of the ensemble, `host:port,host:port`.")
    port: int | None = option(
        f"{_LOCK}zookeeper.port", None, "ZOOKEEPER: port of hosts without one.", kind=Kind.INTEGER
    )
    base_path: str | None = option(f"{_LOCK}zookeeper.base_path", None, "ZOOKEEPER: parent node of the locks.")
    lock_key: str | None = option(
        f"{_LOCK}zookeeper.lock_key", None, "ZOOKEEPER: name of the lock. Unset: the table's name."
    )
    session_timeout_s: float = milliseconds(
        f"{_LOCK}zookeeper.session_timeout_ms", 60.0, "ZOOKEEPER: time until a dead holder's lock is free.", minimum=1
    )
    connection_timeout_s: float = milliseconds(
        f"{_LOCK}zookeeper.connection_timeout_ms", 15.0, "ZOOKEEPER: longest wait for a connection.", minimum=1
    )


@dataclass(frozen=True, slots=True)
class DynamoOptions:
    """A DynamoDB table for locks. `partition_key`: the lock's name in it."""

    table: str | None = option(f"{_LOCK}dynamodb.table", None, "DYNAMODB: table of locks; a missing table is created.")
    partition_key: str | None = option(
        f"{_LOCK}dynamodb.partition_key", None, "DYNAMODB: name of the lock. Unset: the table's name."
    )
    region: str | None = option(f"{_LOCK}dynamodb.region", None, "DYNAMODB: region. Unset: that of the environment.")
    endpoint_url: str | None = option(
        f"{_LOCK}dynamodb.endpoint_url", None, "DYNAMODB: another endpoint than the region's."
    )
    billing_mode: str = option(
        f"{_LOCK}dynamodb.billing_mode",
        "PAY_PER_REQUEST",
        "DYNAMODB: billing mode of a created table.",
        choices=("PAY_PER_REQUEST", "PROVISIONED"),
    )
    read_capacity: int = option(
        f"{_LOCK}dynamodb.read_capacity", 20, "DYNAMODB: read capacity of a created PROVISIONED table.", minimum=1
    )
    write_capacity: int = option(
        f"{_LOCK}dynamodb.write_capacity", 10, "DYNAMODB: write capacity of a created PROVISIONED table.", minimum=1
    )
    creation_timeout_s: float = milliseconds(
        f"{_LOCK}dynamodb.table_creation_timeout",
        120.0,
        "DYNAMODB: longest wait for the creation of a table, in milliseconds.",
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
        f"{_LOCK}hivemetastore.uris", None, "HIVE_METASTORE: `thrift://host:port`, separated by commas."
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

    `provider`: a name of docs/locks.md, Hudi's class name of one, or "module:Class" of a user's class; None: chosen by
    the table's location. `wait_timeout_s`: longest wait. `retry_wait_ms`: pause between two attempts, None for the
    provider's default. `filesystem_path`: folder of the lock file, None for the table's `.hoodie`. `expire_min`:
    minutes after which a lock file counts as abandoned, 0 for never. `lease_renewal_ms`: the interval of renewing
    leases at servers. `table_name`: names the lock at servers that many tables share. `own_texts`: options of a user's
    provider, key → text.
    """

    provider: str | None = option(
        LOCK_PROVIDER,
        None,
        "Lock provider: IN_PROCESS, FILESYSTEM, STORAGE, ZOOKEEPER, DYNAMODB, HIVE_METASTORE, Hudi's class names "
        "of these, or `module:Class`. Unset: FILESYSTEM on disks and mounts, STORAGE at object stores.",
        keyword="lock",
    )
    wait_timeout_s: float = milliseconds(
        f"{_LOCK}wait_time_ms",
        60.0,
        "Longest wait for the lock, in milliseconds.",
        minimum=0,
        keyword="lock_wait_ms",
    )
    retry_wait_ms: int | None = option(
        f"{_LOCK}wait_time_ms_between_retry",
        None,
        "Pause between two attempts, in milliseconds. Unset: from 5 on local disks to 1000 at object stores.",
        kind=Kind.INTEGER,
        convert=lambda text: max(1, int(text)),
    )
    filesystem_path: str | None = option(
        f"{_LOCK}filesystem.path", None, "FILESYSTEM: folder of the lock file. Unset: the table's `.hoodie`."
    )
    expire_min: int = option(
        f"{_LOCK}filesystem.expire",
        0,
        "FILESYSTEM: minutes after which a lock file counts as abandoned; 0: never.",
        minimum=0,
    )
    storage: StorageLockOptions = part(StorageLockOptions, _storage_options)
    lease_renewal_ms: int = option(
        f"{_LOCK}heartbeat_interval_ms", 60_000, "HIVE_METASTORE: milliseconds between two heartbeats.", minimum=100
    )
    zookeeper: ZookeeperOptions = part(ZookeeperOptions)
    dynamo: DynamoOptions = part(DynamoOptions)
    hive: HiveLockOptions = part(HiveLockOptions)
    aws: AwsOptions = field(default_factory=AwsOptions)  # declared beside Glue's options
    table_name: str | None = None
    own_texts: Mapping[str, str] = field(default_factory=dict)


def lock_options(values: Values) -> LockOptions:
    """The options of a write or of a call of a service. Raises ConfigError."""
    options = parse(LockOptions, values)
    return replace(
        options,
        aws=parse(AwsOptions, values),
        table_name=values.texts.get(TABLE_NAME) or None,
        own_texts=own_texts(LOCK_PROVIDER, options.provider or "", values),
    )
