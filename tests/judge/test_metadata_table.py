"""A metadata table of PyHudi, compacted and cleaned: real Hudi reads it, checks it and writes on, then PyHudi does."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable, write_hudi
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.table import SOLO, MetadataTable
from pyhudi.metadata.undo import is_log_compaction
from pyhudi.model.instant import ActionKind
from pyhudi.storage import open_storage
from tests.support.judge.comparing import assert_pyhudi_reads
from tests.support.judge.real_hudi import HUDI_OF_TABLE_VERSION, Judge
from tests.support.judge.stories import BY_VALUE, KEYS, MERGE_ON_READ, SCHEMA, Story, rows
from tests.support.tables.patched import noted_patches
from tests.support.tables.staged_index import blocks_of_index, small_staged_files

ON = {"hoodie.metadata.enable": "true"}
ONLY_FILES = {
    "hoodie.metadata.index.column.stats.enable": "false",
    "hoodie.metadata.index.partition.stats.enable": "false",
}
STEPS = ("open", "read", "metadata_files", "upsert", "delete", "clean", "metadata_after")
SLOW = pytest.mark.slow
CASES = [
    (9, {}),
    pytest.param(8, {}, marks=SLOW),
    pytest.param(6, {}, marks=SLOW),
    pytest.param(9, MERGE_ON_READ, marks=SLOW),
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


@pytest.mark.filterwarnings("error:.*It was rebuilt.*")
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


INDEXED = {
    **ON,
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.metadata.record.index.enable": "true",  # the same to releases before 1.1
    "hoodie.metadata.index.column.stats.enable": "true",
}
KEPT = {"files", "column_stats", "record_index"}


def builds(table: Path) -> set[str]:
    """Instants that built partitions."""
    found = MetadataTable.open(MetaClient.load(open_storage(str(table))))
    assert found is not None
    assert set(found.partitions) >= KEPT
    return {i.requested_time for i in found.meta.timeline if i.requested_time.startswith(SOLO)}


CHECKS, AFTER = ("metadata_files", "metadata_index"), "metadata_after"


def assert_hudi_keeps_the_indexes_up(
    judge: Judge, table: Path, kept: Path, hudi: str, checks: tuple[str, ...] = (*CHECKS, AFTER), **more: str
) -> None:
    """Real Hudi reads and checks the table's metadata table, and writes on in `kept` without building one anew."""
    all_steps = ["open", "read", *(name for name in CHECKS if name in checks), "upsert", "delete", AFTER]
    steps = judge.check(table, hudi, steps=all_steps, keep=str(kept), options={**INDEXED, **more})
    for name in (*checks, "upsert"):
        assert not steps[name].get("skipped"), steps[name]
    assert builds(kept) == builds(table)
    assert HudiTable.open(str(kept)).metadata.validate() == ()


@pytest.mark.filterwarnings("error:.*It was rebuilt.*")
@pytest.mark.parametrize(
    ("version", "kind"),
    [(9, MERGE_ON_READ), pytest.param(9, {}, marks=SLOW), pytest.param(8, MERGE_ON_READ, marks=SLOW)],
)
def test_real_hudi_keeps_our_indexes_up_without_rebuilding_them_and_so_do_we(
    version: int, kind: dict[str, str], judge: Judge, tmp_path: Path
) -> None:
    story, hudi = Story(f"indexes_v{version}", version, {**KEYS, **kind}, ()), HUDI_OF_TABLE_VERSION[version]
    table, kept = tmp_path / "table", tmp_path / "kept"
    own = {name: text for name, text in INDEXED.items() if "metadata.record.index" not in name}

    def write(path: Path, numbers: range, ts: int) -> None:
        data = pa.Table.from_pylist(rows(numbers, ts), schema=SCHEMA)
        write_hudi(str(path), data, operation="upsert", options={**story.write_options(), **own})

    for number in range(3):
        write(table, range(number * 3, number * 3 + 6), number)
    assert_hudi_keeps_the_indexes_up(judge, table, kept, hudi)
    built = builds(kept)

    write(kept, range(4, 20), 100)
    assert builds(kept) == built
    assert HudiTable.open(str(kept)).metadata.validate() == ()
    assert_pyhudi_reads(kept, judge.rows(kept, hudi), "PyHudi reads what it wrote on")
    judge.check(kept, hudi, steps=["open", "metadata_files", "metadata_index"], options=INDEXED)


