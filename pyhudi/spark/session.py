"""PyHudi's access to a session's configuration."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import timedelta, timezone, tzinfo
from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary
from zoneinfo import ZoneInfo

from pyhudi.errors import ConfigError
from pyhudi.lazy_property import lazy_property
from pyhudi.model.filenames import PROPERTIES_PATH
from pyhudi.storage.base import Storage
from pyhudi.storage.local import LocalStorage
from pyhudi.storage.stores.options import known_options, likely_misspelled

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "active_session",
    "files_listed_here",
    "has_file_system",
    "hudi_and_store_options",
    "hudi_options",
    "setting",
    "settings_read_once",
    "settings_with_prefix",
    "started_session",
    "store_options",
    "zone_of",
]

_PREFIX = "spark."
_HUDI_PREFIX = "spark.hoodie."
_STORE_KEYS = "fs."  # Hadoop's keys for stores
_HADOOP_PREFIX = "spark.hadoop."
_LISTING_JOB_FROM = "spark.sql.sources.parallelPartitionDiscovery.threshold"
_ZONE = "spark.sql.session.timeZone"
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d\d)(?::?(\d\d))?)?")
_CONNECT = "sc://"
# The class that Hadoop's settings name for the scheme is missing, or they name none.
_NO_FILE_SYSTEM = ("ClassNotFoundException", "No FileSystem for scheme")
_FILE_SYSTEMS: WeakKeyDictionary[SparkSession, dict[str, bool]] = WeakKeyDictionary()
_SETTING_LOCK = Lock()  # each block restores the session's value


def active_session() -> SparkSession | None:
    """The active session of this thread; None without one, or with a Connect client of Spark 3.5, which does not track
    it.
    """
    from pyspark.errors import PySparkNotImplementedError
    from pyspark.sql import SparkSession

    with suppress(PySparkNotImplementedError):
        return SparkSession.getActiveSession()
    return None


def started_session(master: str) -> SparkSession:
    """The active session, else a new one.

    Args:    master: its master; `sc://host:port`: a server of Spark Connect. "": as the environment sets it.
    Raises:  ConfigError when PySpark, or what its Connect client needs, is not installed.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise ConfigError(
            "A Spark session needs PySpark, which is not installed: pip install 'pyhudi[spark]'."
        ) from error
    try:
        if master.startswith(_CONNECT):
            return SparkSession.builder.remote(master).getOrCreate()
        builder = SparkSession.builder.appName("pyhudi")
        return (builder.master(master) if master else builder).getOrCreate()
    except ImportError as error:
        raise ConfigError(
            f"A session of Spark Connect needs more than PySpark: pip install 'pyhudi[connect]'. {error}"
        ) from error


def hudi_options(spark: SparkSession) -> dict[str, str]:
    """Session-wide Hudi options: `spark.hoodie.*` without the prefix `spark.`."""
    return _hudi_options(settings_with_prefix(spark, _HUDI_PREFIX))


def store_options(spark: SparkSession | None, options: Mapping[str, object]) -> dict[str, str]:
    """Hadoop's keys for remote stores: `fs.*` in the options, which override the session's `spark.hadoop.fs.*`.

    Args: spark: None without a session.
    """
    return _store_options({} if spark is None else settings_with_prefix(spark, _HADOOP_PREFIX), options)


def hudi_and_store_options(spark: SparkSession, options: Mapping[str, object]) -> tuple[dict[str, str], dict[str, str]]:
    """Both at once: a classic session needs a request for each of its settings, which takes longer than a plan."""
    session = settings_with_prefix(spark, _HUDI_PREFIX, _HADOOP_PREFIX)
    return _hudi_options(session), _store_options(session, options)


def _hudi_options(session: Mapping[str, str]) -> dict[str, str]:
    return {key[len(_PREFIX) :]: text for key, text in session.items() if key.startswith(_HUDI_PREFIX)}


def _store_options(settings: Mapping[str, str], options: Mapping[str, object]) -> dict[str, str]:
    session = {key: text for key, text in settings.items() if key.startswith(_HADOOP_PREFIX)}
    wide = {key[len(_HADOOP_PREFIX) :]: text for key, text in session.items()}
    merged = {**wide, **{key: str(value) for key, value in options.items()}}
    misspelled = likely_misspelled(key for key in options if key.startswith(_STORE_KEYS))
    if misspelled is not None:
        raise ConfigError(f"The option {misspelled[0]!r} of the store is unknown. Did you mean {misspelled[1]!r}?")
    return known_options({key: text for key, text in merged.items() if key.startswith(_STORE_KEYS)})


