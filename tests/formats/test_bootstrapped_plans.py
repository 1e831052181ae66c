"""Plans of bootstrapped files are refused with the file, what the plan does to them, and who can run it."""

from __future__ import annotations

import io

import fastavro
import pytest

from pyhudi.errors import UnsupportedTable
from pyhudi.formats.timeline.plans import (
    decode_clustering_plan,
    decode_compaction_plan,
    encode_clustering_plan,
    encode_compaction_plan,
)
from pyhudi.model.plans import ClusteringGroup, ClusteringPlan, ClusteringSlice, CompactionOperation, CompactionPlan

BASE, LOG, OLD = "f-0_0-0-0_1.parquet", ".f-0_2.log.1_0-1-2", "/old/table/file.parquet"


def bootstrapped_clustering() -> bytes:
    plan = ClusteringPlan((ClusteringGroup((ClusteringSlice("x", "f-0", BASE, (LOG,)),), 1),), "S")
    reader = fastavro.reader(io.BytesIO(encode_clustering_plan(plan, 9, str)))
    (body,) = reader
    assert isinstance(body, dict)
    body["clusteringPlan"]["inputGroups"][0]["slices"][0]["bootstrapFilePath"] = OLD
    out = io.BytesIO()
    assert reader.writer_schema is not None
    fastavro.writer(out, reader.writer_schema, [body])
    return out.getvalue()


def test_a_clustering_of_bootstrapped_files_is_refused() -> None:
    with pytest.raises(UnsupportedTable, match=r"^x\.clustering: the plan clusters bootstrapped files; let Apache"):
        decode_clustering_plan(bootstrapped_clustering(), "x.clustering")


def test_a_compaction_of_bootstrapped_files_is_refused() -> None:
    operation = CompactionOperation("x", "f-0", "1", BASE, (LOG,), {}, bootstrap_file_path=OLD)
    data = encode_compaction_plan(CompactionPlan((operation,)), 9)
    with pytest.raises(UnsupportedTable, match=r"^x\.compaction: the plan compacts bootstrapped files; let Apache"):
        decode_compaction_plan(data, "x.compaction")
