"""The option table: every key that PyHudi knows, and `resolve`, the one place where text keys are judged.

Known are Hudi's documented keys with their older spellings, and ours (`hoodie.pyhudi.*`). docs/options.md is printed
from this table (`python -m pyhudi.model.options`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from pyhudi.caller_warnings import warn_caller
from pyhudi.errors import ConfigError
from pyhudi.model.options.honoured_archiving import ARCHIVING_OPTIONS
from pyhudi.model.options.honoured_buckets import BUCKET_OPTIONS
from pyhudi.model.options.honoured_cleaning import CLEANING_OPTIONS
from pyhudi.model.options.honoured_clustering import CLUSTERING_OPTIONS
from pyhudi.model.options.honoured_commits import COMMIT_OPTIONS
from pyhudi.model.options.honoured_compaction import COMPACTION_OPTIONS
from pyhudi.model.options.honoured_concurrency import CONCURRENCY_OPTIONS
from pyhudi.model.options.honoured_locks import LOCK_OPTIONS
from pyhudi.model.options.honoured_log_blocks import LOG_BLOCK_OPTIONS
from pyhudi.model.options.honoured_memory import MEMORY_OPTIONS
from pyhudi.model.options.honoured_read import READ_OPTIONS
from pyhudi.model.options.honoured_replacing import REPLACING_OPTIONS
from pyhudi.model.options.honoured_table import TABLE_OPTIONS
from pyhudi.model.options.honoured_ttl import TTL_OPTIONS
from pyhudi.model.options.honoured_versions import VERSION_OPTIONS
from pyhudi.model.options.honoured_write import WRITE_OPTIONS
from pyhudi.model.options.keywords import KEYWORDS
from pyhudi.model.options.known_platform import PLATFORM
from pyhudi.model.options.known_reading import READING
from pyhudi.model.options.known_services import SERVICES
from pyhudi.model.options.known_writing import WRITING
from pyhudi.model.options.spec import Door, HudiOptionWarning, OptionSpec, Support

__all__ = ["OPTIONS", "canonical_keys", "option", "resolve", "text_of"]

OPTIONS: tuple[OptionSpec, ...] = (
    *TABLE_OPTIONS,
    *WRITE_OPTIONS,
    *CONCURRENCY_OPTIONS,
    *LOCK_OPTIONS,
    *COMPACTION_OPTIONS,
    *CLEANING_OPTIONS,
    *ARCHIVING_OPTIONS,
    *VERSION_OPTIONS,
    *LOG_BLOCK_OPTIONS,
    *MEMORY_OPTIONS,
    *CLUSTERING_OPTIONS,
    *BUCKET_OPTIONS,
    *REPLACING_OPTIONS,
    *TTL_OPTIONS,
    *COMMIT_OPTIONS,
    *READ_OPTIONS,
    *(spec for family in (*WRITING, *READING, *SERVICES, *PLATFORM) for spec in family.specs()),
)

_BY_KEY: dict[str, OptionSpec] = {key: spec for spec in OPTIONS for key in (spec.key, *spec.aliases)}

_PYTHON_NAMES = {**KEYWORDS, "as_of": "as.of.instant", "query_type": "hoodie.datasource.query.type"}

# Below these prefixes a key that no row names belongs to the user (a class of the user's reads it) and is passed on.
_USER_PREFIXES = ("hoodie.keygen.user.",)


def option(key: str) -> OptionSpec:
    """The row of a key or of an older spelling of it. Raises KeyError when no row has it."""
    return _BY_KEY[key]


def canonical_keys(options: Iterable[str]) -> frozenset[str]:
    """The keys of known options under their one spelling; unknown ones are left out."""
    return frozenset(_BY_KEY[key].key for key in options if key in _BY_KEY)


def text_of(value: object) -> str:
    """A Python value as option text: True → "true", a list or tuple → its items with commas, None → ""."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(text_of(item) for item in value)
    return str(value)


