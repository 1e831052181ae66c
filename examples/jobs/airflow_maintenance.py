"""Airflow: a commandline task and a Python task on one table. Copy it into the folder of the DAGs.

Each task is one process. When Airflow stops it with SIGTERM, it takes back what it has not committed, and ends.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import dag, task

TABLE = os.environ.get("LAKE_TABLE", "/lake/rides")


@dag(
    schedule="30 2 * * *",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    default_args={"retries": 3, "retry_delay": timedelta(minutes=5)},  # exit code 4 is a conflict: later it goes
)
def lake_maintenance() -> None:
    clean = BashOperator(task_id="clean", bash_command=f"pyhudi clean {TABLE} --yes --json", append_env=True)

    @task
    def check() -> dict[str, object]:
        from pyhudi import HudiTable

        health = HudiTable.open(TABLE).inspect.health()
        for finding in health.warnings:
            print(finding)
        return {"healthy": health.is_healthy, "commits": health.commits}

    clean >> check()


maintenance = lake_maintenance()
