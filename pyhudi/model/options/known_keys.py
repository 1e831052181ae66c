"""The known keys: every key that PyHudi knows, and `resolve`, the only place where text keys are checked.

It has Hudi's documented keys with their older spellings, and ours (`hoodie.pyhudi.*`). Honoured options come from the
classes that declare them, the others from a data file (`not_honoured.py`). docs/options.md is generated from here
(`python -m pyhudi.model.options`), in this order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import TypeVar

from pyhudi.errors import ConfigError
from pyhudi.model.options.catalogs.exporting import ExportOptions
from pyhudi.model.options.catalogs.iceberg import ICEBERG_CATALOG_PREFIX
from pyhudi.model.options.catalogs.syncing import SyncOptions
from pyhudi.model.options.concurrency import LOCK_PROVIDER, ConcurrencyOptions, LivenessOptions, LockOptions
from pyhudi.model.options.declare import is_own_class, key_of, own_rows, topic
from pyhudi.model.options.files import DamageOptions, FileOptions
from pyhudi.model.options.index import INDEX_TYPE, BucketOptions, IndexOptions
from pyhudi.model.options.merging import MemoryOptions, MergerOptions, MergingOptions
from pyhudi.model.options.metadata import MetadataOptions
from pyhudi.model.options.not_honoured import Catalogue
from pyhudi.model.options.operation import (
    COMMIT_METADATA_PREFIX,
    CommitOptions,
    OperationOptions,
    OwnOptions,
    ReplacingOptions,
    SchemaOptions,
    StatementOptions,
)
from pyhudi.model.options.queries import SCHEMA_HISTORY, QueryOptions
from pyhudi.model.options.reporting import CallbackOptions, MetricsOptions
from pyhudi.model.options.retention import ArchivingOptions, CleaningOptions, TtlOptions
from pyhudi.model.options.services import LAYOUT_ENABLE, ClusteringOptions, CompactionOptions
from pyhudi.model.options.spec import HudiOptionWarning, OptionScope, OptionSpec, Support, text_of
from pyhudi.model.options.streamer.streamer import StreamerOptions
from pyhudi.model.options.streaming import SourceOptions, StreamOptions
from pyhudi.model.options.table import KeyOptions, TableOptions, VersionOptions
from pyhudi.model.options.validation import ValidationOptions
from pyhudi.redaction import is_text, quoted
from pyhudi.warnings import warn_caller

__all__ = [
    "KEYWORDS",
    "OPTIONS",
    "canonical_keys",
    "check_names",
    "find_spec",
    "known_options",
    "merged_options",
    "options_from_keywords",
    "resolve",
    "spec_of",
]

T = TypeVar("T")

OPTIONS: tuple[OptionSpec, ...] = (
    *topic("Table", TableOptions),
    *topic("Keys and partition paths", KeyOptions),
    *topic("Which row wins", MergingOptions, MergerOptions),
    *topic("Write operation", OperationOptions),
    *topic("Schema", SchemaOptions),
    *topic("Index", IndexOptions, BucketOptions),
    *topic("Files", FileOptions),
    *topic("Time and failed writers", LivenessOptions),
    *topic("PyHudi's own", OwnOptions),
    *topic("Many writers", ConcurrencyOptions),
    *topic("Locks", LockOptions),
    *topic("Metadata table", MetadataOptions),
    *topic("Compaction", CompactionOptions),
    *topic("Cleaning", CleaningOptions),
    *topic("Timeline archive", ArchivingOptions),
    *topic("Table versions", VersionOptions),
    *topic("Memory and executors", MemoryOptions),
    *topic("Damaged files", DamageOptions),
    *topic("Clustering", ClusteringOptions, LAYOUT_ENABLE),
    *topic("Overwriting and deleting partitions", ReplacingOptions),
    *topic("Partition time to live", TtlOptions),
    *topic("Commits", CommitOptions),
    *topic("Validators", ValidationOptions),
    *topic("Commit callbacks", CallbackOptions),
    *topic("Metrics", MetricsOptions),
    *topic("Catalogs", SyncOptions),
    *topic("Exports", ExportOptions),
    *topic("Statements of SQL", StatementOptions),
    *topic("Reading", QueryOptions, SCHEMA_HISTORY),
    *topic("Streams", StreamOptions, SourceOptions),
    *topic("Streamer", StreamerOptions),
)
# Python names of options: those in ARGUMENTS are in signatures, the others only in errors that name the key.
KEYWORDS: Mapping[str, str] = MappingProxyType(
    {spec.keyword: spec.key for spec in sorted(OPTIONS, key=lambda spec: spec.keyword or "") if spec.keyword}
)

ARGUMENTS = frozenset(
    (
        *("record_key", "partition_by", "ordering", "table_name", "table_type", "table_version", "operation", "index"),
        *("cdc", "schema_mode", "sort_columns", "strategy", "policy", "commits_retained", "hours_retained"),
        *("file_versions_retained", "target_file_size_bytes", "min_commits", "max_commits", "days_retained"),
    )
)

_HONOURED: dict[str, OptionSpec] = {key: spec for spec in OPTIONS for key in (spec.key, *spec.aliases)}
_BY_KEY = Catalogue(_HONOURED)

_PYTHON_NAMES = {**KEYWORDS, **{name: key_of(QueryOptions, name) for name in ("as_of", "query_type")}}

# An unknown key with one of these prefixes belongs to the user (for a user's class, or pyiceberg) and is passed on.
_USER_PREFIXES = ("hoodie.keygen.user.", ICEBERG_CATALOG_PREFIX)

# Options that may name a user's class which declares its own options.
_OWN_CLASSES = tuple(_BY_KEY[key] for key in (LOCK_PROVIDER, INDEX_TYPE))


def find_spec(key: str) -> OptionSpec | None:
    """The row of a key or an older spelling; None for an unknown key."""
    return _BY_KEY.get(key)


def spec_of(key: str) -> OptionSpec:
    """Like `find_spec`, for a known key. Raises KeyError for an unknown one."""
    return _BY_KEY[key]


def canonical_keys(options: Iterable[str]) -> frozenset[str]:
    """The canonical keys of known options; unknown ones are left out."""
    return frozenset(_BY_KEY[key].key for key in options if key in _BY_KEY)


def resolve(
    options: Mapping[str, object],
    session: Mapping[str, object] | None = None,
    scope: OptionScope = OptionScope.WRITE,
) -> dict[str, str]:
    """Check the options of a call: return its `hoodie.*` keys (and `as.of.instant`) in canonical spelling, with values.

    Args:    options: the caller's, in any spelling; None values and foreign keys (`path`, ...) are left out. session:
                 session-wide options without the prefix `spark.`; the call's options win.
             scope: read or write; keys of the other scope are left out silently.
    Returns: key → text, in no particular order.
    Raises:  ConfigError for values that can't be read, for two spellings that disagree, and for options that this
             release refuses. Warns (HudiOptionWarning) about unknown keys, naming the nearest known one, and once a
             process about options without effect.
    """
    classes = _classes_of_user({**(session or {}), **options})
    rows = _rows(classes) if scope is OptionScope.WRITE else _BY_KEY
    # A read imports no user's class, so an unknown key may be an option of such a class.
    warns = scope is OptionScope.WRITE or not classes
    merged = {**_normalised(session or {}, scope, rows, warns), **_normalised(options, scope, rows, warns)}
    quiet: dict[str, list[str]] = {}
    result = {}
    for key, text in merged.items():
        spec = rows.get(key)
        if spec is None or spec.support is Support.HONOURED:
            result[key] = text
        elif text.lower() not in spec.accepted:
            if spec.support is Support.REFUSED:
                raise ConfigError(_refusal(spec, text))
            quiet.setdefault(spec.doc, []).append(key)
    for doc, keys in quiet.items():
        warn_caller(f"No effect in this release: {', '.join(sorted(keys))}. {doc}", HudiOptionWarning, once=True)
    return result


def _rows(classes: Iterable[tuple[OptionSpec, str]]) -> Mapping[str, OptionSpec]:
    """Key → row for this call: the known keys, and the options that the user's classes declare.

    Raises ConfigError for a declared key that is already one of our options.
    """
    declared: dict[str, OptionSpec] = {}
    for asking, name in classes:
        for row in own_rows(asking.key, name):
            honoured = next((key for key in (row.key, *row.aliases) if key in _HONOURED), None)
            if honoured is not None:
                raise ConfigError(
                    f"{asking.key}={name}: the class declares {honoured}, which is an option of PyHudi's. Give the "
                    f"option another key, or read it from the settings that the class is made with."
                )
            declared |= dict.fromkeys((row.key, *row.aliases), row)
    return {**_BY_KEY, **declared} if declared else _BY_KEY


def _classes_of_user(options: Mapping[str, object]) -> list[tuple[OptionSpec, str]]:
    """The named user's classes, each with the option that names it."""
    classes = ((spec, text_of(options.get(key)).strip()) for spec in _OWN_CLASSES for key in (spec.key, *spec.aliases))
    return [(spec, name) for spec, name in classes if is_own_class(name)]


