"""Columns and types of a table, and changes of them for `HudiTable.alter`. The changes are imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyhudi.schema.changes import (
        AddColumn,
        ChangeType,
        DropColumn,
        DropNotNull,
        MoveColumn,
        RenameColumn,
        SetComment,
    )

__all__ = ["AddColumn", "ChangeType", "DropColumn", "DropNotNull", "MoveColumn", "RenameColumn", "SetComment"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'pyhudi.schema' has no attribute {name!r}")
    value: object = getattr(import_module("pyhudi.schema.changes"), name)
    return value


def __dir__() -> list[str]:
    return __all__
