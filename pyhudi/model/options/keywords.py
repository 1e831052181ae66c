"""Options by their Python names: `write_hudi(..., record_key="id")`."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from pyhudi.errors import ConfigError
from pyhudi.model.options.catalogue import KEYWORDS

__all__ = ["merged_options", "options_from_keywords"]


def options_from_keywords(keywords: Mapping[str, object]) -> dict[str, object]:
    """Option keys for Python names; keys that are option keys already (`hoodie....`) pass.

    Raises ConfigError for a name that is neither, naming the nearest, and for an option given by both names.
    """
    result: dict[str, object] = {}
    for name, value in keywords.items():
        key = name if "." in name else KEYWORDS.get(name)
        if key is None:
            raise ConfigError(
                f"Unknown argument {name!r}.{_nearest(name)} Or give Hudi's own key, as in **{{'hoodie....': ...}}."
            )
        if key in result:
            raise ConfigError(f"{name!r} and {key!r} are the same option; leave one of them out.")
        result[key] = value
    return result


def _nearest(name: str) -> str:
    near = get_close_matches(name, KEYWORDS, n=1)
    return f" Did you mean {near[0]!r}?" if near else f" Known: {', '.join(KEYWORDS)}."


def merged_options(options: Mapping[str, Any] | None, keywords: Mapping[str, Any]) -> dict[str, Any]:
    """`options` by key and `keywords` by Python name as one mapping by key. Raises ConfigError for one given twice."""
    given = options_from_keywords({name: value for name, value in keywords.items() if value is not None})
    for key, value in (options or {}).items():
        if key in given and given[key] != value:
            raise ConfigError(f"{key} is given twice, as {value!r} in options and as {given[key]!r} by name.")
    return {**(options or {}), **given}
