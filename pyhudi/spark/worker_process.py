"""A Python worker of Spark while it runs a task of ours: how its errors leave, and what its collector walks through.

Source: daemon.py and worker.py of PySpark 3.5 to 4.3.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from pyhudi.spark.failures import spelled_out

__all__ = ["in_worker"]

_modules_kept = 0


@contextmanager
def in_worker() -> Iterator[None]:
    """Around the work of a task."""
    _keep_imports_out_of_collections()
    with spelled_out():
        yield


def _keep_imports_out_of_collections() -> None:
    """Spark has its workers collect garbage after every task. Walking through all that PyArrow, pandas and PyHudi have
    imported takes 50 to 100 ms, which is more than the work of a small task; the next collection passes over what is
    there now.

    Right behind such a collection there is no garbage that would stay for good. Once more where a task before this one
    has imported something.
    """
    global _modules_kept
    if len(sys.modules) != _modules_kept:
        gc.freeze()
        _modules_kept = len(sys.modules)
