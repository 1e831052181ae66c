"""What a save mode means for a write, for every entry point alike.

Source: Spark's save modes, as Hudi's data source takes them.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.errors import ConfigError, TableExists

__all__ = ["SAVE_MODES", "SaveDecision", "canonical_mode", "decide_save"]

SAVE_MODES = ("append", "overwrite", "ignore", "error", "errorifexists", "default")
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


def canonical_mode(mode: str) -> str:
    """append, overwrite, ignore or error. Raises ConfigError for other words."""
    word = mode.lower()
    if word not in SAVE_MODES:
        raise ConfigError(f"Unknown mode {mode!r}; expected one of {', '.join(SAVE_MODES)}.")
    return "error" if word in _ERRORS else word


def decide_save(mode: str, *, is_written: bool, operation_in_place: str | None, root: str) -> SaveDecision:
    """What to do.

    Args:
        mode: one of SAVE_MODES.
        is_written: there is a table, and not one that a first write left which died.
        operation_in_place: how mode overwrite replaces rows, by the options; None: it recreates the table.
        root: where the table is, for messages.
    Raises: TableExists for mode error when there is a table, ConfigError for other words.
    """
    word = canonical_mode(mode)
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
