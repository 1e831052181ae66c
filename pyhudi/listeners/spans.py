"""Spans of OpenTelemetry: one for each action, with one for each of its phases inside.

Spans exist only where the process has loaded OpenTelemetry's API, as configuring it does. Otherwise nothing is
imported, and an action pays for one dict lookup.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

__all__ = ["Span", "span"]

_NOTHING = nullcontext(None)


class Span(Protocol):
    """An open span."""

    def set_attribute(self, key: str, value: str | int | float) -> None:
        """Set an attribute of the span."""
        ...


def span(name: str, attributes: Mapping[str, str] | None = None) -> AbstractContextManager[Span | None]:
    """Return a span for a `with` block, which records the block's error. It is None if OpenTelemetry is not in use."""
    tracer = _tracer()
    if tracer is None:
        return _NOTHING
    return tracer.start_as_current_span(name, attributes=dict(attributes or {}))


def _tracer() -> Tracer | None:
    # The API itself loads a provider that the environment names, at its first use.
    if "opentelemetry.trace" not in sys.modules and "OTEL_PYTHON_TRACER_PROVIDER" not in os.environ:
        return None
    try:
        from opentelemetry import trace
    except ImportError:
        return None
    return trace.get_tracer("pyhudi")
