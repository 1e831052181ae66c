"""A call of a service that works by plans: pending ones are executed, then a new one is made and executed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from pyhudi.actions.action import ActionContext
from pyhudi.engine.base import TaskT
from pyhudi.services.planned import Service, pending_plans, run_waiting, schedule_plan

__all__ = ["Called", "call_service"]

PlanT = TypeVar("PlanT")
RunT = TypeVar("RunT")


@dataclass(frozen=True, slots=True)
class Called(Generic[PlanT, RunT]):
    """`plan`: the plan that this call made, or would make. `scheduled`: its instant, None: it is not on the timeline.
    `runs`: of that plan, and of pending ones. `waiting`: the pending ones that it would run.
    """

    plan: PlanT | None
    scheduled: str | None = None
    runs: tuple[RunT, ...] = ()
    waiting: tuple[str, ...] = ()


def call_service(
    service: Service[PlanT, TaskT, RunT],
    context: ActionContext,
    wants: Callable[[ActionContext], bool],
    run: Callable[[ActionContext, str], RunT],
    *,
    dry_run: bool,
    schedule_only: bool,
) -> Called[PlanT, RunT]:
    """Run a service.

    Args:    wants: is a new plan due? run: executes the plan of an instant time. dry_run: only make the plan, write
                 nothing. schedule_only: leave the plan on the timeline for another run.
    Raises:  HudiError; see `schedule_plan` and `run`. Plans executed before stay executed.
    """
    waiting = () if schedule_only else pending_plans(service, context)
    if dry_run:
        times = tuple(instant.requested_time for instant in waiting)
        return Called(service.plan(context) if wants(context) else None, waiting=times)
    runs = run_waiting(waiting, context, run)
    context = context.reloaded() if waiting else context
    made = schedule_plan(service, context) if wants(context) else None
    if made is None:
        return Called(None, runs=runs)
    instant, plan = made
    if not schedule_only:
        runs = (*runs, *run_waiting([instant], context, run))
    return Called(plan, instant.requested_time, runs)