def _normalised(
    options: Mapping[str, object], scope: OptionScope, rows: Mapping[str, OptionSpec], warns_unknown: bool
) -> dict[str, str]:
    """Canonical key → normalised text for the keys of this scope; user keys are unchanged."""
    result: dict[str, str] = {}
    given_as: dict[str, str] = {}
    for key, value in options.items():
        _check_text(key, value)
        if value is not None and key in _PYTHON_NAMES:
            _warn_bare(key)
        if value is None or not (key.startswith("hoodie.") or key in rows):
            continue
        spec = rows.get(key)
        if spec is None:
            if key.startswith(_USER_PREFIXES):
                result[key] = text_of(value)
            elif warns_unknown:
                _warn_unknown(key, rows)
            continue
        if scope not in spec.scopes:
            continue
        text = text_of(value)
        text = spec.normalise(text) if spec.support is Support.HONOURED and text.strip() else text.strip()
        if result.setdefault(spec.key, text) != text:
            raise ConfigError(
                f"{given_as[spec.key]}={result[spec.key]} and {key}={text} are two spellings of one option and "
                f"disagree. Leave one of them out."
            )
        given_as[spec.key] = key
    return {key: text for key, text in result.items() if text or _may_be_empty(key, rows)}


def _may_be_empty(key: str, rows: Mapping[str, OptionSpec]) -> bool:
    spec = rows.get(key)
    return spec is not None and spec.may_be_empty


