"""A finding: an input after which something else came than a value or an error of the family."""

from __future__ import annotations

import base64
import re
import traceback
from dataclasses import dataclass

from pyhudi.errors import HudiError

__all__ = ["MAX_MESSAGE_CHARS", "Finding", "fault_of", "place_in_dump"]

MAX_MESSAGE_CHARS = 20_000  # of an error; more is a file poured into a log

_FRAME = re.compile(r'File "([^"]*)", line (\d+) in (\S+)')
_MOST_SHOWN = 400  # characters of an error or of an input


@dataclass(frozen=True)
class Finding:
    """`kind`: what came out (a signal, an exception's type); `place`: the line of the project nearest to it."""

    target: str
    kind: str
    place: str
    detail: str
    seed: int
    number: int
    data: bytes

    @property
    def key(self) -> tuple[str, str, str]:
        """Findings of one key are taken for one."""
        return self.target, self.kind, self.place

    def to_json(self) -> dict[str, object]:
        return {
            "target": self.target, "kind": self.kind, "place": self.place, "detail": self.detail, "seed": self.seed,
            "number": self.number, "base64": base64.b64encode(self.data).decode(),
        }  # fmt: skip

    @classmethod
    def from_json(cls, fields: dict[str, object]) -> Finding:
        texts = [str(fields[name]) for name in ("target", "kind", "place", "detail")]
        seed, number = (int(str(fields[name])) for name in ("seed", "number"))
        return cls(texts[0], texts[1], texts[2], texts[3], seed, number, base64.b64decode(str(fields["base64"])))

    def __str__(self) -> str:
        text = base64.b64encode(self.data).decode()
        shown = text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}... (all of it is in the report)"
        return (
            f"{self.target}: {self.kind} at {self.place}\n"
            f"  {self.detail}\n"
            f"  seed {self.seed}, number {self.number}, {len(self.data)} bytes, base64: {shown}"
        )


def fault_of(error: BaseException) -> tuple[str, str, str] | None:
    """Kind, place and detail when an exception is a finding; None for errors of the family whose text can be shown."""
    detail = _shown(error)
    if not isinstance(error, HudiError):
        return type(error).__name__, _place(error), detail
    text = str(error)
    if len(text) > MAX_MESSAGE_CHARS:
        return "long message", _place(error), f"{len(text)} characters: {detail}"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "message that is no UTF-8", _place(error), detail
    return None


def place_in_dump(dump: str) -> str:
    """The innermost line of the project in what `faulthandler` wrote."""
    frames = [(path, line, name) for path, line, name in _FRAME.findall(dump) if "/pyhudi/" in path]
    return f"{_inside(frames[0][0])}:{frames[0][1]} {frames[0][2]}" if frames else "unknown"


def _place(error: BaseException) -> str:
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "/pyhudi/" in f.filename]
    if not frames:
        frames = list(traceback.extract_tb(error.__traceback__))[-1:]
    return f"{_inside(frames[-1].filename)}:{frames[-1].lineno} {frames[-1].name}" if frames else "unknown"


def _inside(path: str) -> str:
    return f"pyhudi/{path.rpartition('/pyhudi/')[2]}" if "/pyhudi/" in path else path.rpartition("/")[2]


def _shown(error: BaseException) -> str:
    try:
        text = f"{type(error).__name__}: {error}"
    except Exception:
        text = type(error).__name__
    return ascii(text[:_MOST_SHOWN])[1:-1]
