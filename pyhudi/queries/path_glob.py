"""Patterns of file paths, as `hoodie.datasource.read.incr.path.glob` has them: those of Hadoop, but a star goes over
folders, and only the end of the full path is compared.

Source: docs/formats/incremental.md, "Options".
"""

from __future__ import annotations

import re

from pyhudi.errors import ConfigError

__all__ = ["path_pattern"]

_TOKENS = re.compile(r"\[[^\]]+\]|.", re.DOTALL)


def path_pattern(glob: str) -> re.Pattern[str]:
    """What a file's full path must match whole. Raises ConfigError for a pattern whose brackets do not fit.

    Args:    glob: `*` any characters, `?` one, `[a-z]` and `[!a-z]` one of these or none of them, `{a,b}` either text.
    """
    parts: list[str] = []
    depth = 0
    for token in _TOKENS.findall(glob):
        if token in ("*", "?"):
            parts.append(".*" if token == "*" else ".")
        elif len(token) > 1:
            parts.append(_one_of(token[1:-1]))
        elif token in "{}":
            depth += 1 if token == "{" else -1
            parts.append("(?:" if token == "{" else ")")
        else:
            parts.append("|" if token == "," and depth > 0 else re.escape(token))
    try:
        return re.compile("(?s).*" + "".join(parts))
    except re.error as error:
        raise ConfigError(
            f"hoodie.datasource.read.incr.path.glob={glob!r} is no pattern ({error}). Write stars, question marks, "
            "[a-z] and {a,b}; brackets come in pairs."
        ) from error


def _one_of(characters: str) -> str:
    negated = characters[0] in "!^" and len(characters) > 1
    listed = characters[1:] if negated else characters
    return f"[{'^' if negated else ''}{_escaped(listed)}]"


def _escaped(listed: str) -> str:
    """Characters of a list; a hyphen between two of them stays a range."""
    return re.sub(r"([\\\[\]^&~|])", r"\\\1", listed)