def settings_with_prefix(spark: SparkSession, *prefixes: str) -> dict[str, str]:
    """The session's settings whose keys have one of these prefixes."""
    read = _READ.get()
    settings = read if read is not None and read.spark is spark else _Settings(spark)
    return settings.with_prefix(*prefixes)


def zone_of(spark: SparkSession) -> tzinfo:
    """The session's time zone. Spark takes a region, an offset, or `UTC` and `GMT` with an offset."""
    name = str(settings_with_prefix(spark, _ZONE).get(_ZONE) or spark.conf.get(_ZONE))
    offset = _OFFSET.fullmatch(name)
    if offset is None:
        return ZoneInfo("UTC" if name == "Z" else name)
    east = timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0), seconds=int(offset[4] or 0))
    return timezone(-east if offset[1] == "-" else east)


@contextmanager
def settings_read_once(spark: SparkSession) -> Iterator[None]:
    """In the block, all accesses of this thread to a session's settings use one reading of them.

    It is for one call of the user, which should see consistent settings. A classic session needs some five round trips
    to the JVM for each of its settings, and a write reads them three times.
    """
    read = _READ.get()
    if read is not None and read.spark is spark:
        yield
        return
    token = _READ.set(_Settings(spark))
    try:
        yield
    finally:
        _READ.reset(token)


class _Settings:
    """The settings of a session at their first access."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    def with_prefix(self, *prefixes: str) -> dict[str, str]:
        from pyhudi.spark import capabilities  # PySpark is loaded only when there is a session

        if capabilities.PRESENT.lists_settings:
            return {key: text for key, text in self._all.items() if key.startswith(prefixes)}
        return {key: self._value(key) for key in self._keys if key.startswith(prefixes)}

    @lazy_property
    def _all(self) -> Mapping[str, str]:
        return self.spark.conf.getAll

    @lazy_property
    def _keys(self) -> tuple[str, ...]:
        return tuple(str(row["key"]) for row in self.spark.sql("SET").collect())

    def _value(self, key: str) -> str:
        # SQL lists them with stars for the values of secret-looking keys.
        return self.spark.conf.get(key) or ""


_READ: ContextVar[_Settings | None] = ContextVar("settings of the session, read once", default=None)


@contextmanager
def files_listed_here(spark: SparkSession, storage: Storage, files: int) -> Iterator[None]:
    """While a scan of a number of files is planned: on a local disk let Spark list them from the driver.

    Beyond 32 paths it starts a separate job for that, which takes longer than the scan of a small table. A Connect
    session plans later, so its setting is not changed.
    """
    if not isinstance(storage, LocalStorage) or type(spark).__module__.startswith("pyspark.sql.connect"):
        yield
        return
    before = spark.conf.get(_LISTING_JOB_FROM)
    assert before is not None, _LISTING_JOB_FROM
    if files <= int(before):
        yield
        return
    with setting(spark, _LISTING_JOB_FROM, str(files)):
        yield


def has_file_system(spark: SparkSession, storage: Storage) -> bool:
    """True if Spark itself can read files of the storage. For S3 the JVM needs a jar that PySpark lacks (hadoop-aws).

    Checked once for each session and kind of store. Other errors are left to the read, whose messages say more.
    """
    if isinstance(storage, LocalStorage):
        return True
    answers = _FILE_SYSTEMS.setdefault(spark, {})
    path = storage.full_path(PROPERTIES_PATH)
    scheme = path.partition(":")[0]
    if scheme not in answers:
        try:
            _ = spark.read.schema("a INT").parquet(path).schema  # nothing is read; Connect plans no earlier
        except Exception as error:  # classic sessions pass on what Java raised
            answers[scheme] = not any(words in str(error) for words in _NO_FILE_SYSTEM)
        else:
            answers[scheme] = True
    return answers[scheme]


@contextmanager
def setting(spark: SparkSession, key: str, value: str) -> Iterator[None]:
    """In the block, the session has this setting. Only one block at a time, because threads share the session."""
    with _SETTING_LOCK:
        before = spark.conf.get(key, None)
        if before == value:
            yield
            return
        spark.conf.set(key, value)
        try:
            yield
        finally:
            if before is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, before)
