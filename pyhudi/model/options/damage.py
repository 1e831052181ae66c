"""DamageOptions: what happens when a log file lacks bytes that a completed write put into it.

Source: docs/formats/log.md, "Damaged log files". Hudi passes over such bytes without a word.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.model.options.declare import option
from pyhudi.model.options.spec import ON_READ

__all__ = ["DEFAULT_DAMAGE", "READ_DAMAGED_LOGS", "REWRITE_DAMAGED_LOGS", "DamageOptions"]

READ_DAMAGED_LOGS = "hoodie.pyhudi.read.damaged.logs"
REWRITE_DAMAGED_LOGS = "hoodie.pyhudi.rewrite.damaged.logs"


@dataclass(frozen=True, slots=True)
class DamageOptions:
    """`on_read`: of queries; `rewrite`: of whatever writes merged rows back."""

    on_read: str = option(
        READ_DAMAGED_LOGS,
        "warn",
        "Queries that find a log file without all bytes that completed writes put into it: warn and return the rows "
        "without them, or fail.",
        choices=("warn", "fail"),
        scopes=ON_READ,
    )
    rewrite: bool = option(
        REWRITE_DAMAGED_LOGS,
        False,
        "Compaction, log compaction, clustering, updates, merges and changes of the version take rows of damaged log "
        "files for lost and go on without them, for good. Otherwise they are refused.",
    )


DEFAULT_DAMAGE = DamageOptions()
