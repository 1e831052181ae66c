"""`SET hoodie.x = y`, `SET hoodie.x` and `RESET hoodie.x` in a session without Spark."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Setting", "setting_of"]

_SETTING = re.compile(
    r"\s*(?P<verb>SET|RESET)\s+(?:spark\.)?`?(?P<key>hoodie\.[\w.\-]+)`?\s*(?:=\s*(?P<value>.*?))?[\s;]*",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Setting:
    """`value` None: the key is shown, or with `removes` given back its default."""

    key: str
    value: str | None
    removes: bool


def setting_of(text: str) -> Setting | None:
    """The setting that a statement makes or shows, None for another statement.

    A value is taken as it is written, as Spark does; quotations around all of it go.
    """
    found = _SETTING.fullmatch(text)
    if found is None:
        return None
    value = found["value"]
    if value is not None and len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
        value = value[1:-1]
    return Setting(found["key"], value, found["verb"].upper() == "RESET")
