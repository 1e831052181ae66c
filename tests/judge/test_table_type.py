"""PyHudi changes a table's type, real Hudi of that version reads it, writes on, and both go back again."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyhudi import HudiTable
from tests.support.judge.comparing import assert_pyhudi_reads, assert_same, write
from tests.support.judge.real_hudi import HUDI_OF_TABLE_VERSION, Judge
from tests.support.judge.stories import BY_VALUE, KEYS, MERGE_ON_READ, NO_COMPACTION, Story, log_steps, standard_steps

pytestmark = pytest.mark.slow
STEPS = {
    "COPY_ON_WRITE": ["read", "meta_columns", "incremental", "metadata_files", "upsert", "delete", "upsert_last"],
    "MERGE_ON_READ": [
        "read",
        "read_optimized",
        "meta_columns",
        "incremental",
        "metadata_files",
        "upsert",
        "delete",
        "compaction",
        "upsert_last",
    ],
}


def story_of(table_type: str, version: int) -> Story:
    by_value = BY_VALUE if version < 8 else {}
    if table_type == "MERGE_ON_READ":
        return Story(f"mor_{version}", version, {**KEYS, **MERGE_ON_READ, **by_value}, log_steps())
    return Story(f"cow_{version}", version, {**KEYS, **by_value}, standard_steps())


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize(("source", "target"), [("COPY_ON_WRITE", "MERGE_ON_READ"), ("MERGE_ON_READ", "COPY_ON_WRITE")])
def test_real_hudi_reads_and_writes_a_table_whose_type_was_changed_there_and_back(
    judge: Judge, tmp_path: Path, source: str, target: str, version: int
) -> None:
    story, table, hudi = story_of(source, version), tmp_path / "t", HUDI_OF_TABLE_VERSION[version]
    for step in story.steps:
        write(table, story, step)
    for number, kind in enumerate((target, source)):
        before = judge.rows(table, hudi)

        changed = HudiTable.open(table).change_type(kind)

        assert changed.target == kind
        returned = judge.rows(table, hudi)
        assert sorted(map(str, map(without_file, returned))) == sorted(map(str, map(without_file, before)))
        if not number:
            assert_same(returned, story.expected(), story.schema, f"Hudi {hudi} reads what became {kind}")
        assert_pyhudi_reads(table, returned, f"Hudi {hudi} reads what became {kind}")
        kept = tmp_path / f"kept_{number}"
        options = {**NO_COMPACTION, **(BY_VALUE if version < 8 else {})}
        steps = judge.check(table, hudi, steps=STEPS[kind], options=options, keep=str(kept))
        assert not steps["upsert"].get("skipped")
        assert_pyhudi_reads(kept, judge.rows(kept, hudi), f"Hudi {hudi} wrote on as {kind}")
        assert (logs(kept) > logs(table)) == (kind == "MERGE_ON_READ"), "Hudi writes as the type says"
        HudiTable.open(table).delete(where="ts = 10")


def logs(table: Path) -> int:
    return sum(".log." in path.name for path in table.rglob(".*") if ".hoodie" not in path.parts)


def without_file(row: dict[str, object]) -> list[tuple[str, object]]:
    """A compaction moves rows to another file."""
    return sorted((name, value) for name, value in row.items() if name != "_hoodie_file_name")
