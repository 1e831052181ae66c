"""The steps between table versions: one row per step and direction.

Source: docs/formats/table-config.md, "Steps between versions".
"""

from __future__ import annotations

from pyhudi.services.versions.steps.base import VersionStep
from pyhudi.services.versions.steps.eight_and_nine import EIGHT_TO_NINE, NINE_TO_EIGHT
from pyhudi.services.versions.steps.four_to_six import FIVE_TO_SIX, FOUR_TO_FIVE
from pyhudi.services.versions.steps.six_and_eight import EIGHT_TO_SIX, SIX_TO_EIGHT

__all__ = ["STEPS", "steps_between"]

# Version 7 was never released; Apache Hudi passes through it without a trace.
STEPS: tuple[VersionStep, ...] = (
    FOUR_TO_FIVE,
    FIVE_TO_SIX,
    SIX_TO_EIGHT,
    EIGHT_TO_NINE,
    NINE_TO_EIGHT,
    EIGHT_TO_SIX,
)


def steps_between(source: int, target: int) -> tuple[VersionStep, ...] | None:
    """The steps from one version to another, in their order; () for the same version, None when there are none."""
    upwards = source < target
    path: list[VersionStep] = []
    version = source
    while version != target:
        step = next((s for s in STEPS if s.source == version and (s.source < s.target) == upwards), None)
        if step is None or (step.target > target if upwards else step.target < target):
            return None
        path.append(step)
        version = step.target
    return tuple(path)
