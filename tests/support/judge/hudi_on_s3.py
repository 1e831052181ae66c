"""Real Hudi on a test's S3 server: the storage-based lock alone, and Spark with tables on s3a:// paths.

Hudi's S3 client of the lock is not in its Spark bundle; PyHudi's own (java/S3StorageLockClient.java) stands in for it.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.support.golden.folder import shared_folder
from tests.support.judge.real_hudi import HUDI_OF_TABLE_VERSION
from tests.support.servers.s3_server import options_of

_HERE = Path(__file__).parent
_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pyhudi-judge"  # the judge's, set up by it
_GROUPS = "org.apache.hadoop,com.amazonaws,software.amazon.ion,com.fasterxml.jackson.dataformat"
_WAIT_S = 90


def classes_of_the_lock(folder: Path) -> str:
    """Class path of Hudi's newest bundle with our S3 client for its lock, compiled into `folder`."""
    javac = shutil.which("javac")
    if javac is None:
        pytest.skip("no javac: the S3 client for Hudi's lock can't be compiled (a JDK has it, a JRE has not)")
    bundle = judges_bundle()
    spark = next(judges_python().parent.parent.glob("lib/python*/site-packages/pyspark/jars"))
    path = f"{folder}:{bundle}:{spark}/*"
    sources = sorted((_HERE / "java").glob("*.java"))
    subprocess.run([javac, "-nowarn", "-proc:none", "-d", folder, "-cp", path, *sources], check=True)
    return path


def jars_of_s3a() -> list[Path]:
    """What Spark needs for s3a:// paths (10 MB), from Maven when they are not in the judge's cache yet."""
    jars = _CACHE / "s3a-3.3.4"
    if not jars.is_dir():
        if shutil.which("mvn") is None:
            pytest.skip("no Maven: what Spark needs for s3a:// paths can't be fetched")
        with tempfile.TemporaryDirectory(dir=_CACHE) as stage:
            command = ["mvn", "-B", "-ntp", "-q", "-f", _HERE / "java" / "s3a.xml", "dependency:copy-dependencies"]
            command += [f"-DincludeGroupIds={_GROUPS}", f"-DoutputDirectory={stage}/jars"]
            subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
            os.replace(f"{stage}/jars", jars)
    return sorted(jars.glob("*.jar"))


class Holder:
    """A process that holds a lock, or tries to: java/LockPlay.java, or anything that takes its words."""

    def __init__(self, command: list[str], port: int | None = None) -> None:
        server = {} if port is None else {"AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{port}"}
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env={**os.environ, **server})
        assert self.hear() == "ready"

    @classmethod
    def hudi(cls, classes: str, port: int, table: str, notes: str, validity_s: int, renewal_s: int) -> Holder:
        quiet = ["-Xmx128m", "-XX:TieredStopAtLevel=1", "-Dorg.apache.logging.log4j.level=OFF"]
        return cls(["java", *quiet, "-cp", classes, "LockPlay", table, notes, str(validity_s), str(renewal_s)], port)

    def say(self, word: str) -> None:
        assert self.process.stdin is not None
        print(word, file=self.process.stdin, flush=True)

    def ask(self, word: str) -> str:
        self.say(word)
        return self.hear()

    def hear(self) -> str:
        assert self.process.stdout is not None
        assert select.select([self.process.stdout], [], [], _WAIT_S)[0], f"no answer within {_WAIT_S} s"
        line = self.process.stdout.readline()
        assert line, f"the process ended with exit code {self.process.wait()}"
        return line.strip().lower()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


class HudiOnS3:
    """Spark with real Hudi and tables on s3a:// paths of one server."""

    def __init__(self, classes: str, port: int) -> None:
        jars = ":".join([classes.partition("/*")[0].rpartition(":")[0], *map(str, jars_of_s3a())])
        submit = ["--driver-class-path", jars]
        for key, value in options_of(port).items():
            submit += ["--conf", f"spark.hadoop.{key}={value}"]
        foreign = ("SPARK_", "PYSPARK_", "PYTHON", "HADOOP_", "YARN_", "VIRTUAL_ENV")
        kept = {key: value for key, value in os.environ.items() if not key.startswith(foreign)}
        python = str(judges_python())
        env = {
            **kept,
            "TZ": "UTC",
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": python,
            "PYSPARK_SUBMIT_ARGS": " ".join([*submit, "pyspark-shell"]),
            "AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{port}",
        }
        command = [python, str(_HERE / "spark_on_s3.py"), str(shared_folder() / "judge")]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env
        )
        self._hear()

    def upsert(self, path: str, rows: list[dict[str, Any]], schema: str, options: dict[str, str]) -> None:
        options = {"hoodie.datasource.write.operation": "upsert", **options}
        self._ask(path=path, rows=rows, schema=schema, options=options)

    def rows(self, path: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._ask(path=path)["rows"]
        return found

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)

    def _ask(self, **request: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        print(json.dumps(request), file=self._process.stdin, flush=True)
        return self._hear()

    def _hear(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"Spark ended with exit code {self._process.wait()}"
        answer: dict[str, Any] = json.loads(line)
        assert answer["ok"], answer
        return answer


def judges_bundle() -> Path:
    """Real Hudi's newest bundle, which the judge has brought."""
    return _CACHE / "jars" / f"hudi-spark3.5-bundle_2.12-{HUDI_OF_TABLE_VERSION[9]}.jar"


def judges_python() -> Path:
    """The judge's Python, which has Spark."""
    return next(_CACHE.glob("venv-*/bin/python"))
