"""Airflow: what has come since the last run, every ten minutes. Copy it into the folder of the DAGs.

The checkpoint is in the table. So a run that failed, was killed, or did not happen needs no care: the next one goes on.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta

from airflow.sdk import dag, task

CONFIG = os.environ.get("LAKE_PIPELINE", "/etc/pyhudi/lake.toml")


@dag(
    schedule=timedelta(minutes=10),
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 3, "retry_delay": timedelta(minutes=1)},
)
def lake_pipeline() -> None:
    @task
    def bring() -> dict[str, object]:
        from pyhudi import Streamer

        streamer = Streamer(CONFIG)
        try:
            return streamer.run(until_empty=True, told=print).to_dict()
        finally:
            streamer.close()

    bring()


pipeline = lake_pipeline()
