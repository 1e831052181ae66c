"""The wheel as a user gets it: with one extra in a virtual environment that holds nothing else and is not activated,
from a folder that is not the checkout's, where `python3` of the PATH is a Python without PyHudi. `make wheel`.

    python tests/wheel.py                      every extra, PySpark and Python
    python tests/wheel.py none spark sql       these only
    python tests/wheel.py --short              those of .ci/run
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from tests.support.commands import command_lines  # noqa: E402
from tests.support.servers.s3_server import make_bucket, options_of, s3_server  # noqa: E402

ENVIRONMENTS = ROOT / ".wheel"
COMMANDS = ROOT / "tests" / "support" / "wheel" / "commands.py"
SPARK_NAMES = ROOT / "tests" / "support" / "wheel" / "spark_names.py"
OTHER_PYTHONS = ("3.10", "3.12", "3.13", "3.14")
SHORT = ("none", "spark", "connect", "sql", "cli")
# The README's session is the one of a cluster or a laptop; this one is small and has a port of its own.
_SESSION_LINE = re.compile(r"^spark = .*$", re.M)
_SMALL = '.config("spark.sql.shuffle.partitions", "2").config("spark.python.authenticate.socketTimeout", "300s")'
_CLASSIC = f'spark = SparkSession.builder.master("local[2]"){_SMALL}.getOrCreate()'
_LOADS = {
    "gcs": "import obstore.store; from pyhudi.storage import open_storage; open_storage('gs://b/t')",
    "azure": "import obstore.store; from pyhudi.storage import open_storage; open_storage('abfs://c@a.dfs.core.windows.net/')",
    "dynamodb": "import boto3; from pyhudi.locks import dynamodb",
    "zookeeper": "from pyhudi.locks import zookeeper; zookeeper._kazoo()",
    "glue": (
        "from pyhudi.model.options.catalogs.syncing import SyncOptions;"
        "from pyhudi.model.options.catalogs.glue import GlueOptions;"
        "from pyhudi.sync.glue import open_glue; open_glue(SyncOptions(glue=GlueOptions(region='us-east-1')))"
    ),
    "hive": "from pyhudi.storage.hive_metastore import HiveModules; HiveModules('It needs')",
    "metrics": "from pyhudi.listeners.reporters import prometheus; import prometheus_client",
    "delta": (
        "import deltalake, pyarrow as pa, pyhudi; deltalake.write_deltalake('d', pa.table({'id': ['a', 'b']}));"
        "pyhudi.import_table('d', 'h', record_key='id'); assert len(pyhudi.HudiTable.open('h')) == 2"
    ),
    "kafka": "import confluent_kafka; from pyhudi.streamer.sources.kafka import source",
    "kinesis": "import boto3; from pyhudi.streamer.sources.kinesis import source",
    "sqs": "import boto3; from pyhudi.streamer.sources.cloud_events import s3_queue",
    "protobuf": "import grpc_tools.protoc; from pyhudi.streamer.sources.kafka import protobuf",
    "jdbc": (
        "import sqlite3, psycopg, pymysql, pyhudi; d = sqlite3.connect('s.db'); k = 'hoodie.streamer.jdbc.';"
        "d.execute('CREATE TABLE s (id INTEGER)'); d.execute('INSERT INTO s VALUES (1), (2)'); d.commit();"
        "o = {'target-base-path': 't', 'record_key': 'id', 'source-class': 'JdbcSource'};"
        "o = {**o, k + 'url': 'jdbc:sqlite:s.db', k + 'table.name': 's'}; assert pyhudi.Streamer(o).run().rows == 2"
    ),
    "iceberg": "import pyiceberg.table; from pyhudi.table.imports import rows",
    "java": "from pyhudi.spark.java import java_home; print(java_home('java'))",
}


@dataclass(frozen=True)
class Case:
    """One environment. `plays`: what runs in it, in this order; `packages`: what is installed next to the wheel."""

    name: str
    plays: tuple[str, ...]
    extra: str = ""
    packages: tuple[str, ...] = ()
    python: str = ""

    @property
    def wheel(self) -> str:
        return f"[{self.extra}]" if self.extra else ""


def cases() -> list[Case]:
    """The whole matrix."""
    alone = [Case(extra, ("readme", "load"), extra) for extra in _LOADS]
    return [
        Case("none", ("readme", "names")),
        Case("spark", ("readme", "no script", "readme on spark", "classic first", "classic last"), "spark"),
        Case("connect", ("connect first",), "connect"),
        Case("sql", ("readme", "sql"), "sql"),
        Case("compiled-sqlglot", ("readme", "sql"), "sql", ("sqlglot[c]",)),
        Case("cli", ("readme", "commands"), "cli"),
        Case("aws", ("readme", "s3"), "aws"),
        Case("all", ("readme", "sql", "no script"), "all"),
        *alone,
        Case("spark35", ("readme", "readme on spark", "classic first"), "spark35"),
        Case("spark35-connect", ("readme", "readme on spark"), "spark35", ("pyspark[connect]==3.5.9",)),
        Case("numpy1", ("refused",), "", ("pyspark[connect]==3.5.9", "pyarrow>=26")),
        *(
            Case(f"pyspark-{version}", ("readme on spark", "classic first", "connect first"), "connect", (pin,))
            for version in ("4.0.5", "4.1.4", "4.2.1", "4.3.0")
            for pin in (f"pyspark=={version}",)
        ),
        *(
            Case(f"python-{version}", ("readme", "readme on spark", "connect first"), "connect", (), version)
            for version in OTHER_PYTHONS
        ),
    ]


def python_of(version: str) -> str | None:
    """An interpreter of this version on this machine, `sys.executable` for none; None where there is none."""
    if not version:
        return sys.executable
    pyenv = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    for path in [*map(str, pyenv), shutil.which(f"python{version}")]:
        if path and subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0:
            return path
    return None


def uv(*arguments: object) -> None:
    """Run uv with a cache of its own: it keeps a gigabyte for each build of PySpark from its sources."""
    environment = {**os.environ, "UV_CACHE_DIR": str(ENVIRONMENTS / "cache")}
    subprocess.run([sys.executable, "-m", "uv", *map(str, arguments)], check=True, env=environment)


def build() -> Path:
    """The wheel of this checkout."""
    folder = ENVIRONMENTS / "dist"
    shutil.rmtree(folder, ignore_errors=True)
    uv("build", "--quiet", "--wheel", "--out-dir", folder, ROOT)
    (wheel,) = folder.glob("*.whl")
    return wheel


def prepare(case: Case, wheel: Path, python: str) -> Path:
    """The Python of a new environment with the wheel, its extra, and what they bring."""
    folder = ENVIRONMENTS / case.name
    uv("venv", "--quiet", "--clear", "--python", python, folder)
    python_path = folder / "bin" / "python"
    uv("pip", "install", "--quiet", "--python", python_path, f"pyhudi{case.wheel} @ {wheel.as_uri()}", *case.packages)
    return python_path


def example(page: str, word: str) -> str:
    """The first Python example of a page that says the word, with its tables in the current folder."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S)
    text = next(block for block in blocks if word in block)
    return text.replace("/tmp/", "./").replace("/lake", "./lake").replace("1_000_000", "1_000")


