"""Attributes that are computed on first use, without a lock.

Until Python 3.11 `functools.cached_property` has one lock for all objects of a class: while one of them computes, for
example by reading a slow stream, all others wait, in any thread and for any table. Two that wait for each other wait
forever. From 3.12 on it has no lock, as here.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

__all__ = ["lazy_property"]

Value = TypeVar("Value")


class lazy_property(cached_property[Value]):  # noqa: N801
    """`functools.cached_property` as in Python 3.12. Simultaneous threads may all compute."""

    if not TYPE_CHECKING:  # type checkers see its parent

        def __get__(self, instance: object, owner: type | None = None) -> object:
            if instance is None:
                return self
            value = instance.__dict__[self.attrname] = self.func(instance)
            return value
