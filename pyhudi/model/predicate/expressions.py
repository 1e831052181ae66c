"""Arrow expressions that a caller made: how large they are, before anything walks them.

Arrow walks an expression by calling itself, and a chain of ten thousand terms takes more of the stack than a thread
has: the process ends. An expression does not say how deep it is; its serialized form, an Arrow file, notes each
call in its schema's metadata.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from pyhudi.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc

__all__ = ["MAX_EXPRESSION_CALLS", "check_expressions"]

MAX_EXPRESSION_CALLS = 5_000  # functions in one filter: 10,000 in a chain fit into a stack of 8 MiB, 20,000 don't

_STACK_BYTES = 512 << 20  # address space, for the walk that counts: enough for a million calls inside of each other
_NOTE = b"call"  # also in names of columns; then an expression counts as larger than it is
_SIZE = struct.Struct("<I")
_HEAD_BYTES = 16  # magic, continuation mark and size; the schema follows
_WALK = threading.Lock()


def check_expressions(expressions: Sequence[pc.Expression], what: str) -> None:
    """Raises ConfigError for expressions of more than MAX_EXPRESSION_CALLS functions in all; `what` names them."""
    calls = sum(_calls(expression) for expression in expressions)
    if calls > MAX_EXPRESSION_CALLS:
        raise ConfigError(
            f"{what}: a pyarrow expression of some {calls} functions; expected at most {MAX_EXPRESSION_CALLS}. Compare "
            "a column with many values by field.isin([...]), which is one function, or give SQL text."
        )


def _calls(expression: pc.Expression) -> int:
    found: list[int] = []

    def walk() -> None:
        data = cast("pa.Buffer", expression.__reduce__()[1][0]).to_pybytes()
        (size,) = _SIZE.unpack_from(data, _HEAD_BYTES - _SIZE.size)
        found.append(data.count(_NOTE, _HEAD_BYTES, _HEAD_BYTES + size))

    with _WALK:
        before = threading.stack_size(_STACK_BYTES)
        try:
            thread = threading.Thread(target=walk, name="hudi-expression")
            thread.start()
        finally:
            threading.stack_size(before)
    thread.join()
    return found[0] if found else 0
