"""Bodies of clean plans: what is written is read."""

from __future__ import annotations

from pyhudi.formats.timeline.clean_plans import decode_clean_plan, encode_clean_plan
from pyhudi.model.plans import KEEP_LATEST_COMMITS, CleanPlan, RetainedInstant


def test_a_plan_is_read_as_it_was_written() -> None:
    plan = CleanPlan(
        policy=KEEP_LATEST_COMMITS,
        earliest=RetainedInstant("20260102000000000", "commit", "COMPLETED"),
        last_commit="20260103000000000",
        files={
            "p": ("a-0_0-1-0_20260101000000000.parquet", "b-0_0-1-0_20260101000000000.parquet"),
            "emptied": ("c-0_0-1-0_20260101000000000.parquet",),
        },
        partitions=("emptied",),
        extra_metadata={"who": "what"},
    )
    assert decode_clean_plan(encode_clean_plan(plan, lambda path: f"/t/{path}")) == plan
