"""What PyHudi reads from a session's configuration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING

from pyhudi.storage.base import Storage
from pyhudi.storage.local import LocalStorage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["files_listed_here", "hudi_and_store_options", "hudi_options", "settings_with_prefix", "store_options"]

_PREFIX = "spark."
_HUDI_PREFIX = "spark.hoodie."
_STORE_KEYS = "fs."  # Hadoop's keys for where files are
_HADOOP_PREFIX = "spark.hadoop."
_LISTING_JOB_FROM = "spark.sql.sources.parallelPartitionDiscovery.threshold"
_ONE_AT_A_TIME = Lock()  # each puts back the session's value


def hudi_options(spark: SparkSession) -> dict[str, str]:
    """Session-wide Hudi options: `spark.hoodie.*` without the `spark.` in front."""
    return _hudi_options(settings_with_prefix(spark, _HUDI_PREFIX))


def store_options(spark: SparkSession | None, options: Mapping[str, object]) -> dict[str, str]:
    """Hadoop's keys for remote stores: `fs.*` among the options, before the session's `spark.hadoop.fs.*`.

    Args: spark: None where there is no session.
    """
    return _store_options({} if spark is None else settings_with_prefix(spark, _HADOOP_PREFIX), options)


def hudi_and_store_options(spark: SparkSession, options: Mapping[str, object]) -> tuple[dict[str, str], dict[str, str]]:
    """Both at once: a classic session is asked for each of its settings by itself, which takes longer than a plan."""
    session = settings_with_prefix(spark, _HUDI_PREFIX, _HADOOP_PREFIX)
    return _hudi_options(session), _store_options(session, options)


def _hudi_options(session: Mapping[str, str]) -> dict[str, str]:
    return {key[len(_PREFIX) :]: text for key, text in session.items() if key.startswith(_HUDI_PREFIX)}


def _store_options(settings: Mapping[str, str], options: Mapping[str, object]) -> dict[str, str]:
    session = {key: text for key, text in settings.items() if key.startswith(_HADOOP_PREFIX)}
    wide = {key[len(_HADOOP_PREFIX) :]: text for key, text in session.items()}
    both = {**wide, **{key: str(value) for key, value in options.items()}}
    return {key: text for key, text in both.items() if key.startswith(_STORE_KEYS)}


def settings_with_prefix(spark: SparkSession, *prefixes: str) -> dict[str, str]:
    """The session's settings whose keys begin in one of these ways."""
    from pyhudi.spark import capabilities  # PySpark is loaded only when there is a session

    if capabilities.PRESENT.lists_settings:
        return {key: text for key, text in spark.conf.getAll.items() if key.startswith(prefixes)}
    # SQL lists them with stars for the values of keys that sound secret.
    keys = [str(row["key"]) for row in spark.sql("SET").collect() if str(row["key"]).startswith(prefixes)]
    return {key: spark.conf.get(key) or "" for key in keys}


@contextmanager
def files_listed_here(spark: SparkSession, storage: Storage, files: int) -> Iterator[None]:
    """While a scan of so many files is planned: on a local disk Spark looks at them from the driver.

    Beyond 32 paths it starts a job of its own for that, which takes longer than the scan of a small table. A Connect
    session plans later than this, so it is left alone.
    """
    if not isinstance(storage, LocalStorage) or type(spark).__module__.startswith("pyspark.sql.connect"):
        yield
        return
    with _ONE_AT_A_TIME:
        before = spark.conf.get(_LISTING_JOB_FROM)
        assert before is not None, _LISTING_JOB_FROM
        if files <= int(before):
            yield
            return
        spark.conf.set(_LISTING_JOB_FROM, str(files))
        try:
            yield
        finally:
            spark.conf.set(_LISTING_JOB_FROM, before)
