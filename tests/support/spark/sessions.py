"""Settings of the Spark session of all tests."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import pytest

FLAVOUR = os.environ.get("PYHUDI_SPARK", "classic")
# Tests are over before Java's second compiler pays: without it a JVM takes 26 instead of 46 s of processor time for
# tests/spark/test_first_write.py.
JVM_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
CONF = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.memory": "2g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.log.level": "OFF",
    # A machine that is busy with other work answers late; Spark's own patience with its workers is 15 seconds.
    "spark.python.authenticate.socketTimeout": "300s",
    "spark.executor.heartbeatInterval": "60s",
    "spark.network.timeout": "900s",
    "spark.sql.broadcastTimeout": "900",
}


def classic_unless(repeated: Collection[Any], values: Iterable[Any]) -> Sequence[Any]:
    """Values for a test's one parameter, of which Spark Connect repeats some: the others go the same road there, with
    other rows.
    """
    given = list(values)
    assert all(value in given for value in repeated), repeated
    return [value if value in repeated else pytest.param(value, marks=pytest.mark.classic) for value in given]