def _check_text(key: object, value: object) -> None:
    """Raise ConfigError, without showing the value, for text that no file of a table can hold."""
    if not isinstance(key, str) or not is_text(key) or not is_text(text_of(value)):
        raise ConfigError(
            f"The option '{quoted(str(key))}': its key or its value is no text, or has half of a UTF-16 pair in it. "
            "Nothing was written."
        )


def _as_argument(name: str) -> str:
    return f" {name}= is an argument of Python calls." if name in {*ARGUMENTS, "as_of", "query_type"} else ""


def _warn_bare(name: str) -> None:
    """Warn of a Python name used instead of Hudi's key."""
    warn_caller(
        f"The option {name!r} is ignored: options are given by Hudi's keys, here {_PYTHON_NAMES[name]!r}."
        f"{_as_argument(name)}",
        HudiOptionWarning,
    )


def _warn_unknown(key: str, rows: Mapping[str, OptionSpec]) -> None:
    near = get_close_matches(key, rows, n=1, cutoff=0.6)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    warn_caller(f"Unknown option {key!r} is ignored.{hint}", HudiOptionWarning)


def _refusal(spec: OptionSpec, text: str) -> str:
    means = f" Accepted: {', '.join(sorted(a for a in spec.accepted if a))}." if any(spec.accepted) else ""
    return (
        f"{spec.key}={text}: this release of PyHudi knows this option and does not do what it asks. {spec.doc}{means} "
        f"Leave it out, or do this step with Apache Hudi; nothing was written."
    )


