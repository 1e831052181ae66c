"""Spans of OpenTelemetry: one for each action, in it one for each of its phases.

A span is made where the process has loaded OpenTelemetry's API, as everybody does who configures it. Nothing is
imported otherwise, so that an action without it pays for one look into a dict.
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
    """A span that runs."""

    def set_attribute(self, key: str, value: str | int | float) -> None:
        """Add a fact to it."""
        ...


def span(name: str, attributes: Mapping[str, str] | None = None) -> AbstractContextManager[Span | None]:
    """A span around a `with` block; it records the block's error. None where OpenTelemetry is not in use."""
    tracer = _tracer()
    if tracer is None:
        return _NOTHING
    return tracer.start_as_current_span(name, attributes=dict(attributes or {}))


def _tracer() -> Tracer | None:
    # A provider that is named in the environment is loaded by the API, at its first use.
    if "opentelemetry.trace" not in sys.modules and "OTEL_PYTHON_TRACER_PROVIDER" not in os.environ:
        return None
    try:
        from opentelemetry import trace
    except ImportError:
        return None
    return trace.get_tracer("pyhudi")