@contextmanager
def command_of(play: str, case: Case, folder: Path) -> Iterator[list[str]]:
    """What the Python of the environment is called with."""
    if play == "s3":
        with s3_server() as port:
            make_bucket(port, "lake")
            code = example("README.md", "write_hudi(").replace("./rides", "s3a://lake/rides")
            code = code.replace('partition_by="city"', f'partition_by="city", storage_options={options_of(port)!r}')
            code = code.replace('rides")\n', f'rides", storage_options={options_of(port)!r})\n')
            yield _script(folder, play, code)
        return
    if play.startswith(("classic", "connect")):
        copied = shutil.copy(SPARK_NAMES, folder)
        yield [str(copied), *play.split()]
    elif play == "commands":
        yield [str(shutil.copy(COMMANDS, folder)), *command_lines()]
    elif play == "no script":
        yield [
            "-c",
            f"import pyhudi\nfrom pyspark.sql import SparkSession\n{_CLASSIC}\npyhudi.enable(spark)\nprint('done')",
        ]
    else:
        yield _script(folder, play, _code(play, case))


def _code(play: str, case: Case) -> str:
    if play == "readme":
        return example("README.md", "write_hudi(")
    if play == "readme on spark":
        return _SESSION_LINE.sub(_CLASSIC, example("README.md", "SparkSession"))
    if play == "sql":
        rows = "[{'id': id, 'city': 'rome', 'fare': 7.0} for id in 'ab']"
        rides = f"import pyhudi\npyhudi.write_hudi('./lake/rides', {rows}, record_key='id')\n"
        return rides + example("docs/sql-without-spark.md", "pyhudi.sql(")
    if play == "names":
        looks = "import pydoc, pyhudi\nassert 'enable' in pydoc.render_doc(pyhudi)\n"
        return looks + "for name in dir(pyhudi):\n    getattr(pyhudi, name)"
    if play == "refused":
        tries = "try:\n    from pyhudi import write_hudi\nexcept ImportError as error:\n    print(error)\n"
        return (
            tries + "    assert 'pyhudi[spark35]' in str(error)\nelse:\n    raise AssertionError('NumPy 1 was taken')"
        )
    return _LOADS[case.extra]


