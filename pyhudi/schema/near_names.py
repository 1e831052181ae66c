"""Find names that differ by a typing error: `pirce` and `price`, `unitPrice` and `unit_price`."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["near_name"]

_LEAST_LETTERS = 3  # of a word that may have a typing error: `x` and `y` are different names


def near_name(name: str, others: Iterable[str]) -> str | None:
    """Return the first of the other names that resembles this one; None without one.

    Case and separators are ignored. Each word may have one letter that is wrong, missing, added, or swapped with its
    neighbour. Names that differ by a digit, like `price1` and `price2`, are different.
    """
    return next((other for other in others if _is_near(name, other)), None)


def _is_near(one: str, other: str) -> bool:
    if _letters(one) == _letters(other):
        return True
    mine, theirs = _words(one), _words(other)
    if len(mine) != len(theirs):
        mine, theirs = [_letters(one)], [_letters(other)]
    return all(a == b or _is_slip(a, b) for a, b in zip(mine, theirs, strict=True))


def _words(name: str) -> list[str]:
    return name.lower().replace("-", "_").replace(" ", "_").split("_")


def _letters(name: str) -> str:
    return "".join(_words(name))


def _is_slip(one: str, other: str) -> bool:
    """True if the words differ by one letter, or by two swapped neighbours."""
    short, long = sorted((one, other), key=len)
    if len(short) < _LEAST_LETTERS or len(long) - len(short) > 1:
        return False
    at = next((i for i, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    mine, theirs = short[at:], long[at:]
    if len(short) < len(long):
        return mine == theirs[1:] and not theirs[0].isdigit()
    if mine[1:] == theirs[1:]:
        return not (mine[0].isdigit() or theirs[0].isdigit())
    return mine[:2] == theirs[1::-1] and mine[2:] == theirs[2:]
