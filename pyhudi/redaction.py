"""Make foreign text safe for messages: lock files, addresses and options are escaped, shortened, without credentials.

Every HudiError passes its message through `message`, so that quoted text can't leak a credential, fill a log, or break
a terminal or a pickle.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = [
    "QUOTED_CHARACTERS",
    "brief",
    "excerpt",
    "holds_credentials",
    "is_secret",
    "is_text",
    "message",
    "quoted",
    "without_credentials",
    "without_secrets",
]

# A note of a lock, a path, a value: two lines of a terminal identify it.
QUOTED_CHARACTERS = 200
# Room for a list of columns or the last lines of a worker's trace; longer text was not written for a reader.
MESSAGE_CHARACTERS_MAX = 16_000
MAX_NUMBER_DIGITS = 1_000  # a double has 309 before its point, a decimal 76; Python's integers take 4,300 as text

_HIDDEN = "***"
_AROUND_CHARACTERS = 80  # on each side of the character that an excerpt is about
_SECRET_CHARACTERS = 4  # shorter ones are no secrets, and stand in many words
_CREDENTIAL_CHARACTERS = 256  # longer than any key or password before an @
# An address with a user and a password. No slash precedes the host, except in keys of S3.
_WHO = re.compile(rf"(?i)(\bs3[an]?://)[^\s/@]*(?::\S{{0,{_CREDENTIAL_CHARACTERS}}}?)?@|(://)[^\s/@:]*:[^\s/@]*@")
# Parameters that grant access, as clients and portals of S3, Azure and Google spell them.
_GRANTS = re.compile(
    r"(?i)([?&;](?:(?:[\w.-]{0,40}[_.-])?(?:secret|password|passwd|token|signature|credential|access[._-]?key"
    r"|account[._-]?key|secret[._-]?key|key[._-]?id)(?:[_-]?id)?|sig|awsaccesskeyid|googleaccessid)=)[^&;\s'\"]+"
)
_SECRET_NAME = re.compile(
    r"(?i)secret|password|passwd|token|credential|access[._-]?key|account[._-]?key|sas[._-]?key|signature"
)
_SIGNATURE = re.compile(r"\bsig=[^&'\"\s]+")
_HALVES = re.compile("[\ud800-\udfff]")


def without_credentials(text: str) -> str:
    """Return the text with `***` in place of users and passwords in addresses and of parameters that grant access."""
    if "://" in text:
        text = _WHO.sub(lambda match: f"{match[1] or match[2]}{_HIDDEN}@", text)
    if "=" in text:
        text = _SIGNATURE.sub(f"sig={_HIDDEN}", _GRANTS.sub(rf"\g<1>{_HIDDEN}", text))
    return text


def is_secret(name: str) -> bool:
    """True if the value of an option of this name must never be shown."""
    return _SECRET_NAME.search(name) is not None


def without_secrets(error: Exception, options: Mapping[str, object]) -> Exception:
    """Return the error, or one of its text with `***` in place of credentials and of the values of secret options."""
    text = str(error)
    clean = without_credentials(text)
    for name, value in options.items():
        if is_secret(name) and len(str(value)) >= _SECRET_CHARACTERS:
            clean = clean.replace(str(value), _HIDDEN)
    return error if clean == text else OSError(clean)


def holds_credentials(uri: str) -> bool:
    """True if `without_credentials` would change the address."""
    return without_credentials(uri) != uri


def quoted(text: str, characters: int = QUOTED_CHARACTERS) -> str:
    """Return foreign text for a message: control characters escaped, shortened, without credentials."""
    # Longer than the text shown, so that a credential at the cut is still recognized.
    start = text[: characters + 2 * _CREDENTIAL_CHARACTERS]
    shown = "".join(c if c.isprintable() else _escaped(c) for c in without_credentials(start))
    return shown if len(shown) <= characters and start == text else f"{shown[:characters]}..."


def brief(value: object) -> str:
    """Return a value for a message: the first 200 characters of its `repr`."""
    cut: object = value[:QUOTED_CHARACTERS] if isinstance(value, str | bytes | list | tuple) else value
    try:
        text = repr(cut)
    except ValueError:  # a number with more digits than Python prints
        return f"a number of more than {MAX_NUMBER_DIGITS} digits"
    except RecursionError:
        return f"a deeply nested {type(value).__name__}"
    whole = len(text) <= QUOTED_CHARACTERS + 2 and (cut is value or cut == value)
    return text if whole else f"{text[:QUOTED_CHARACTERS]}..."


def excerpt(text: str, at: int) -> str:
    """Return a text for a message; of a long text, only the part around a character."""
    if len(text) <= QUOTED_CHARACTERS:
        return repr(text)
    first, last = max(0, at - _AROUND_CHARACTERS), at + _AROUND_CHARACTERS
    before, behind = "..." if first else "", "..." if last < len(text) else ""
    return f"{before}{text[first:last]!r}{behind} ({len(text)} characters)"


def message(text: str) -> str:
    """Return a whole message that is safe to show: encodable, of bounded length, without credentials."""
    if len(text) > MESSAGE_CHARACTERS_MAX:
        half = MESSAGE_CHARACTERS_MAX // 2 - 50  # less than half, as the words in between count too
        text = f"{text[:half]} ... ({len(text) - 2 * half:,} characters left out) ... {text[-half:]}"
    return without_credentials(_HALVES.sub(lambda match: _escaped(match[0]), text))


def is_text(text: str) -> bool:
    """False if the text has half of a UTF-16 pair in it, which no file and no store can hold."""
    return text.isascii() or _HALVES.search(text) is None


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
