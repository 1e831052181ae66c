"""Errors for wrong names of arguments and attributes: each says the right name, the option's key, or the call.

The tables below have the words of delta-rs, PyIceberg, delta-spark, pandas, Hudi's Spark bundle and earlier releases.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from functools import wraps
from typing import TypeVar, cast

from pyhudi.errors import ConfigError
from pyhudi.model.options import KEYWORDS

__all__ = ["RENAMED", "UnknownArgument", "checked_call", "checked_methods", "no_attribute"]

Call = TypeVar("Call", bound=Callable[..., object])
Class = TypeVar("Class", bound=type)

_CALLS_SHOWN = 3  # in an error
_NO_NAMES = frozenset({"self", "cls"})
_TAKEN_BY: dict[str, list[str]] = {}  # a name → the calls that take it


class UnknownArgument(ConfigError, TypeError):
    """A call has no argument of this name."""


def checked_call(function: Call) -> Call:
    """The function with an error for wrong argument names that suggests the right one, UnknownArgument."""
    parameters = inspect.signature(function).parameters
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values()):
        return function  # it passes names on to a library
    names = frozenset(parameters)
    for name in names:
        _TAKEN_BY.setdefault(name, []).append(function.__qualname__)

    @wraps(function)
    def call(*positional: object, **by_name: object) -> object:
        if not by_name.keys() <= names:
            called = function.__qualname__
            if "self" in names:  # a method of a base class is one of its kinds
                called = f"{type(positional[0]).__name__}.{function.__name__}"
            _check(by_name, names, called)
        return function(*positional, **by_name)

    return cast("Call", call)


def checked_methods(kind: Class) -> Class:
    """`checked_call` for each public method of a class; its classmethods and staticmethods too."""
    for name, value in list(vars(kind).items()):
        if name.startswith("_") and name != "__init__":
            continue
        if isinstance(value, (classmethod, staticmethod)):
            setattr(kind, name, type(value)(checked_call(value.__func__)))
        elif inspect.isfunction(value):
            setattr(kind, name, checked_call(value))
    return kind


def _check(by_name: Mapping[str, object], names: frozenset[str], call: str) -> None:
    unknown = next(name for name in by_name if name not in names)
    raise UnknownArgument(f"{call} has no argument {unknown!r}. {_advice(unknown, names)}")


def _advice(name: str, names: frozenset[str]) -> str:
    takes_options = "options" in names
    if takes_options and "." in name:
        return f"Hudi's keys go into options={{{name!r}: ...}}."
    if takes_options and name in KEYWORDS:
        return f"Here it is given as options={{{KEYWORDS[name]!r}: ...}}."
    hint = _argument_like(name, names)
    if hint is not None:
        return hint
    nearest = get_close_matches(name, names, n=1, cutoff=0.8)
    option = _option_like(name) if takes_options and not nearest else None
    if option is not None:
        return f"Here it is given as options={{{option!r}: ...}}."
    # The table's own calls first, in whatever order modules were imported.
    takers = sorted(_TAKEN_BY.get(name, ()), key=lambda call: not call.startswith("HudiTable."))
    if takers and not nearest:
        return f"It is an argument of {', '.join(takers[:_CALLS_SHOWN])}."
    (similar,) = get_close_matches(name, names, n=1) or ("",)
    return f"Did you mean {similar!r}?" if similar else f"It takes {', '.join(sorted(names - _NO_NAMES))}."


# ---- words of other libraries

# PyHudi's argument → other libraries' names, in lower case without "_". The first that a call takes is meant.
_ARGUMENTS: Mapping[str, str] = {
    "where": "predicate rowfilter filter filters condition deletefilter overwritefilter expression replacewhere",
    "on": "key keys mergekey mergekeys predicate condition joincols primarykey using",
    "record_key": "key keys primarykey primarykeys mergekey mergekeys recordkeys recordkeyfield recordkeyfields "
    "uniquekey idcolumn identifierfields joincols keycolumns keyfields uniquecolumns",
    "partition_by": "partitioncols partitioncolumns partitionedby partitionspec partitionkeys partitionfields "
    "partitionpath partitionpathfield",
    "ordering": "precombine precombinefield precombinekey orderingfield orderingfields sequenceby preagg "
    "versioncolumn orderby sortby",
    "sort_columns": "zorder zorderby sortby sortorder orderby clusterby columns",
    "columns": "selectedfields select fields projection cols usecols",
    "as_of": "version timestamp snapshotid versionasof timestampasof asoftimestamp asofinstant asofversion snapshot",
    "to": "version timestamp snapshotid target instant instanttime versionasof",
    "since": "startingversion startingtimestamp fromsnapshot begin begininstanttime start",
    "until": "endingversion endingtimestamp end endinstanttime",
    "set": "updates newvalues values assignments",
    "values": "updates newvalues set",
    "data": "df rows table source frame dataframe",
    "source": "df rows data frame dataframe",
    "path": "tableuri tablepath uri location basepath tableidentifier",
    "table_type": "type storagetype mergetype",
    "table_name": "name tablename identifier",
    "options": "configuration properties tblproperties config conf hudioptions tableproperties",
    "storage_options": "storageconfig fsoptions fileoptions credentials filesystem",
    "operation": "op writeoperation",
    "mode": "savemode ifexists",
    "index": "indextype",
    "lock": "lockprovider",
    "metadata_table": "metadata metadataenable usemetadata",
    "key_generator": "keygen keygenerator keygeneratorclass",
    "dry_run": "dryrun onlyplan plan",
    "hours_retained": "retentionhours hours olderthan retainhours",
    "commits_retained": "retainlast retain commits versionsretained keep numcommits",
    "file_versions_retained": "versionsretained versions fileversions",
    "target_file_size_bytes": "targetsize targetfilesize maxfilesize targetfilesizebytes",
    "max_file_size_bytes": "targetfilesize maxfilesize targetfilesizebytes",
    "partitions": "partitionfilters partition partitionfilter",
    "days_retained": "days retentiondays ttl",
    "limit": "n nrows maxrows",
    "merge_mode": "recordmergemode",
    "hive_style": "hivestylepartitioning",
    "compression": "codec compressioncodec",
    "format": "incrementalformat",
    "scd_type": "storedasscdtype type scd",
    "table": "target path",
    "sequence_by": "ordering precombine sequence orderby",
    "apply_as_deletes": "deletes applyasdelete",
    "except_column_list": "exceptcolumns exclude",
}

# Words that are no arguments of PyHudi, or only of another call.
_ADVICE: Mapping[str, str] = {
    "mode": "A save mode needs rows and a path: write_hudi(path, data, mode='overwrite'); for a table that is "
    "open, overwrite(data).",
    "operation": "The method is the operation; write_hudi(path, data, 'bulk_insert') takes it as an argument.",
    "overwriteschema": "write_hudi(path, data, mode='overwrite', schema_mode='overwrite') takes the data's columns.",
    "applyastruncates": "A truncate is no event of a key: call table.delete(where='true') between two batches.",
    "ignorenullupdates": "Nulls of events are values: fill them before, from the row that the source has.",
    "mergeschema": "New columns of the data are added.",
    "commitproperties": "Options that begin with an underscore go into the commit: options={'_name': 'text'}.",
    "custommetadata": "Options that begin with an underscore go into the commit: options={'_name': 'text'}.",
    "snapshotproperties": "Options that begin with an underscore go into the commit: options={'_name': 'text'}.",
    "usermetadata": "Options that begin with an underscore go into the commit: options={'_name': 'text'}.",
    "writerproperties": "What it would hold has arguments: compression, compression_level, max_file_size_bytes, ...",
    "begin": "A range of commits is HudiTable.changes(since, until).",
    "end": "A range of commits is HudiTable.changes(since, until).",
    "incrementalformat": "Changes are HudiTable.changes(since, until, format='cdc').",
    "sourcealias": "The sides of a merge are always called source and target.",
    "targetalias": "The sides of a merge are always called source and target.",
    "casesensitive": "Names match in any case, as in Spark.",
    "version": "A moment is given as as_of of scan: table.scan(as_of=...).",
    "description": "A Hudi table has no description.",
    "enforceretentionduration": "There is nothing to enforce: the policy's number decides how long files are kept.",
}

# A name of HudiTable up to release 0.1 → its name now.
RENAMED: Mapping[str, str] = {
    "add_constraint": "constraints.add(name, condition)",
    "add_files": "maintenance.add_files(paths)",
    "archive": "maintenance.archive()",
    "build_indexes": "indexes.build()",
    "change_type": "maintenance.change_type(to)",
    "checkpoint": "inspect.checkpoint()",
    "config": "state().config",
    "copy_to": "maintenance.copy_to(path)",
    "create_index": "indexes.create(name)",
    "delete_savepoint": "savepoints.delete(instant_time)",
    "delete_where": "delete(where=...)",
    "describe": "inspect.describe()",
    "diff": "inspect.diff(since, until)",
    "downgrade": "maintenance.downgrade(to)",
    "drop_constraint": "constraints.drop(name)",
    "drop_index": "indexes.drop(name)",
    "files": "inspect.files()",
    "health": "inspect.health()",
    "insert_overwrite_table": "overwrite(data)",
    "lock_audit": "maintenance.lock_audit",
    "log_compact": "maintenance.log_compact()",
    "partitions": "inspect.partitions()",
    "repair": "maintenance.repair",
    "repair_properties": "pyhudi.repair_properties(path)",
    "report": "inspect.report(path)",
    "run_ttl": "maintenance.run_ttl()",
    "savepoint": "savepoints.create(instant_time)",
    "set_checkpoint": "maintenance.set_checkpoint(value)",
    "set_properties": "maintenance.set_properties(properties)",
    "stats": "inspect.stats()",
    "timeline": "state().timeline",
    "to_polars_lazy": "to_polars(lazy=True)",
    "truncate": 'delete_partitions(matching="*")',
    "upgrade": "maintenance.upgrade(to)",
}

# PyHudi's method or property → other libraries' names.
_ATTRIBUTES: Mapping[str, str] = {
    "to_arrow": "to_pyarrow_table to_pyarrow read_arrow arrow",
    "to_dataset": "to_pyarrow_dataset dataset",
    "scan": "read query select filter load load_as_version",
    "insert": "append write",
    "clean": "vacuum expire_snapshots remove_orphan_files",
    "cluster": "optimize z_order zorder rewrite_data_files",
    "compact": "compaction rewrite",
    "history": "snapshots versions commits log",
    "state": "version metadata_log properties table_config configuration table_properties",
    "alter": "update_schema add_columns add_column evolve_schema alter_table",
    "rollback": "undo rollback_to_snapshot rollback_to_version",
    "restore": "restore_to_version rollback_to_savepoint manage_snapshots",
    "changes": "load_cdf cdf incremental read_changes table_changes",
    "inspect": "file_uris get_files get_add_actions data_files partition_values get_partitions",
    "delete": "delete_rows remove",
    "merge": "merge_into",
    "path": "table_uri location base_path uri",
    "drop": "drop_table delete_table",
    "create": "create_table createifnotexists create_or_replace",
    "exists": "is_hudi_table is_deltatable table_exists",
    "savepoints": "tags list_savepoints manage_snapshots",
}


def _plain(word: str) -> str:
    return word.replace("_", "").lower()


def _by_word(table: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Another library's word → PyHudi's words, in the order of the table."""
    words: dict[str, tuple[str, ...]] = {}
    for ours, theirs in table.items():
        for word in theirs.split():
            words[_plain(word)] = (*words.get(_plain(word), ()), ours)
    return words


