"""Rows of the option table: empty commits, and extra metadata that is carried on.

Source: Hudi's documented keys; sides taken are in docs/compatibility.md.
"""

from __future__ import annotations

from pyhudi.model.options.row import honoured
from pyhudi.model.options.spec import Kind, OptionSpec

__all__ = ["COMMIT_OPTIONS"]

_GROUP = "Commits"

COMMIT_OPTIONS: tuple[OptionSpec, ...] = (
    honoured(
        _GROUP,
        "hoodie.allow.empty.commit",
        Kind.FLAG,
        "true",
        "A write that changes no file makes a commit all the same, which moves checkpoints on; a delete that finds no "
        "row only where this is set. With false it leaves no trace, and its result has no instant.",
    ),
    honoured(
        _GROUP,
        "hoodie.write.rolling.metadata.keys",
        Kind.NAMES,
        None,
        "Keys of extra metadata that every commit and clean carries on from those before, unless it has its own value.",
    ),
    honoured(
        _GROUP,
        "hoodie.write.rolling.metadata.timeline.lookback.commits",
        Kind.INTEGER,
        "10",
        "How many commits and cleans to look back through for these keys.",
    ),
)
