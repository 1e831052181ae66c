"""Dagster: an asset that is written, and a job that takes care of its table. `dagster dev -f dagster_maintenance.py`"""

import os

import dagster as dg
import pyarrow as pa

from pyhudi import HudiTable, write_hudi

TABLE = os.environ.get("LAKE_TABLE", "/lake/rides")


@dg.asset
def rides(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
    rows = pa.table({"id": ["a", "b"], "city": ["rome", "oslo"], "fare": [1.0, 2.0]})
    written = write_hudi(TABLE, rows, record_key="id")
    return dg.MaterializeResult(metadata={"instant": written.instant_time, "inserted": written.inserted})


@dg.op(retry_policy=dg.RetryPolicy(max_retries=3, delay=60))
def clean_and_archive(context: dg.OpExecutionContext) -> None:
    table = HudiTable.open(TABLE)
    context.log.info(str(table.clean()))
    context.log.info(str(table.maintenance.archive()))
    for finding in table.inspect.health().warnings:
        context.log.warning(str(finding))


@dg.job
def maintenance() -> None:
    clean_and_archive()


definitions = dg.Definitions(
    assets=[rides],
    jobs=[maintenance],
    schedules=[dg.ScheduleDefinition(job=maintenance, cron_schedule="30 2 * * *")],
)
