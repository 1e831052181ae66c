"""Descriptions of Spark's jobs: "hudi upsert trips: write files", where the UI would show a line of this package.

A classic session has a description for each thread. A Connect session has none, but tags, which its server's UI lists
with the operation. Nothing here can fail the work.
Source: PySpark's reference, `SparkContext.setJobDescription`, `SparkSession.addTag`; tried on Spark 4.3.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from pyspark.sql import SparkSession

from pyhudi.progress_line import description
from pyhudi.spark.worker_python import is_on_connect

__all__ = ["jobs_described"]

_DESCRIPTION = "spark.job.description"


@contextmanager
def jobs_described(spark: SparkSession) -> Iterator[None]:
    """While the block waits for jobs of this thread, describe them by the thread's action on a table."""
    words = description()
    if not words:
        yield
    elif is_on_connect(spark):
        with _tagged(spark, words.replace(",", " ")):  # no tag has a comma
            yield
    else:
        with _described(words):
            yield


@contextmanager
def _described(words: str) -> Iterator[None]:
    from pyspark import SparkContext  # a client-only PySpark has none

    before: str | None = None
    with suppress(Exception):
        before = SparkContext.getOrCreate().getLocalProperty(_DESCRIPTION)
        SparkContext.getOrCreate().setLocalProperty(_DESCRIPTION, words)
    try:
        yield
    finally:
        with suppress(Exception):  # the session may have ended
            SparkContext.getOrCreate().setLocalProperty(_DESCRIPTION, before)  # type: ignore[arg-type]  # None removes it


@contextmanager
def _tagged(spark: SparkSession, words: str) -> Iterator[None]:
    is_new = False
    with suppress(Exception):
        is_new = words not in spark.getTags()
        spark.addTag(words)
    try:
        yield
    finally:
        if is_new:
            with suppress(Exception):
                spark.removeTag(words)
