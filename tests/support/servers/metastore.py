"""A Hive metastore of its own on this machine, with a database in memory."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.servers.process import free_port, program, running

__all__ = ["OPENED", "hive_metastore", "metastore_jars"]

# Of Java 17, for libraries of the days of Java 8.
OPENED = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in ("java.net", "java.lang", "java.util")]
_HERE = Path(__file__).parent


def metastore_jars() -> Path:
    """The folder of the metastore's jars; skips the test without it or without a Java that compiles."""
    if shutil.which("java") is None or shutil.which("javac") is None:
        pytest.skip("no JDK for a Hive metastore")
    return program("PYHUDI_METASTORE", "hive-metastore-jars", "metastore")


@contextmanager
def hive_metastore(folder: Path, timeout_s: int) -> Iterator[str]:
    """Its URI. `timeout_s`: after so long without a heartbeat it gives a lock up (`metastore.txn.timeout`)."""
    jars, port = metastore_jars(), free_port()
    command = ["java", "-Xmx512m", "-XX:TieredStopAtLevel=1", *OPENED, "-cp", f"{jars}/*"]
    command += [str(_HERE / "java" / "Metastore.java"), str(port), str(folder / "warehouse"), str(timeout_s)]
    with running(command, port, folder=folder):
        yield f"thrift://127.0.0.1:{port}"
