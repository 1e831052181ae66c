"""The Spark tests on several versions of PySpark, each in a virtual environment of its own, and one table of what came
of it. Called by `make sparks`.

    python tests/sparks.py                        all versions, classic and Connect
    python tests/sparks.py 3.5.9 4.0.5 --session classic
    python tests/sparks.py 3.5.9 --quick          the smaller set of .ci/run
    python tests/sparks.py 3.5.9 -- -k types -x   what follows -- goes to pytest
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENTS = ROOT / ".sparks"
VERSIONS = ("3.5.9", "4.0.5", "4.1.4", "4.2.1", "4.3.0")
_AS_WRITTEN = argparse.RawDescriptionHelpFormatter
SESSIONS = ("classic", "connect")
QUICK = ("test_capabilities.py", "test_engine.py", "test_types.py", "test_scripts.py", "test_sql_lacking.py")
CLUSTER = "tests/spark/test_cluster.py"
# Spark 3.5 asks for these without saying so: setuptools has the distutils that Python 3.12 has no longer.
PINS = {"3.5": ("setuptools<81",)}
# The server of Spark Connect 3.5 is no part of PySpark: Spark fetches it by Maven's coordinates, unless
# PYSPARK_SUBMIT_ARGS says where it is ("--jars spark-connect_2.12-3.5.7.jar pyspark-shell").
CONNECT_SERVER = "--packages org.apache.spark:spark-connect_2.12:{version} pyspark-shell"


@dataclass(frozen=True)
class Outcome:
    """What the tests on one version in one kind of session came to."""

    version: str
    session: str
    passed: int
    failed: int
    skipped: int
    took_s: float

    @property
    def line(self) -> str:
        counts = f"{self.passed:>7} {self.failed:>7} {self.skipped:>8}"
        return f"{self.version:<8} {self.session:<8} {counts} {self.took_s:>8.0f}"


def prepare(version: str, python: str) -> Path:
    """The Python of the version's environment, made when it is not there."""
    folder = ENVIRONMENTS / version
    python_path = folder / "bin" / "python"
    ready = folder / ".ready"
    if (
        ready.exists() and ready.stat().st_mtime > (ROOT / "pyproject.toml").stat().st_mtime
    ):  # else dependencies changed
        return python_path
    print(f"making {folder.relative_to(ROOT)}", flush=True)
    subprocess.run([python, "-m", "venv", str(folder)], check=True)
    pip = [str(python_path), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    # PySpark is built from its sources, which older versions can't do with what a new environment brings.
    subprocess.run([*pip, "--upgrade", "pip", "wheel", *pins(version)], check=True)
    subprocess.run([*pip, "-e", f"{ROOT}[connect,test]", f"pyspark=={version}", *pins(version)], check=True)
    ready.touch()
    return python_path


def pins(version: str) -> tuple[str, ...]:
    return PINS.get(version.rpartition(".")[0], ())


def run(version: str, session: str, python: Path, tests: Sequence[str], more: Sequence[str]) -> Outcome:
    """The tests in one process; Spark's part of the environment is set so that no other PySpark gets in the way."""
    report = ENVIRONMENTS / f"{version}-{session}.xml"
    report.unlink(missing_ok=True)
    environment = {key: text for key, text in os.environ.items() if key not in ("SPARK_HOME", "PYSPARK_PYTHON")}
    environment |= {"PYHUDI_SPARK": session, "PYTHONPATH": str(ROOT)}
    if session == "connect" and version.startswith("3."):
        environment.setdefault("PYSPARK_SUBMIT_ARGS", CONNECT_SERVER.format(version=version))
    command = [str(python), "-m", "pytest", *tests, "-m", "not judge and not slow", f"--junitxml={report}", *more]
    print(f"PySpark {version}, {session}", flush=True)
    began_s = time.monotonic()
    subprocess.run(command, cwd=ROOT, env=environment, check=False)
    took_s = time.monotonic() - began_s
    if not report.exists():
        return Outcome(version, session, 0, 1, 0, took_s)
    suite = next(ElementTree.parse(report).getroot().iter("testsuite"))
    total, failed, skipped = (int(suite.get(name, 0)) for name in ("tests", "failures", "skipped"))
    failed_in_all = failed + int(suite.get("errors", 0))
    return Outcome(version, session, total - failed_in_all - skipped, failed_in_all, skipped, took_s)


def tests_of(version: str, versions: Sequence[str], quick: bool) -> list[str]:
    """What runs on a version: a cluster of its own is started on the oldest and on the newest only."""
    if quick:
        return [f"tests/spark/{name}" for name in QUICK]
    inner = version not in (versions[0], versions[-1])
    return ["tests/spark", *([f"--ignore={CLUSTER}"] if inner else [])]


def main(arguments: Sequence[str]) -> int:
    own_end = list(arguments).index("--") if "--" in arguments else len(arguments)
    parser = argparse.ArgumentParser(prog="sparks.py", description=__doc__, formatter_class=_AS_WRITTEN)
    parser.add_argument("versions", nargs="*", default=VERSIONS, metavar="VERSION")
    parser.add_argument("--session", choices=SESSIONS, action="append", help="default: both")
    parser.add_argument("--quick", action="store_true", help="a smaller set of tests")
    parser.add_argument("--python", default=sys.executable, help="for environments that are not there")
    parsed = parser.parse_args(arguments[:own_end])
    more = arguments[own_end + 1 :]
    outcomes = []
    for version in parsed.versions:
        python = prepare(version, parsed.python)
        tests = tests_of(version, parsed.versions, parsed.quick)
        outcomes += [run(version, session, python, tests, more) for session in parsed.session or SESSIONS]
    print(f"\n{'PySpark':<8} {'session':<8} {'passed':>7} {'failed':>7} {'left out':>8} {'seconds':>8}")
    for outcome in outcomes:
        print(outcome.line)
    return int(any(outcome.failed for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
