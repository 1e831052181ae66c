"""The limits of a filter.

Python, Arrow and Spark walk a tree of conditions recursively; without limits a text of a few kB ends the process.
Values in a list of IN are not conditions: only memory limits their number.

A chain of ten thousand terms in an Arrow expression needs more stack than a thread has. An expression does not reveal
its depth; its serialized form, an Arrow file, notes each call in its schema's metadata.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, cast

from pyhudi.errors import ConfigError
from pyhudi.expressions.predicates import And, Not, Opaque, Or, Predicate

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc

__all__ = [
    "MAX_DEPTH",
    "MAX_EXPRESSION_CALLS",
    "MAX_SQL_CHARS",
    "MAX_TERMS",
    "MAX_TOKENS",
    "MAX_WHERE_CHARS",
    "NotUnderstood",
    "check_depth",
    "check_expressions",
    "check_terms",
    "too_deep",
]


MAX_EXPRESSION_CALLS = 5_000  # functions in one filter: 10,000 in a chain fit into a stack of 8 MiB, 20,000 don't

_STACK_BYTES = 512 << 20  # address space, for the counting walk: enough for a million nested calls
_NOTE = b"call"  # may also occur in names of columns; then an expression counts as larger
_SIZE = struct.Struct("<I")
_HEAD_BYTES = 16  # magic, continuation mark and size; the schema follows
_WALK = threading.Lock()


def check_expressions(expressions: Sequence[pc.Expression], what: str) -> None:
    """Raise ConfigError for expressions of more than MAX_EXPRESSION_CALLS functions in total; `what` names them."""
    calls = sum(_calls(expression) for expression in expressions)
    if calls > MAX_EXPRESSION_CALLS:
        raise ConfigError(
            f"{what}: a pyarrow expression of some {calls} functions; expected at most {MAX_EXPRESSION_CALLS}. Compare "
            "a column with many values by field.isin([...]), which is one function, or give SQL text."
        )


def _calls(expression: pc.Expression) -> int:
    counts: list[int] = []

    def walk() -> None:
        data = cast("pa.Buffer", expression.__reduce__()[1][0]).to_pybytes()
        (size,) = _SIZE.unpack_from(data, _HEAD_BYTES - _SIZE.size)
        counts.append(data.count(_NOTE, _HEAD_BYTES, _HEAD_BYTES + size))

    with _WALK:
        before = threading.stack_size(_STACK_BYTES)
        try:
            thread = threading.Thread(target=walk, name="hudi-expression")
            thread.start()
        finally:
            threading.stack_size(before)
    thread.join()
    return counts[0] if counts else 0


MAX_DEPTH = 200  # of brackets, NOTs and lists in lists: Python allows 1,000 calls, and a level needs up to four
MAX_TERMS = 20_000  # comparisons, ANDs, ORs and NOTs in one filter: each costs a pass over the rows
MAX_TOKENS = 2_000_000  # of a text, 300 bytes each: lists of IN with a million values
MAX_SQL_CHARS = 64 << 10  # of a text with a term that an SQL engine evaluates: its tree is larger than a where's
MAX_WHERE_CHARS = 64 << 20  # of a text: a million values of 60 characters


class NotUnderstood(ConfigError):
    """A text is no condition that the tree can express; an SQL engine may know it."""


def check_depth(predicate: Predicate) -> None:
    """Raise ConfigError for a tree that is too deep, or holds a too large pyarrow expression.

    The walk goes level by level and does not recurse.
    """
    for depth, level in enumerate(_levels(predicate), 1):
        if depth > MAX_DEPTH:
            raise too_deep()
        check_expressions([node.expression for node in level if isinstance(node, Opaque)], "where")


def check_terms(predicate: Predicate) -> None:
    """Raise ConfigError for a tree with too many comparisons, or with too large pyarrow expressions in total."""
    nodes = [node for level in _levels(predicate) for node in level]
    if len(nodes) > MAX_TERMS:
        raise ConfigError(
            f"where has more than {MAX_TERMS} comparisons and words between them; expected at most as many. Write "
            'values of one column as a list: `id IN (1, 2, 3)` or ("id", "in", [1, 2, 3]), which may have hundreds of '
            "thousands."
        )
    check_expressions([node.expression for node in nodes if isinstance(node, Opaque)], "where")


def _levels(predicate: Predicate) -> Iterator[list[Predicate]]:
    """The nodes of a tree, level by level."""
    level = [predicate]
    while level:
        yield level
        inner: list[Predicate] = []
        for node in level:
            if isinstance(node, And | Or):
                inner += node.children
            elif isinstance(node, Not):
                inner.append(node.child)
        level = inner


def too_deep() -> ConfigError:
    """The error for too deeply nested brackets, NOTs or lists."""
    return ConfigError(
        f"where has more than {MAX_DEPTH} nested brackets, NOTs or lists; expected at most as many. Write it flat: "
        "`a AND b AND c` needs no brackets."
    )
