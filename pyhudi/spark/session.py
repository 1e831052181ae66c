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

__all__ = ["files_listed_here", "hudi_options", "store_options"]

_PREFIX = "spark."
_STORE_KEYS = "fs."  # Hadoop's keys for where files are
_HADOOP_PREFIX = "spark.hadoop."
_LISTING_JOB_FROM = "spark.sql.sources.parallelPartitionDiscovery.threshold"
_ONE_AT_A_TIME = Lock()  # each puts back the session's value


def hudi_options(spark: SparkSession) -> dict[str, str]:
    """Session-wide Hudi options: `spark.hoodie.*` without the `spark.` in front."""
    return {key[len(_PREFIX) :]: text for key, text in spark.conf.getAll.items() if key.startswith("spark.hoodie.")}


def store_options(spark: SparkSession | None, options: Mapping[str, object]) -> dict[str, str]:
    """Hadoop's keys for remote stores: `fs.*` among the options, before the session's `spark.hadoop.fs.*`.

    Args: spark: None where there is no session.
    """
    session = {} if spark is None else spark.conf.getAll
    wide = {key[len(_HADOOP_PREFIX) :]: text for key, text in session.items() if key.startswith(_HADOOP_PREFIX)}
    both = {**wide, **{key: str(value) for key, value in options.items()}}
    return {key: text for key, text in both.items() if key.startswith(_STORE_KEYS)}


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
