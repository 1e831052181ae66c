"""The results of runs and checks of pipelines. For several tables: the sums, and each table's result by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyhudi.display import text_table
from pyhudi.errors import HudiError
from pyhudi.result import Json, Result
from pyhudi.streamer.pipeline import Round

__all__ = ["StreamerCheck", "StreamerRun", "TablesFailed", "sum_of", "text_of_lag"]

_SHOWN_PARTITIONS = 5  # those where most waits


@dataclass(frozen=True, slots=True, repr=False)
class StreamerRun(Result):
    """The result of a run. `rows`: written to the table; `rejected`: set aside, or left out; `lost`: no longer in the
    source. `checkpoint`: the start of the next run. `lag`: partition of the source → events that wait behind the last
    round. `tables`: for several tables each one's result. `error`: of its last round.
    """

    rounds: int = 0
    commits: int = 0
    rows: int = 0
    rejected: int = 0
    lost: int = 0
    checkpoint: str | None = None
    tables: Mapping[str, StreamerRun] = field(default_factory=dict)
    error: str | None = None
    lag: Mapping[str, int] = field(default_factory=dict)

    @property
    def failed(self) -> list[str]:
        """The tables whose last round failed."""
        return [name for name, one in self.tables.items() if one.error is not None]

    def __str__(self) -> str:
        aside = f", {self.rejected:,} did not fit" if self.rejected else ""
        lost = f", {self.lost:,} were lost at the source" if self.lost else ""
        at = f"; the next run begins at {self.checkpoint}" if self.checkpoint else ""
        failed = f"; failed: {self.error}" if self.error else ""
        text = f"{self.rows:,} rows in {self.commits} commits{aside}{lost}{text_of_lag(self.lag)}{at}{failed}"
        if not self.tables:
            return text
        names = f"; failed: {', '.join(self.failed)}" if self.failed else ""
        return "\n".join([*(f"{name}: {one}" for name, one in self.tables.items()), f"in all: {text}{names}"])

    def _and(self, one_round: Round) -> StreamerRun:
        return StreamerRun(
            self.rounds + 1,
            self.commits + (one_round.written is not None),
            self.rows + one_round.rows,
            self.rejected + one_round.rejected,
            self.lost + one_round.lost,
            one_round.checkpoint or self.checkpoint,
            lag=one_round.lag,
        )


@dataclass(frozen=True, slots=True, repr=False)
class StreamerCheck(Result):
    """The preview of a round. `rows`: the first ones, as they would be written; `columns`: name → type; `waiting`: rows
    that were read for it; `rejected`: reasons of rows that don't fit. `tables`: for several tables each one's result.
    `error`: why the round would fail.
    """

    target: str
    source: str
    begins_at: str | None
    waiting: int
    columns: dict[str, str]
    rows: list[dict[str, Json]]
    rejected: list[str]
    tables: Mapping[str, StreamerCheck] = field(default_factory=dict)
    error: str | None = None

    @property
    def failed(self) -> list[str]:
        """The tables whose round would fail."""
        return [name for name, one in self.tables.items() if one.error is not None]

    def __str__(self) -> str:
        if self.tables:
            return "\n\n".join(str(one) for one in self.tables.values())
        head = f"{self.source} → {self.target}, from {self.begins_at or 'the beginning'}: nothing was written"
        if self.error is not None:
            return f"{head}\n{self.error}"
        shown = [[str(row.get(name)) for name in self.columns] for row in self.rows]
        body = text_table(list(self.columns), shown) if self.columns else "there is nothing to read"
        return "\n".join([head, body, *self.rejected])


class TablesFailed(HudiError):
    """Some tables of a configuration failed, and the others continued. `result`: of all tables."""

    result: StreamerRun | StreamerCheck | None = None


def text_of_lag(lag: Mapping[str, int]) -> str:
    """What waits behind a round, as a part of a line; "" where nothing does."""
    waiting = {partition: count for partition, count in lag.items() if count}
    if not waiting:
        return ""
    most = sorted(waiting, key=lambda one: -waiting[one])[:_SHOWN_PARTITIONS]
    more = ", …" if len(waiting) > len(most) else ""
    each = ", ".join(f"{partition}: {waiting[partition]:,}" for partition in most)
    return f", {sum(waiting.values()):,} wait ({each}{more})"


def sum_of(tables: Mapping[str, StreamerRun]) -> StreamerRun:
    """The run of several tables."""
    ones = tables.values()
    return StreamerRun(
        sum(one.rounds for one in ones),
        sum(one.commits for one in ones),
        sum(one.rows for one in ones),
        sum(one.rejected for one in ones),
        sum(one.lost for one in ones),
        tables=dict(tables),
    )
