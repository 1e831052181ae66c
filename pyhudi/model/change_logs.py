"""Change logs: their modes, and the columns of a query of changes. By mode, a log holds of each change:

    OP_KEY_ONLY         the operation and the key
    DATA_BEFORE         also the row before the change
    DATA_BEFORE_AFTER   also the row after it

Source: docs/formats/incremental.md, "Change logs".
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "AFTER",
    "BEFORE",
    "CDC_ENABLED",
    "CHANGE_COLUMNS",
    "CHANGE_LOG_SUFFIX",
    "DATA_BEFORE",
    "DATA_BEFORE_AFTER",
    "DELETE",
    "INSERT",
    "LOGGED_KEY",
    "LOGGING_MODE",
    "LOGGING_MODES",
    "OP",
    "OP_KEY_ONLY",
    "TIME",
    "UPDATE",
    "ChangeLogOptions",
    "logging_mode",
]

CDC_ENABLED = "hoodie.table.cdc.enabled"
LOGGING_MODE = "hoodie.table.cdc.supplemental.logging.mode"
CHANGE_LOG_SUFFIX = ".cdc"

OP_KEY_ONLY = "OP_KEY_ONLY"
DATA_BEFORE = "DATA_BEFORE"
DATA_BEFORE_AFTER = "DATA_BEFORE_AFTER"
LOGGING_MODES = (OP_KEY_ONLY, DATA_BEFORE, DATA_BEFORE_AFTER)

OP = "op"
TIME = "ts_ms"  # Hudi's name; it holds the requested time of the commit
BEFORE = "before"
AFTER = "after"
LOGGED_KEY = "record_key"  # in change logs that don't hold both images
CHANGE_COLUMNS = (OP, TIME, BEFORE, AFTER)

INSERT = "i"
UPDATE = "u"
DELETE = "d"


@dataclass(frozen=True, slots=True)
class ChangeLogOptions:
    """Settings of change logs. `block_max_bytes` counts Arrow bytes before encoding."""

    mode: str = DATA_BEFORE_AFTER
    block_max_bytes: int = 256 << 20


def logging_mode(text: str) -> str | None:
    """The mode of a table property, None for an unknown one. Hudi 0.12 used the prefix `cdc_`."""
    mode = text.strip().upper().removeprefix("CDC_")
    mode = OP_KEY_ONLY if mode == "OP_KEY" else mode
    return mode if mode in LOGGING_MODES else None
