"""Strategies that end a continuous run, called after each round. A user's strategy:

class AtNight:
    def __init__(self, settings):              # the keys without `hoodie.`
        self.last = int(settings["last.hour"])

    def should_shutdown(self, has_new_data):
        return datetime.now().hour > self.last
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from pyhudi.errors import ConfigError
from pyhudi.registry import Registry
from pyhudi.streamer.settings import PipelineSettings

__all__ = ["TERMINATIONS", "Termination", "termination_of"]

_ROWS = {"NoNewDataTerminationStrategy": f"{__name__}:NoNewData"}
_PACKAGES = tuple(f"org.apache.hudi.utilities.{part}." for part in ("streamer", "deltastreamer"))
TERMINATIONS: Registry[Callable[..., Any]] = Registry(
    kind="termination strategy",
    entries=_ROWS,
    aliases={f"{package}{name}": name for name in _ROWS for package in _PACKAGES},
)


class Termination(Protocol):
    """A strategy that is called after each round of a continuous run."""

    def should_shutdown(self, has_new_data: bool) -> bool:
        """True to end the run. `has_new_data`: the round wrote rows, or moved the checkpoint."""
        ...


class NoNewData:
    """Ends the run after a number of rounds in a row without new data."""

    def __init__(self, rounds: int) -> None:
        self._rounds, self._without = rounds, 0

    def should_shutdown(self, has_new_data: bool) -> bool:
        """True after the last of these rounds."""
        self._without = 0 if has_new_data else self._without + 1
        return self._without >= self._rounds


def termination_of(settings: PipelineSettings) -> Termination | None:
    """The strategy that the configuration names, newly created. Raises ConfigError."""
    runs = settings.options.runs
    if runs.termination is None:
        return None
    made = TERMINATIONS.load(runs.termination)
    if ":" not in TERMINATIONS.canonical(runs.termination):
        return NoNewData(runs.rounds_without_data)
    own: Termination = made(dict(settings.client))
    if not callable(getattr(own, "should_shutdown", None)):
        raise ConfigError(f"{settings.place}: {runs.termination} has no method should_shutdown(has_new_data).")
    return own
