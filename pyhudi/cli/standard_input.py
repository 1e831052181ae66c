"""Standard input as an argument: `-`, which a parser would take for an option."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["STANDARD_INPUT", "with_standard_input"]

STANDARD_INPUT = "/dev/stdin"


def with_standard_input(tokens: Iterable[str]) -> list[str]:
    """The tokens, with the path of standard input for `-`."""
    return [STANDARD_INPUT if token == "-" else token for token in tokens]
