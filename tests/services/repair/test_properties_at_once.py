"""Properties that several processes change at once: each holds the table's lock, and no change is lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable, repair_properties, write_hudi
from pyhudi.errors import LockTimeout
from pyhudi.locks import hold, open_lock
from pyhudi.model.options import WriteOptions
from pyhudi.storage import open_storage
from tests.support.source import ROOT

SETS = """
import sys
from pyhudi import HudiTable
for number in range(12):
    HudiTable.open(sys.argv[1]).maintenance.set_properties({f"hoodie.by.set.{sys.argv[2]}.{number}": "x"})
"""
REPAIRS = """
import sys
from pyhudi import repair_properties
for number in range(12):
    given = {f"hoodie.by.repair.{sys.argv[2]}.{number}": "x"}
    repair_properties(sys.argv[1], properties=given, dry_run=False)
"""
SHORT = {"hoodie.write.lock.wait_time_ms": "100"}


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    write_hudi(tmp_path / "t", pa.table({"id": ["a"]}), record_key="id")
    return HudiTable.open(tmp_path / "t")


@pytest.mark.thorough
@pytest.mark.parametrize("scripts", [(SETS, SETS), (REPAIRS, SETS), (REPAIRS, REPAIRS)])
def test_no_change_of_two_processes_is_lost(table: HudiTable, scripts: tuple[str, str]) -> None:
    command = [sys.executable, "-c"]
    running = [
        subprocess.Popen([*command, script, table.path, f"w{n}"], cwd=ROOT, stderr=subprocess.PIPE, text=True)
        for n, script in enumerate(scripts)
    ]
    said = [process.communicate()[1] for process in running]

    assert [process.returncode for process in running] == [0, 0], said
    found = HudiTable.open(table.path).state().config.properties
    assert sum(key.startswith("hoodie.by.") for key in found) == 24


def test_a_change_waits_for_the_lock_and_a_dry_run_does_not(table: HudiTable) -> None:
    storage = open_storage(table.path)
    before = storage.read(".hoodie/hoodie.properties")
    more = {"hoodie.more": "x"}
    with hold(open_lock(WriteOptions.parse({}).lock, storage), 5):
        assert table.maintenance.repair.properties(properties=more).items
        assert table.maintenance.set_properties(more, dry_run=True).differences
        with pytest.raises(LockTimeout):
            table.maintenance.repair.properties(properties=more, dry_run=False, options=SHORT)
        with pytest.raises(LockTimeout):
            repair_properties(table.path, properties=more, dry_run=False, options=SHORT)
        with pytest.raises(LockTimeout):
            table.maintenance.set_properties(more, options=SHORT)
    assert storage.read(".hoodie/hoodie.properties") == before
    assert table.maintenance.repair.properties(properties=more, dry_run=False, options=SHORT).is_done
