"""Metrics of rounds, by the names of Hudi's HoodieStreamerMetrics: `<prefix>.deltastreamer.<metric>`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyhudi.listeners.metrics import count, set_gauges, time
from pyhudi.model.options import WriteOptions
from pyhudi.storage.clock import Clock
from pyhudi.streamer.pipeline import Round
from pyhudi.streamer.settings import PipelineSettings

if TYPE_CHECKING:
    from pyhudi.spark.names import SparkSession

__all__ = ["RoundMetrics"]

_ACTION = "deltastreamer"


class RoundMetrics:
    """The numbers of one table's rounds since this process opened its pipeline."""

    def __init__(self, settings: PipelineSettings, clock: Clock, spark: SparkSession | None = None) -> None:
        session: dict[str, str] = {}
        if spark is not None:
            from pyhudi.spark.session import hudi_options

            session = hudi_options(spark)
        self._options = WriteOptions.parse(settings.write, session)
        self._clock = clock
        self._succeeded = self._failed = self._in_a_row = 0
        self._of_source: dict[str, float] = {}

    def succeeded(self, table_name: str, one: Round | None, seconds: float) -> None:
        """A round has ended. `one`: what it did, None where there was nothing new."""
        if not self._options.metrics.is_on:
            return
        self._succeeded += 1
        self._in_a_row = 0
        time(self._options, table_name, f"timer.{_ACTION}", seconds)
        # A source with nothing new has nothing that waits.
        self._of_source = dict.fromkeys(self._of_source, 0.0)
        if one is not None:
            self._of_source |= {
                **one.gauges,
                **{f"kafkaLag.{partition}": count for partition, count in one.lag.items()},
            }
        self._set(table_name, {"duration": seconds * 1000, "lastSync": self._clock.now_ms(), **self._of_source})
        if one is not None:
            for name, number in (("rows", one.rows), ("rejected", one.rejected), ("lost", one.lost)):
                count(self._options, table_name, f"{_ACTION}.{name}", number)

    def failed(self, table_name: str) -> None:
        """A round has failed."""
        if not self._options.metrics.is_on:
            return
        self._failed += 1
        self._in_a_row += 1
        self._set(table_name, {})

    def _set(self, table_name: str, more: dict[str, float]) -> None:
        gauges = {
            **more,
            "numSuccessfulSyncs": self._succeeded,
            "numFailedSyncs": self._failed,
            "numConsecutiveFailures": self._in_a_row,
            "heartbeatTimestampMs": self._clock.now_ms(),
        }
        set_gauges(self._options, table_name, {f"{_ACTION}.{name}": value for name, value in gauges.items()})