def resolve(
    options: Mapping[str, object],
    session: Mapping[str, object] | None = None,
    door: Door = Door.WRITE,
) -> dict[str, str]:
    """The `hoodie.*` keys (and `as.of.instant`) of a call under their one spelling, with checked values.

    Args:    options: what the caller gave, any spelling; None values and keys of others (`path`, ...) are left out.
             session: session-wide options without their `spark.` in front; the call's own win.
             door: whether a read or a write asks; keys of the other door are left out without a word.
    Returns: key → text, in no particular order.
    Raises:  ConfigError for values that can't be read, for two spellings that disagree, and for options that this
             release refuses. Warns (HudiOptionWarning) about unknown keys, naming the nearest known one, and about
             options without effect.
    """
    own = _known(options, door)
    merged = {**_known(session or {}, door), **own}
    quiet: dict[str, list[str]] = {}
    result = {}
    for key, text in merged.items():
        spec = _BY_KEY.get(key)
        if spec is None or spec.support is Support.HONOURED:
            result[key] = text
        elif text.lower() not in spec.accepted:
            if spec.support is Support.REFUSED:
                raise ConfigError(_refusal(spec, text))
            quiet.setdefault(spec.doc, []).append(key)
    for doc, keys in quiet.items():
        warn_caller(f"No effect in this release: {', '.join(sorted(keys))}. {doc}", HudiOptionWarning)
    return result


def _known(options: Mapping[str, object], door: Door) -> dict[str, str]:
    """Canonical key → normalised text for the keys of this door; user keys stay as they are."""
    result: dict[str, str] = {}
    given_as: dict[str, str] = {}
    for key, value in options.items():
        if value is not None and key in _PYTHON_NAMES:
            _warn_bare(key)
        if value is None or not (key.startswith("hoodie.") or key in _BY_KEY):
            continue
        spec = _BY_KEY.get(key)
        if spec is None:
            if key.startswith(_USER_PREFIXES):
                result[key] = text_of(value)
            else:
                _warn_unknown(key)
            continue
        if door not in spec.doors:
            continue
        text = text_of(value)
        text = spec.normalise(text) if spec.support is Support.HONOURED and text.strip() else text.strip()
        if result.setdefault(spec.key, text) != text:
            raise ConfigError(
                f"{given_as[spec.key]}={result[spec.key]} and {key}={text} are two spellings of one option and "
                f"disagree. Leave one of them out."
            )
        given_as[spec.key] = key
    return {key: text for key, text in result.items() if text or _empty_says_something(key)}


def _empty_says_something(key: str) -> bool:
    """An empty list of fields means "none"; an empty anything else means "not given"."""
    return key in (
        "hoodie.datasource.write.recordkey.field",
        "hoodie.datasource.write.partitionpath.field",
        "hoodie.table.ordering.fields",
        "hoodie.datasource.write.commitmeta.key.prefix",
    )


def _warn_bare(name: str) -> None:
    """A name of Python's among Hudi's keys."""
    warn_caller(
        f"The option {name!r} is ignored: options are given by Hudi's keys, here {_PYTHON_NAMES[name]!r}. "
        f"{name}= is an argument of Python calls.",
        HudiOptionWarning,
    )


def _warn_unknown(key: str) -> None:
    near = get_close_matches(key, _BY_KEY, n=1, cutoff=0.6)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    warn_caller(f"Unknown option {key!r} is ignored.{hint}", HudiOptionWarning)


def _refusal(spec: OptionSpec, found: str) -> str:
    means = f" Accepted: {', '.join(sorted(a for a in spec.accepted if a))}." if any(spec.accepted) else ""
    return (
        f"{spec.key}={found}: this release of PyHudi knows this option and does not do what it asks. {spec.doc}{means} "
        f"Leave it out, or do this step with Apache Hudi; nothing was written."
    )