def check_names(
    options: Mapping[str, object],
    scope: OptionScope,
    session: Callable[[], Mapping[str, object]] = dict,
) -> None:
    """Raise ConfigError for an unknown key in a Python call, naming the nearest known one.

    A key of the other scope is accepted: one mapping may serve reads and writes.

    Args:    session: session-wide options, used if the call does not explain a key: they may name a user's class,
                 which declares its own options.
    """
    prefix = text_of(options.get(COMMIT_METADATA_PREFIX.key, COMMIT_METADATA_PREFIX.default))
    theirs = (*_USER_PREFIXES, prefix) if prefix and scope is OptionScope.WRITE else _USER_PREFIXES
    for key, value in options.items():
        _check_text(key, value)
    unknown = [key for key in options if key not in _BY_KEY and not key.startswith(theirs)]
    if unknown:
        rows = _rows(_classes_of_user({**session(), **options}))
        for key in unknown:
            if key not in rows:
                raise ConfigError(f"Unknown option {key!r}.{_nearest_key(key, rows)} See docs/options.md.")


def known_options(options: Mapping[str, T], scope: OptionScope) -> dict[str, T]:
    """The session's options that a call of this scope uses. Warns (HudiOptionWarning) of unknown keys."""
    rows = _rows(_classes_of_user(options))
    for key in options:
        if key.startswith("hoodie.") and key not in rows and not key.startswith(_USER_PREFIXES):
            _warn_unknown(key, rows)
    return {
        key: value
        for key, value in options.items()
        if (key in rows and scope in rows[key].scopes) or key.startswith(_USER_PREFIXES)
    }


def _nearest_key(key: str, keys: Iterable[str]) -> str:
    if key in _PYTHON_NAMES:
        return f" Options have Hudi's keys, here {_PYTHON_NAMES[key]!r}.{_as_argument(key)}"
    # Keys have much of their text in common, so only a close match hints at the intended key.
    near = get_close_matches(key, keys, n=1, cutoff=0.7)
    return f" Did you mean {near[0]!r}?" if near else ""


def options_from_keywords(keywords: Mapping[str, object]) -> dict[str, object]:
    """Convert Python names to option keys; names that are already option keys (`hoodie....`) are unchanged.

    Raises ConfigError for an unknown name, naming the nearest, and for an option set by both names.
    """
    result: dict[str, object] = {}
    for name, value in keywords.items():
        key = name if "." in name else KEYWORDS.get(name)
        if key is None:
            raise ConfigError(
                f"Unknown argument {name!r}.{_nearest(name)} Or give Hudi's own key, as in **{{'hoodie....': ...}}."
            )
        if key in result:
            raise ConfigError(f"{name!r} and {key!r} are the same option; leave one of them out.")
        result[key] = value
    return result


def _nearest(name: str) -> str:
    near = get_close_matches(name, KEYWORDS, n=1)
    return f" Did you mean {near[0]!r}?" if near else f" Known: {', '.join(KEYWORDS)}."


def merged_options(options: Mapping[str, object] | None, keywords: Mapping[str, object]) -> dict[str, object]:
    """Merge `options` by key and `keywords` by Python name into a mapping by key. Raises ConfigError for duplicates."""
    from_keywords = options_from_keywords({name: value for name, value in keywords.items() if value is not None})
    for key, value in (options or {}).items():
        if key in from_keywords and from_keywords[key] != value:
            spec = find_spec(key)
            values = "" if spec and spec.secret else f", as {value!r} in options and as {from_keywords[key]!r} by name"
            raise ConfigError(f"{key} is given twice{values}.")
    return {**(options or {}), **from_keywords}
