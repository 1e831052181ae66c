"""A small table to export, and a writer that it has beside exports."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyhudi import HudiTable, write_hudi
from pyhudi.errors import WriteConflict

__all__ = ["OFF", "commits", "export_beside_a_writer", "row", "written"]

OFF = {"hoodie.metadata.enable": "false"}


def row(id: int, city: str = "a", v: int = 1) -> dict[str, Any]:
    return {"id": id, "city": city, "v": v}


def written(path: Path, **options: str) -> HudiTable:
    rows = [row(1), row(2), row(3, "b")]
    write_hudi(str(path), rows, record_key="id", partition_by="city", options={**OFF, **options})
    return HudiTable.open(path)


def commits(table: HudiTable) -> list[str]:
    return [one.requested_time for one in table.state().timeline.commits()]


def export_beside_a_writer(table: HudiTable, export: Callable[[HudiTable], object], writes: int) -> None:
    """Two threads export as often as they can while rows are written. Asserts that none fails."""
    failures: list[BaseException] = []
    is_over = threading.Event()

    def export_often() -> None:
        mine = HudiTable.open(table.path)
        while not is_over.is_set():
            try:
                export(mine)
            except WriteConflict:
                continue
            except BaseException as error:
                failures.append(error)
                return

    threads = [threading.Thread(target=export_often) for _ in range(2)]
    for thread in threads:
        thread.start()
    for v in range(2, 2 + writes):
        table.upsert([row(1, v=v), row(100 + v, f"c{v % 2}")], options=OFF)
    is_over.set()
    for thread in threads:
        thread.join()
    assert failures == []
