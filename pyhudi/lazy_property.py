"""Attributes that are computed when they are first used, without a lock.

Until Python 3.11 `functools.cached_property` has one lock for all objects of a class: while one of them computes, by
reading a slow stream for example, every other waits, in whatever thread and of whatever table. Two that wait for each
other wait for ever. From 3.12 on it has none, as here.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

__all__ = ["lazy_property"]

Value = TypeVar("Value")


class lazy_property(cached_property[Value]):  # noqa: N801
    """`functools.cached_property` as it is from Python 3.12 on. Threads that come at once may all compute."""

    if not TYPE_CHECKING:  # to a type checker it is what it is made of

        def __get__(self, instance: object, owner: type | None = None) -> object:
            if instance is None:
                return self
            value = instance.__dict__[self.attrname] = self.func(instance)
            return value
