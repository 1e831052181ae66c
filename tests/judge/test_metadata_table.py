"""A metadata table of PyHudi's, compacted and cleaned, is read, checked and gone on with by real Hudi; and PyHudi goes
on with what Hudi has made of it.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable, write_hudi
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.instant import ActionKind
from pyhudi.storage import open_storage
from tests.support.judge.comparing import assert_pyhudi_reads
from tests.support.judge.real_hudi import HUDI_OF_TABLE_VERSION, Judge
from tests.support.judge.stories import BY_VALUE, KEYS, MERGE_ON_READ, SCHEMA, Story, rows

ON = {"hoodie.metadata.enable": "true"}
ONLY_FILES = {
    "hoodie.metadata.index.column.stats.enable": "false",
    "hoodie.metadata.index.partition.stats.enable": "false",
}
STEPS = ("open", "read", "metadata_files", "upsert", "delete", "clean", "metadata_after")
SLOW = pytest.mark.slow
CASES = [
    (9, {}),
    (8, {}),
    (6, {}),
    pytest.param(9, MERGE_ON_READ, marks=SLOW),
    pytest.param(8, MERGE_ON_READ, marks=SLOW),
    pytest.param(6, MERGE_ON_READ, marks=SLOW),
]
WRITES = 12  # the tenth compacts the metadata table
WRITES_ON = 11


def upsert(table: Path, story: Story, numbers: range, ts: int) -> None:
    data = pa.Table.from_pylist(rows(numbers, ts), schema=SCHEMA)
    write_hudi(str(table), data, operation="upsert", options={**story.write_options(), **ON})


def compactions(table: Path) -> set[str]:
    found = MetadataTable.open(MetaClient.load(open_storage(str(table))))
    assert found is not None
    return {i.requested_time for i in found.meta.timeline.completed().of([ActionKind.COMMIT])}


@pytest.mark.filterwarnings("error:.*It was built anew.*")
@pytest.mark.parametrize(("version", "kind"), CASES)
def test_real_hudi_goes_on_with_a_compacted_metadata_table_and_so_does_pyhudi(
    version: int, kind: dict[str, str], judge: Judge, tmp_path: Path
) -> None:
    options = {**KEYS, **kind, **(BY_VALUE if version < 8 else {})}
    story, hudi = Story(f"metadata_v{version}", version, options, ()), HUDI_OF_TABLE_VERSION[version]
    table, kept = tmp_path / "table", tmp_path / "kept"
    for number in range(WRITES):
        upsert(table, story, range(number, number + 6), number)
    own = compactions(table)
    assert own
    assert_pyhudi_reads(table, judge.rows(table, hudi), "PyHudi reads what it wrote")

    steps = judge.check(table, hudi, steps=list(STEPS), keep=str(kept), options=ONLY_FILES)
    for name in ("metadata_files", "upsert", "metadata_after"):
        assert not steps[name].get("skipped"), steps[name]
    assert own <= compactions(kept)  # Hudi went on, and built nothing anew

    before = max(compactions(kept))
    for number in range(WRITES_ON):
        upsert(kept, story, range(number, number + 3), 100 + number)
    assert max(compactions(kept)) > before
    assert HudiTable.open(str(kept)).metadata.validate() == ()
    assert_pyhudi_reads(kept, judge.rows(kept, hudi), "PyHudi reads what it wrote on")
    judge.check(kept, hudi, steps=["open", "metadata_files"], options=ONLY_FILES)
