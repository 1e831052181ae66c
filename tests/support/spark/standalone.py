"""A standalone Spark cluster as processes of this machine: one master and some workers, each of a host of its own.

Spark runs the copy of a task that is slow (speculation) on another host than the task's. The hosts are addresses of
this machine: 127.0.0.1, 127.0.0.2, ...
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from tests.support.servers.process import free_port
from tests.support.spark.sessions import JVM_OPTIONS

__all__ = ["standalone_cluster"]

_SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
_LOCALHOST = "127.0.0.1"
_PATIENCE_S = 180  # a JVM on a busy machine


@contextmanager
def standalone_cluster(
    folder: Path, paths: str, environment: Mapping[str, str] = os.environ, workers: int = 2
) -> Iterator[str]:
    """The master's URL while the cluster runs. `paths`: PYTHONPATH of the executors."""
    port = free_port()
    url = f"spark://{_LOCALHOST}:{port}"
    environment = {
        **environment,
        "PYTHONPATH": paths,
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": JVM_OPTIONS,
    }
    with ExitStack() as processes:
        master = ["master.Master", *_at(_LOCALHOST), "--port", str(port)]
        processes.enter_context(_running(master, environment, folder / "master.log", "I have been elected leader"))
        for number in range(workers):
            size = ["--cores", "1", "--memory", "640m", "--work-dir", str(folder / f"work{number}")]
            worker = ["worker.Worker", *_at(f"127.0.0.{number + 1}"), *size, url]
            log = folder / f"worker{number}.log"
            processes.enter_context(_running(worker, environment, log, "Successfully registered with master"))
        yield url


def _at(host: str) -> list[str]:
    return ["--host", host, "--webui-port", "0"]


@contextmanager
def _running(command: Sequence[str], environment: dict[str, str], log: Path, ready: str) -> Iterator[None]:
    """A daemon of Spark; when the block begins its log says `ready`, and after it the daemon is gone for certain."""
    name, _, host, *_ = command
    full = [str(_SPARK_CLASS), f"org.apache.spark.deploy.{name}", *command[1:]]
    environment = {**environment, "SPARK_LOCAL_IP": host}
    with log.open("wb") as output:
        # In a process group of its own: a worker's executors are to end with it.
        process = subprocess.Popen(full, stdout=output, stderr=output, env=environment, start_new_session=True)
    try:
        deadline_s = time.monotonic() + _PATIENCE_S
        while ready not in log.read_text(errors="replace"):
            text = log.read_text(errors="replace")[-2000:]
            if process.poll() is not None or time.monotonic() > deadline_s:
                raise AssertionError(f"{name} did not start\n{text}")
            time.sleep(0.1)
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
