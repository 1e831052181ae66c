"""What decoders stumble over in damaged bytes, as errors of the family.

Decoders say what they find wrong themselves. What is left is found by Arrow, fastavro, zlib or Python, in errors of
their own kinds: these become CorruptFile where a kind of input is decoded, not at each line that may raise one.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from pyhudi.errors import CorruptFile, UnsupportedTable

__all__ = ["FOREIGN_ERRORS", "as_corrupt", "located"]

FOREIGN_ERRORS = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
    pa.ArrowException,
    struct.error,
    zlib.error,
)
_SAID_CHARS = 500  # of the other error's text: it may quote the file


@contextmanager
def as_corrupt(where: str, what: str) -> Iterator[None]:
    """Errors of others in here become CorruptFile; those of the family pass.

    Args: where: the file, and where in it; what: that which is decoded.
    """
    try:
        yield
    except FOREIGN_ERRORS as error:
        text = str(error)[:_SAID_CHARS]
        raise CorruptFile(f"{where}: {what} can't be read ({type(error).__name__}: {text}).") from error


@contextmanager
def located(where: str) -> Iterator[None]:
    """Errors about the bytes in here say where: in which file, and where in it."""
    try:
        yield
    except (CorruptFile, UnsupportedTable) as error:
        raise type(error)(f"{where}: {error}") from error
