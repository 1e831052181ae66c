"""Compaction and log compaction as services: plans of file slices whose log files are merged.

Source: docs/formats/table-services.md, "Compaction plan", "Log compaction plan".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pyhudi.actions.action import ActionContext
from pyhudi.engine.base import FanOutWork
from pyhudi.filegroup.read.slice import SliceSpec
from pyhudi.filegroup.write.spec import WriteSpec
from pyhudi.formats.timeline.plans import encode_compaction_plan
from pyhudi.meta_client import MetaClient
from pyhudi.model.commit import CommitMetadata, WriteStatus
from pyhudi.model.file_group import FileSlice
from pyhudi.model.instant import ActionKind, Instant
from pyhudi.model.plans import CompactionPlan
from pyhudi.services.compact.result import CompactionRun
from pyhudi.services.plan_files import delete_files_of_run
from pyhudi.view.committed_logs import with_committed_bytes
from pyhudi.view.pending_plans import slices_of

__all__ = ["CompactionService"]


@dataclass(frozen=True, slots=True)
class CompactionService:
    """One of the two services. `planning`: what is to be done to the table as the context has it. `working`: its tasks,
    from how files are written, how slices are read, and the number of the run.
    """

    kind: ActionKind
    operation: str
    planning: Callable[[ActionContext], CompactionPlan]
    working: Callable[[ActionContext, WriteSpec, SliceSpec, int], FanOutWork[FileSlice]]

    def plan(self, context: ActionContext) -> CompactionPlan | None:
        plan = self.planning(context)
        return plan if plan.operations else None

    def encode(self, plan: CompactionPlan, meta: MetaClient) -> bytes:
        return encode_compaction_plan(plan, meta.config.table_version)

    def read(self, instant: Instant, meta: MetaClient) -> CompactionPlan:
        return meta.reader.compaction_plan(instant)

    def is_own(self, instant: Instant, meta: MetaClient) -> bool:
        return instant.action is self.kind

    def check(self, instant: Instant, plan: CompactionPlan, meta: MetaClient, began: MetaClient | None = None) -> None:
        """Log files that were written since come after the compaction: nothing can be in its way."""

    def tasks(self, plan: CompactionPlan, context: ActionContext) -> Sequence[FileSlice]:
        slices = slices_of(plan.operations, context.meta)
        known = with_committed_bytes(context.meta, slices, find_missing=False)
        return sorted(known, key=lambda found: found.size_bytes, reverse=True)

    def work(
        self, plan: CompactionPlan, context: ActionContext, spec: WriteSpec, reading: SliceSpec, run: int
    ) -> FanOutWork[FileSlice]:
        return self.working(context, spec, reading, run)

    def delete_files(
        self, instant: Instant, plan: CompactionPlan, meta: MetaClient, *, keep: Iterable[str], by_listing: bool
    ) -> None:
        delete_files_of_run(instant, plan, meta, keep=keep, by_listing=by_listing)

    def finish(
        self, plan: CompactionPlan, instant: Instant, body: CommitMetadata, context: ActionContext
    ) -> CommitMetadata:
        return replace(body, compacted=True)

    def completed(self, instant: Instant, plan: CompactionPlan, context: ActionContext) -> None:
        """Nothing is left to do."""

    def result(
        self,
        completed: Instant,
        plan: CompactionPlan,
        statuses: Sequence[WriteStatus],
        seconds: Mapping[str, float],
    ) -> CompactionRun:
        assert completed.completion_time is not None
        return CompactionRun.of(completed.requested_time, completed.completion_time, plan.operations, statuses, seconds)
