"""Every decoder there is, by name."""

from __future__ import annotations

from fuzz.target import Target
from fuzz.targets import avro, base_files, bodies, filters, history, logs, names, small_files

__all__ = ["TARGETS"]

TARGETS: dict[str, Target] = {
    target.name: target
    for module in (small_files, names, bodies, avro, logs, base_files, history, filters)
    for target in module.TARGETS
}
