"""Several tables by one configuration: that of each, with its own keys before the common ones.

[tables.orders]                                              a section of TOML
hoodie.streamer.ingestion.tablesToBeIngested=shop.orders     a file of HoodieMultiTableStreamer, and one a table
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyhudi.errors import ConfigError
from pyhudi.model.options import streamer_options
from pyhudi.model.options.declare import own_specs
from pyhudi.model.options.streamer.tables import TablesOptions
from pyhudi.streamer.places import place_of
from pyhudi.streamer.settings import (
    Config,
    Entry,
    PipelineSettings,
    canonical,
    file_entries,
    read_entries,
    settings_of,
)

__all__ = ["load_tables"]

_KEYS = own_specs(TablesOptions)
_NAMES, _FOLDER, _PREFIX = (_KEYS[name].key for name in ("names", "folder", "prefix"))
_FILE_OF = re.compile(r"hoodie\.streamer\.ingestion\.(.+)\.configFile")
_TARGET = "hoodie.streamer.target-base-path"
_NAME = "hoodie.table.name"
_DATABASE = "default"  # of a table whose name has none
_LINE = re.compile(r":\d+$")


def load_tables(config: Config) -> Mapping[str, PipelineSettings]:
    """Table → its checked configuration; that of one table has the name "".

    Raises ConfigError for anything in it that is wrong, with the line and the right word.
    """
    place, entries, more = read_entries(config)
    common = [entry for entry in entries if entry.table is None]
    said = {canonical(entry.key): entry for entry in [*common, *more]}
    sections = dict.fromkeys(entry.table for entry in entries if entry.table is not None)
    if _NAMES not in said and not sections:
        return {"": settings_of(place, [*common, *more])}
    own: dict[str, list[Entry]] = {
        name: [entry for entry in entries if entry.table == name and entry.key] for name in sections
    }
    folders = {name: name for name in sections}
    options = streamer_options({key: said[key].text for key in (_NAMES, _FOLDER, _PREFIX) if key in said})
    for name in _listed(said[_NAMES], options.tables.names) if _NAMES in said else ():
        if name in own:
            raise ConfigError(f"{said[_NAMES].place}: the table {name} is there twice.")
        own[name] = list(file_entries(_file_of(name, said, options.tables.folder)))
        folders[name] = _with_database(name)
    _check_common(said, own)
    shared, before = ([one for one in ones if not _is_of_several(one)] for ones in (common, more))
    tables: dict[str, PipelineSettings] = {}
    for name, ones in own.items():
        mine = [replace(entry, table=None) for entry in ones]
        prefix = []
        if options.tables.prefix is not None:
            target = "/".join([options.tables.prefix.rstrip("/"), *folders[name].split(".")])
            prefix = [Entry(_TARGET, target, said[_PREFIX].place)]
        tables[name] = settings_of(mine[0].place if mine else place, [*prefix, *shared, *mine, *before])
    _check_targets(tables)
    _check_quarantines(tables)
    return tables


def _listed(listed: Entry, names: Sequence[str]) -> Sequence[str]:
    """The names of Hudi's list. Raises ConfigError for none, and for those of which Hudi would read a part."""
    wrong = next((name for name in names if name.count(".") > 1), None)
    if wrong is not None or not names:
        raise ConfigError(f"{listed.place}: {_NAMES}: expected db.table,db.table, found {wrong or listed.text!r}.")
    return names


def _check_common(said: Mapping[str, Entry], own: Mapping[str, Sequence[Entry]]) -> None:
    """Raise ConfigError for common keys that would make one of several tables, and for files of tables not listed."""
    if _NAME in said:
        raise ConfigError(f"{said[_NAME].place}: {said[_NAME].key} would name all tables alike. Leave it out.")
    for key, entry in said.items():
        named = _FILE_OF.fullmatch(key)
        if named is not None and named[1] not in {_with_database(name) for name in own}:
            raise ConfigError(f"{entry.place}: {entry.key}: {_NAMES} does not list {named[1]}.")


def _check_targets(tables: Mapping[str, PipelineSettings]) -> None:
    """Raise ConfigError for two pipelines into one table, which has one series of checkpoints."""
    first: dict[str, str] = {}
    for name, settings in tables.items():
        other = first.setdefault(place_of(settings.target), name)
        if other != name:
            raise ConfigError(
                f"{settings.place}: {name} and {other} are both written to {settings.target}. A table has one "
                "series of checkpoints: give each a target-base-path, or all a base-path-prefix."
            )


def _check_quarantines(tables: Mapping[str, PipelineSettings]) -> None:
    """Raise ConfigError for a quarantine table that is the table of another pipeline."""
    targets = {place_of(settings.target): name for name, settings in tables.items()}
    for name, settings in tables.items():
        path = settings.options.quarantine.path
        if path is not None and place_of(path) in targets:
            raise ConfigError(
                f"{settings.place}: {name} sets rows aside in {path}, the table of {targets[place_of(path)]}."
            )


def _is_of_several(entry: Entry) -> bool:
    key = canonical(entry.key)
    return key in (_NAMES, _FOLDER, _PREFIX) or _FILE_OF.fullmatch(key) is not None


def _with_database(name: str) -> str:
    return name if "." in name else f"{_DATABASE}.{name}"


def _file_of(name: str, said: Mapping[str, Entry], folder: str | None) -> str:
    """The file of a listed table. Raises ConfigError where nothing says it."""
    whole = _with_database(name)
    named = said.get(f"hoodie.streamer.ingestion.{whole}.configFile")
    if named is not None:
        return _beside(named.place, named.text)
    if folder is None:
        raise ConfigError(
            f"{said[_NAMES].place}: the file of the table {name} is missing: "
            f"hoodie.streamer.ingestion.{whole}.configFile, or config-folder, the folder that has it."
        )
    return _beside(said[_FOLDER].place, f"{folder.rstrip('/')}/{whole.replace('.', '_', 1)}_config.properties")


def _beside(place: str, path: str) -> str:
    """A path that a file says: relative to this file's folder."""
    folder = _LINE.sub("", place).rpartition("/")[0]
    return path if not folder or path.startswith("/") or ":" in path else f"{folder}/{path}"