@pytest.mark.filterwarnings("error:.*It was rebuilt.*")
@pytest.mark.parametrize("version", [9, pytest.param(8, marks=SLOW), pytest.param(6, marks=SLOW)])
def test_real_hudi_finds_the_keys_of_a_load_whose_tasks_wrote_the_record_index(
    version: int, judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_staged_files(monkeypatch)
    story, hudi = Story(f"pieces_v{version}", version, {**KEYS, **MERGE_ON_READ}, ()), HUDI_OF_TABLE_VERSION[version]
    table, kept = tmp_path / "table", tmp_path / "kept"
    own = {name: text for name, text in INDEXED.items() if "metadata.record.index" not in name}
    for number in range(2):
        data = pa.Table.from_pylist(rows(range(number * 40, number * 40 + 40), 1), schema=SCHEMA)
        write_hudi(str(table), data, operation="bulk_insert", options={**story.write_options(), **own})
    assert max(blocks_of_index(MetaClient.load(open_storage(str(table))))) > 1
    assert_hudi_keeps_the_indexes_up(judge, table, kept, hudi)


@pytest.mark.filterwarnings("error:.*It was rebuilt.*")
@pytest.mark.parametrize("version", [9, pytest.param(8, marks=SLOW), pytest.param(6, marks=SLOW)])
def test_real_hudi_goes_on_with_base_files_that_were_patched_and_we_patch_its_own(
    version: int, judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    story, hudi = Story(f"patched_v{version}", version, {**KEYS, **MERGE_ON_READ}, ()), HUDI_OF_TABLE_VERSION[version]
    table, kept = tmp_path / "table", tmp_path / "kept"
    own = {name: text for name, text in INDEXED.items() if "metadata.record.index" not in name}
    patched = noted_patches(monkeypatch)

    def write(path: Path, numbers: range, ts: int, operation: str = "upsert") -> None:
        data = pa.Table.from_pylist(rows(numbers, ts), schema=SCHEMA)
        often = {"hoodie.metadata.compact.max.delta.commits": "2"}
        write_hudi(str(path), data, operation=operation, options={**story.write_options(), **own, **often})

    write(table, range(200), 0, "bulk_insert")
    for number in range(6):
        write(table, range(190 + number * 20, 215 + number * 20), 1 + number)
    assert sum("record_index" in path for path in patched) > 2
    assert HudiTable.open(str(table)).metadata.validate() == ()
    # Releases before 1.1 can't read metadata tables with compacted indexes as tables, their own either; they use them.
    checks = (*CHECKS, AFTER) if version == 9 else ()
    assert_hudi_keeps_the_indexes_up(judge, table, kept, hudi, checks, **{"hoodie.index.type": "RECORD_INDEX"})

    before = len(patched)
    for number in range(6):
        write(kept, range(400 + number * 20, 425 + number * 20), 100 + number)
    assert any("record_index" in path for path in patched[before:])
    assert HudiTable.open(str(kept)).metadata.validate() == ()
    assert_pyhudi_reads(kept, judge.rows(kept, hudi), "PyHudi reads what it wrote on")
    judge.check(kept, hudi, steps=["open", *CHECKS[: len(checks)]], options=INDEXED)


LOGS = {
    **ON,
    "hoodie.metadata.log.compaction.enable": "true",
    "hoodie.metadata.log.compaction.blocks.threshold": "3",
    "hoodie.metadata.compact.max.delta.commits": "100",
    "hoodie.metadata.index.column.stats.enable": "true",
}


def log_compactions(table: Path) -> set[str]:
    found = MetadataTable.open(MetaClient.load(open_storage(str(table))))
    assert found is not None
    return {i.requested_time for i in found.meta.timeline if is_log_compaction(found, i)}


@pytest.mark.filterwarnings("error:.*It was rebuilt.*")
@pytest.mark.parametrize(
    ("version", "kind"), [(9, {}), pytest.param(8, MERGE_ON_READ, marks=SLOW), pytest.param(6, {}, marks=SLOW)]
)
def test_real_hudi_goes_on_with_a_log_compacted_metadata_table_and_so_does_pyhudi(
    version: int, kind: dict[str, str], judge: Judge, tmp_path: Path
) -> None:
    options = {**KEYS, **kind, **(BY_VALUE if version < 8 else {})}
    story, hudi = Story(f"log_compacted_v{version}", version, options, ()), HUDI_OF_TABLE_VERSION[version]
    table, kept = tmp_path / "table", tmp_path / "kept"

    def write(path: Path, numbers: range, ts: int) -> None:
        data = pa.Table.from_pylist(rows(numbers, ts), schema=SCHEMA)
        write_hudi(str(path), data, operation="upsert", options={**story.write_options(), **LOGS})

    for number in range(7):
        write(table, range(number, number + 6), number)
    own = log_compactions(table)
    assert own
    assert not compactions(table)
    # 1.0.2 counts double what it has log compacted itself.
    theirs = {key: text for key, text in LOGS.items() if version != 8 or "log.compaction" not in key}
    steps = judge.check(table, hudi, steps=list(STEPS), keep=str(kept), options=theirs)
    for name in ("metadata_files", "upsert", "metadata_after"):
        assert not steps[name].get("skipped"), steps[name]
    assert own <= log_compactions(kept)
    assert HudiTable.open(str(kept)).metadata.validate() == ()

    for number in range(4):
        write(kept, range(number, number + 3), 100 + number)
    assert HudiTable.open(str(kept)).metadata.validate() == ()
    assert_pyhudi_reads(kept, judge.rows(kept, hudi), "PyHudi reads what it wrote on")
