"""What a save mode means for a write, for every entry point alike.

Source: Spark's save modes, as Hudi's data source takes them; docs/overwriting.md for those of `write_hudi`, where mode
overwrite keeps the table and its history, and mode replace makes a new one.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.errors import ConfigError, TableExists

__all__ = ["REPLACE", "SAVE_MODES", "SaveDecision", "canonical_mode", "decide_save"]

SAVE_MODES = ("append", "overwrite", "ignore", "error", "errorifexists", "default")
REPLACE = "replace"
_ERRORS = ("error", "errorifexists", "default")


@dataclass(frozen=True, slots=True)
class SaveDecision:
    """What a write with a save mode does.

    `skips`: nothing, for there is a table. `replaces_table`: the table is recreated, and what is there is deleted.
    `operation`: the operation by which the rows of the table are replaced in one commit; None: the caller's own.
    """

    skips: bool = False
    replaces_table: bool = False
    operation: str | None = None


def canonical_mode(mode: str, *, has_replace: bool = False) -> str:
    """append, overwrite, ignore or error; also replace, where there is such a mode. Raises ConfigError for others."""
    words = (*SAVE_MODES[:2], REPLACE, *SAVE_MODES[2:]) if has_replace else SAVE_MODES
    word = mode.lower() if isinstance(mode, str) else ""
    if word not in words:
        raise ConfigError(f"Unknown mode {mode!r}; expected one of {', '.join(words)}.")
    return "error" if word in _ERRORS else word


def decide_save(mode: str, *, is_written: bool, operation_in_place: str | None, root: str) -> SaveDecision:
    """What to do.

    Args:
        mode: one of SAVE_MODES, or REPLACE.
        is_written: there is a table, and not one that a first write left which died.
        operation_in_place: how mode overwrite replaces rows, by the options; None: it recreates the table.
        root: where the table is, for messages.
    Raises: TableExists for mode error when there is a table, ConfigError for other words.
    """
    word = canonical_mode(mode, has_replace=True)
    if word == REPLACE:
        return SaveDecision(replaces_table=True)
    if word == "overwrite":
        return SaveDecision(replaces_table=operation_in_place is None, operation=operation_in_place)
    if is_written and word == "ignore":
        return SaveDecision(skips=True)
    if is_written and word == "error":
        raise TableExists(
            f"There is a Hudi table at {root} already and mode is {mode!r}; use mode='append' to add to it, or "
            "'overwrite' to replace it."
        )
    return SaveDecision()