_OUR_ARGUMENTS, _OUR_ATTRIBUTES = _by_word(_ARGUMENTS), _by_word(_ATTRIBUTES)


def _argument_like(word: str, arguments: Collection[str]) -> str | None:
    """PyHudi's words for another library's word in a call with these arguments; None for an unknown word."""
    plain = _plain(word)
    ours = next((name for name in _OUR_ARGUMENTS.get(plain, ()) if name in arguments), None)
    # A name of our own in another spelling: "recordKey".
    ours = ours or next((name for name in arguments if _plain(name) == plain), None)
    return f"Did you mean {ours!r}?" if ours else _ADVICE.get(plain)


def _option_like(word: str) -> str | None:
    """The option key for another library's word, or for a similar word of PyHudi's; None for an unknown word."""
    same = [name for name in KEYWORDS if _plain(name) == _plain(word)]
    similar = get_close_matches(word, KEYWORDS, n=1, cutoff=0.85)
    ours = next((name for name in (*same, *_OUR_ARGUMENTS.get(_plain(word), ()), *similar) if name in KEYWORDS), None)
    return KEYWORDS[ours] if ours else None


def no_attribute(table: object, name: str) -> AttributeError:
    """The error for an attribute that a table does not have; for a name of an earlier release, or another
    library's word, it suggests PyHudi's.
    """
    now = RENAMED.get(name)
    ours = [now] if now else [each for each in _OUR_ATTRIBUTES.get(_plain(name), ()) if hasattr(type(table), each)]
    words = f"It is {now} now" if now else f"PyHudi's name for {name} is {' or '.join(ours)}"
    hint = f". {words}." if ours else ""
    # Without a name and an object Python adds no guess to ours.
    error = AttributeError(f"{type(table).__name__!r} object has no attribute {name!r}{hint}")
    if not ours:
        error.name, error.obj = name, table
    return error
