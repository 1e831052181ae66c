"""Fast paths that all tests shall take, or none: `PYHUDI_FORCED="copied-row-groups=always page-checksums=never"`.

A path that depends on sizes is taken by few of the small tables that tests write. Tables come out the same either way,
so that all tests of golden tables, of faults and of the judge hold as they are; those of the path itself need not.
Processes that tests start, and Spark's tasks, choose as always.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module

import pytest

__all__ = ["force"]


def force(names: str) -> None:
    """Take the paths that are named, or not. Raises: pytest.UsageError for a name that is none."""
    for name in names.split():
        if name not in _PATHS:
            raise pytest.UsageError(f"PYHUDI_FORCED: {name} is none of {', '.join(_PATHS)}")
        _PATHS[name]()


def _set(module: str, name: str, value: object) -> None:
    setattr(import_module(module), name, value)


def _write_no_page_checksums() -> None:
    from pyhudi.model.options.files import DEFAULT_DAMAGE, DamageOptions

    object.__setattr__(DEFAULT_DAMAGE, "page_checksums", False)
    *others, page_checksums = DamageOptions.__init__.__defaults__  # type: ignore[misc]
    assert page_checksums is True
    DamageOptions.__init__.__defaults__ = (*others, False)  # type: ignore[attr-defined]


_MERGED = "pyhudi.spark.merged"
_PATHS: Mapping[str, Callable[[], None]] = {
    "copied-row-groups=always": partial(_set, "pyhudi.filegroup.write.merge", "COPIED_FROM", 0.0),
    "copied-row-groups=never": partial(_set, "pyhudi.filegroup.write.merge", "COPIED_FROM", math.inf),
    "page-checksums=never": _write_no_page_checksums,
    # Merge-on-read tables on Spark, from the path for the smallest logs to the one for the largest.
    "split-cache=never": partial(_set, _MERGED, "split_key", lambda *_: None),
    "flags=never": partial(_set, _MERGED, "_FLAGS", -1),  # replaced rows leave by their numbers
    "driver-logs=never": partial(_set, _MERGED, "_SLICES_HERE", -1),  # tasks read log files
    "replaced-rows=never": partial(_set, _MERGED, "_LOG_BYTES_MAX", -1),  # Python tasks merge whole slices
}
