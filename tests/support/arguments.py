"""Arguments of a call that takes options: some by name, all others in `options` by Hudi's keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["arguments"]


def arguments(*given: Mapping[str, Any]) -> dict[str, Any]:
    """The mappings as one: Hudi's keys are in `options`, beside the `options` that a mapping brings."""
    all_of_them: dict[str, Any] = {key: value for one in given for key, value in one.items()}
    options = {**(all_of_them.pop("options", None) or {})}
    options |= {key: all_of_them.pop(key) for key in list(all_of_them) if "." in key}
    return {**all_of_them, "options": options}
