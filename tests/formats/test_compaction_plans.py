"""Plans of compactions: real Hudi's are read and written again, forged ones are refused."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import fastavro
import pytest

from pyhudi.errors import CorruptFile, HudiError, UnsupportedTable
from pyhudi.formats.timeline.instant_files import encode_avro_record
from pyhudi.formats.timeline.plans import decode_compaction_plan, encode_compaction_plan
from pyhudi.model.plans import CompactionOperation, CompactionPlan, CompactionStrategyInfo

GOLDEN = [
    ("0.15.0", "g2_compaction_pending", 6),
    ("0.15.0", "g2_log_compaction", 6),
    ("1.0.2", "g2_compaction_pending", 8),
    ("1.0.2", "g2_log_compaction", 8),
    ("1.2.0", "g2_compaction_pending", 9),
    ("1.2.0", "g2_log_compaction", 9),
]
OPERATION = CompactionOperation(
    "p", "f-0", "1", "f-0_0-0-0_1.parquet", (".f-0_2.log.1_0-1-2",), {"TOTAL_LOG_FILES": 1.0}
)


def record(data: bytes) -> dict[str, Any]:
    body = next(iter(fastavro.reader(io.BytesIO(data))))
    assert isinstance(body, dict)
    body.pop("extraMetadata")  # depends on who called for the plan
    return body


@pytest.mark.parametrize(("version", "name", "table_version"), GOLDEN)
def test_real_hudis_plans_come_back_as_they_were(golden: Any, version: str, name: str, table_version: int) -> None:
    folder, _ = golden(version, name)
    plans = [path for path in Path(folder).rglob("*ompaction.requested") if "metadata" not in path.parts]
    assert plans
    for path in plans:
        data = path.read_bytes()
        plan = decode_compaction_plan(data)
        assert plan.operations
        assert (plan.strategy is not None) is ("logcompaction" in path.name)
        assert record(encode_compaction_plan(plan, table_version)) == record(data)


@pytest.mark.parametrize("table_version", [6, 8, 9])
def test_a_plan_comes_back(table_version: int) -> None:
    plan = CompactionPlan(
        (OPERATION, replace(OPERATION, data_file_name=None)), CompactionStrategyInfo("a.B", {"k": "v"}), True
    )
    assert decode_compaction_plan(encode_compaction_plan(plan, table_version)) == plan


def test_absolute_paths_of_old_plans_become_names() -> None:
    body = {
        "operations": [
            {
                "baseInstantTime": "1",
                "deltaFilePaths": ["s3://bucket/table/p/.f-0_2.log.1_0-1-2"],
                "dataFilePath": "s3://bucket/table/p/f-0_0-0-0_1.parquet",
                "fileId": "f-0",
                "partitionPath": "p",
                "metrics": {"TOTAL_LOG_FILES": 1.0},
                "bootstrapFilePath": None,
            }
        ],
        "extraMetadata": None,
        "version": 1,
        "strategy": None,
        "preserveHoodieMetadata": False,
        "missingSchedulePartitions": None,
    }
    assert decode_compaction_plan(encode_avro_record("HoodieCompactionPlan", body)).operations == (OPERATION,)


@pytest.mark.parametrize(
    "forged",
    [
        replace(OPERATION, partition_path="../other"),
        replace(OPERATION, partition_path=".hoodie/metadata/files"),
        replace(OPERATION, partition_path="/etc"),
        replace(OPERATION, data_file_name="passwd"),
        replace(OPERATION, data_file_name="other-0_0-0-0_1.parquet"),
        replace(OPERATION, log_file_names=(".other-0_2.log.1_0-1-2",)),
        replace(OPERATION, log_file_names=("..",)),
    ],
)
def test_a_plan_of_files_outside_its_file_groups_is_refused(forged: CompactionOperation) -> None:
    with pytest.raises(CorruptFile, match="plan names"):
        decode_compaction_plan(encode_compaction_plan(CompactionPlan((forged,)), 9))


def test_a_plan_of_bootstrapped_files_is_refused() -> None:
    plan = CompactionPlan((replace(OPERATION, bootstrap_file_path="/old/table/file.parquet"),))
    with pytest.raises(UnsupportedTable, match="bootstrapped"):
        decode_compaction_plan(encode_compaction_plan(plan, 9))


def test_every_cut_of_a_plan_is_an_error_of_the_family() -> None:
    data = encode_compaction_plan(CompactionPlan((OPERATION,)), 9)
    for length in range(len(data) - 16):  # without the closing sync mark the record is still whole
        with pytest.raises(HudiError):
            decode_compaction_plan(data[:length])