def _script(folder: Path, play: str, code: str) -> list[str]:
    path = folder / f"{play.replace(' ', '_')}.py"
    path.write_text(code + "\nprint('done')\n")
    return [str(path)]


def run(play: str, case: Case, python: Path, path_of_others: Path) -> str | None:
    """What went wrong, with the last words of the process; None where nothing did."""
    variables = ("HOME", "JAVA_HOME", "LANG", "TMPDIR")
    environment = {name: os.environ[name] for name in variables if name in os.environ}
    environment["SPARK_AUTH_SOCKET_TIMEOUT"] = "300"  # seconds that Python waits for the JVM of a busy machine
    places = [str(path_of_others), *(part for part in os.environ["PATH"].split(os.pathsep) if "venv" not in part)]
    environment["PATH"] = os.pathsep.join(places)
    with TemporaryDirectory() as folder, command_of(play, case, Path(folder)) as arguments:
        command = [str(python), *arguments]
        played = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=900)
    if played.returncode == 0 and played.stdout.rstrip().endswith("done"):
        return None
    return f"exit code {played.returncode}\n{played.stdout[-500:]}\n{played.stderr[-3000:]}"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="wheel.py", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(case.name for case in cases()))
    parser.add_argument("--short", action="store_true", help=f"only {', '.join(SHORT)}")
    parsed = parser.parse_args(arguments)
    names = parsed.names or (SHORT if parsed.short else [case.name for case in cases()])
    wheel = build()
    uv("venv", "--quiet", "--clear", "--python", sys.executable, ENVIRONMENTS / "other")
    failed, passed, absent = 0, 0, 0
    for case in [case for case in cases() if case.name in names]:
        interpreter = python_of(case.python)
        if interpreter is None:
            print(f"{case.name:<16} left out: no Python {case.python} here", flush=True)
            absent += 1
            continue
        began_s = time.monotonic()
        python = prepare(case, wheel, interpreter)
        outcomes = {play: run(play, case, python, ENVIRONMENTS / "other" / "bin") for play in case.plays}
        took_s = time.monotonic() - began_s
        words = ", ".join(f"{play}: {'FAILED' if outcome else 'ok'}" for play, outcome in outcomes.items())
        print(f"{case.name:<16} {took_s:>4.0f} s  {words}", flush=True)
        for play, outcome in outcomes.items():
            if outcome is not None:
                print(f"--- {case.name}, {play}: {outcome}", flush=True)
        shutil.rmtree(ENVIRONMENTS / case.name)
        uv("cache", "prune", "--quiet")
        failed += sum(outcome is not None for outcome in outcomes.values())
        passed += sum(outcome is None for outcome in outcomes.values())
    print(f"{passed} passed, {failed} failed, {absent} skipped")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
