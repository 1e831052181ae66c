"""Processes that know nothing of each other, and give no option for it, write to one table, which the first makes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from pyhudi import HudiTable
from pyhudi.meta_client import MetaClient
from pyhudi.model.options import WriteOptions
from pyhudi.queries.validation import validate
from pyhudi.storage.local import LocalStorage
from tests.support.writers.own_rows import write_at_once


@pytest.mark.parametrize(
    ("writers", "writes", "operation", "table_type"),
    [
        (2, 4, "upsert", "COPY_ON_WRITE"),
        (3, 3, "insert", "MERGE_ON_READ"),
        pytest.param(2, 80, "upsert", "COPY_ON_WRITE", marks=pytest.mark.slow),
        pytest.param(2, 80, "insert", "COPY_ON_WRITE", marks=pytest.mark.slow),
        pytest.param(2, 80, "upsert", "MERGE_ON_READ", marks=pytest.mark.slow),
        pytest.param(3, 60, "insert", "MERGE_ON_READ", marks=pytest.mark.slow),
        pytest.param(8, 25, "upsert", "COPY_ON_WRITE", marks=pytest.mark.slow),
    ],
)
def test_every_row_whose_write_returned_is_there_once(
    writers: int, writes: int, operation: str, table_type: str, tmp_path: Path
) -> None:
    said = write_at_once(tmp_path / "t", writers, writes, operation, table_type)

    rows = Counter(HudiTable.open(tmp_path / "t").scan().to_arrow().column("id").to_pylist())
    assert rows == Counter(f"w{n}-{number}" for n in range(writers) for number in range(writes))
    assert [warned for _, warned in said] == [[]] * writers, "the metadata table was built anew"
    assert validate(MetaClient.load(LocalStorage(str(tmp_path / "t")))) == ()


@pytest.mark.thorough
def test_who_names_no_mode_is_one_of_many_writers() -> None:
    options = WriteOptions.parse({})

    assert options.concurrency.is_optimistic
    assert options.concurrency.conflict_retries > 0
    assert options.failed_writes_policy == "LAZY"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("given", "policy"),
    [
        ({"hoodie.write.concurrency.mode": "SINGLE_WRITER"}, "EAGER"),
        ({"hoodie.clean.failed.writes.policy": "EAGER"}, "EAGER"),
        ({"hoodie.cleaner.policy.failed.writes": "EAGER"}, "EAGER"),
        ({"hoodie.clean.failed.writes.policy": "NEVER"}, "NEVER"),
        ({"hoodie.write.concurrency.mode": "SINGLE_WRITER", "hoodie.clean.failed.writes.policy": "LAZY"}, "LAZY"),
    ],
)
def test_a_single_writer_is_one_that_says_so(given: dict[str, str], policy: str) -> None:
    options = WriteOptions.parse(given)

    assert not options.concurrency.has_many_writers
    assert options.failed_writes_policy == policy


@pytest.mark.thorough
def test_a_mode_that_is_named_retries_as_often_as_hudi_says() -> None:
    options = WriteOptions.parse({"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"})

    assert options.concurrency.conflict_retries == 0
