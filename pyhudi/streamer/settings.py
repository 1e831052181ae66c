"""A pipeline's configuration: a TOML file, a HoodieStreamer properties file, or a mapping. All of it is checked first.

    orders.toml:7: hoodie.streamer.source.kafka.topik: there is no such key. Did you mean ….topic?

A key is one of Hudi's (`hoodie.…`, also `hoodie.deltastreamer.…`), a command-line flag of HoodieStreamer
(`--source-class`, `source-class`), a name of Python calls (`record_key`), or goes to the client of the source
(`bootstrap.servers`, `fs.s3a.endpoint`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import TypeAlias

from pyhudi.errors import ConfigError, HudiError, PathNotFound
from pyhudi.formats.properties import parse_properties
from pyhudi.model.options import KEYWORDS, OPTIONS, OptionScope, OptionSpec, Support, WriteOptions, streamer_options
from pyhudi.model.options.declare import specs_of
from pyhudi.model.options.known_keys import find_spec
from pyhudi.model.options.spec import ON_READ, text_of
from pyhudi.model.options.streamer.streamer import STREAMER_PREFIX, StreamerOptions
from pyhudi.model.options.streamer.tables import TablesOptions
from pyhudi.storage import open_storage
from pyhudi.streamer.places import check_places

__all__ = [
    "Config",
    "Entry",
    "PipelineSettings",
    "WithMore",
    "canonical",
    "file_entries",
    "load_settings",
    "read_entries",
    "settings_of",
]


@dataclass(frozen=True, slots=True)
class WithMore:
    """A configuration, and keys that count before its own."""

    config: Config
    more: Mapping[str, object]


Config: TypeAlias = "str | os.PathLike[str] | Mapping[str, object] | WithMore"

_OLD_PREFIX = "hoodie.deltastreamer."
_FLAGS_OF_WRITES = {
    "target-table": "hoodie.table.name",
    "table-type": "hoodie.datasource.write.table.type",
    "base-file-format": "hoodie.table.base.file.format",
    "source-ordering-field": "hoodie.table.ordering.fields",
    "source-ordering-fields": "hoodie.table.ordering.fields",
    "payload-class": "hoodie.datasource.write.payload.class",
    "merge-mode": "hoodie.write.record.merge.mode",
    "record-merge-mode": "hoodie.write.record.merge.mode",
    "merge-strategy-id": "hoodie.write.record.merge.strategy.id",
    "merge-impl-classes": "hoodie.write.record.merge.custom.implementation.classes",
    "op": "hoodie.datasource.write.operation",
    "enable-sync": "hoodie.datasource.meta.sync.enable",
    "enable-hive-sync": "hoodie.datasource.hive_sync.enable",
    "sync-tool-classes": "hoodie.meta.sync.client.tool.class",
}
_COMPACTION_OFF = "disable-compaction"
_COMPACTION_OFF_BY = {
    "hoodie.compact.inline": "false",
    "hoodie.datasource.write.streaming.disable.compaction": "true",  # beside a continuous run
}
_STORE_PREFIXES = ("fs.", "dfs.", "spark.hadoop.fs.")
_INCLUDES = ("include", "props")
_TABLES = "tables"
_TARGET = "hoodie.streamer.target-base-path"
_OPERATION = "hoodie.datasource.write.operation"
_OF_SEVERAL = frozenset(spec.key for spec in specs_of(TablesOptions))
_LISTED = " List them as [tables.NAME] or in hoodie.streamer.ingestion.tablesToBeIngested (docs/streamer.md)."
_READS = "HoodieIncrSource"
_OF_READS = (
    "hoodie.datasource.read.incr.fallback.fulltablescan.enable",
    "hoodie.datasource.read.incr.filters",
    "hoodie.datasource.read.incr.path.glob",
    "hoodie.read.timeline.holes.resolution.policy",
)
_REFUSED_WRITES = {"bootstrap": "run pyhudi.bootstrap first", "delete": "mark rows with _hoodie_is_deleted"}


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of a configuration: the key as it is spelled, its text, where it stands, and of which table it is."""

    key: str
    text: str
    place: str
    table: str | None = None


@dataclass(frozen=True, slots=True)
class PipelineSettings:
    """A checked configuration. `write`: Hudi's options of the writes; `read`: of reads of a Hudi table that is the
    source; `client`: of the source's client, without a prefix; `store`: of remote stores.
    """

    place: str
    options: StreamerOptions
    write: Mapping[str, str]
    client: Mapping[str, str]
    store: Mapping[str, str]
    read: Mapping[str, str] = field(default_factory=dict)

    @property
    def allows_kinds(self) -> bool:
        """True if columns of numbers may become texts, and columns of texts bytes."""
        return self.write.get("hoodie.pyhudi.schema.allow.kind.change", "").lower() == "true"

    @property
    def target(self) -> str:
        """The table's path."""
        assert self.options.target is not None
        return self.options.target

    @property
    def operation(self) -> str:
        """The operation of the writes."""
        return self.write.get(_OPERATION, "upsert").lower()


def load_settings(config: Config) -> PipelineSettings:
    """Read and check the configuration of a table. Raises ConfigError, with the line and the right word."""
    place, entries, more = read_entries(config)
    return settings_of(place, [*entries, *more])


def settings_of(place: str, entries: Sequence[Entry]) -> PipelineSettings:
    """Check the entries of a table; a later one counts before an earlier one of the same key. Raises ConfigError."""
    stream: dict[str, Entry] = {}
    write: dict[str, Entry] = {}
    read: dict[str, Entry] = {}
    client: dict[str, str] = {}
    store: dict[str, str] = {}
    for entry in entries:
        key = canonical(entry.key)
        spec = find_spec(key)
        if key in _OF_SEVERAL or entry.table is not None:
            raise ConfigError(f"{entry.place}: {entry.key} is of several tables, and there are none.{_LISTED}")
        if spec is not None:
            _checked(spec, entry)
            kind = read if spec.scopes == ON_READ else write
            (stream if OptionScope.STREAM in spec.scopes else kind)[spec.key] = entry
        elif key == f"{STREAMER_PREFIX}{_COMPACTION_OFF}":
            if entry.text.lower() == "true":
                for off, text in _COMPACTION_OFF_BY.items():
                    write[off] = Entry(entry.key, text, entry.place)
        elif key.startswith("hoodie.keygen.user."):
            write[key] = entry
        elif key.startswith("hoodie."):
            raise ConfigError(f"{entry.place}: {entry.key}: there is no such key.{_nearest(key)}")
        elif key.startswith(_STORE_PREFIXES):
            store[key.removeprefix("spark.hadoop.")] = entry.text
        elif "." in key or ":" in key:
            client[key.removeprefix("kafka.")] = entry.text
        else:
            raise ConfigError(f"{entry.place}: {entry.key}: there is no such key.{_nearest(key)}")
    if _TARGET not in stream:
        raise ConfigError(f'{place}: target-base-path is missing, the table\'s path: target-base-path = "/lake/t".')
    settings = _settings(place, stream, write, client, store)
    source = settings.options.source.rpartition(".")[2]
    for key, entry in read.items():
        if source != _READS or key not in _OF_READS:
            raise ConfigError(
                f"{entry.place}: {entry.key} is of reads: in a pipeline {_READS} takes {', '.join(_OF_READS)}, and "
                f"{source} takes none."
            )
    return replace(settings, read={key: entry.text for key, entry in read.items()})


def _settings(
    place: str,
    stream: Mapping[str, Entry],
    write: Mapping[str, Entry],
    client: Mapping[str, str],
    store: Mapping[str, str],
) -> PipelineSettings:
    texts = {key: entry.text for key, entry in write.items()}
    try:
        options = streamer_options({key: entry.text for key, entry in stream.items()})
        WriteOptions.parse(texts)
    except ConfigError as error:
        raise _with_line(error, place, {**stream, **write}) from error
    settings = PipelineSettings(place, options, texts, client, store)
    if settings.operation in _REFUSED_WRITES:
        raise ConfigError(
            f"{write[_OPERATION].place}: operation {settings.operation} is none of a pipeline: "
            f"{_REFUSED_WRITES[settings.operation]}."
        )
    if options.filters_dupes and settings.operation == "upsert":
        raise ConfigError(
            f"{stream['hoodie.streamer.filter-dupes'].place}: filter-dupes leaves rows out whose keys the table has, "
            'and an upsert updates them. Add op = "INSERT", or leave filter-dupes out.'
        )
    try:
        check_places(options)
    except ConfigError as error:
        raise _with_line(error, place, stream) from error
    return settings


def _with_line(error: ConfigError, place: str, entries: Mapping[str, Entry]) -> ConfigError:
    """The error with the line of the key that it names."""
    entry = next((one for key, one in entries.items() if key in str(error)), None)
    return type(error)(f"{place if entry is None else entry.place}: {error}")


def read_entries(config: Config) -> tuple[str, Sequence[Entry], Sequence[Entry]]:
    """Where a configuration is, its entries, and those that count before all others. Raises ConfigError."""
    if isinstance(config, WithMore):
        place, entries, more = read_entries(config.config)
        return place, entries, [*more, *_flat(config.more, "--option", {})]
    if isinstance(config, Mapping):
        return "The configuration", list(_sections(config, "The configuration", {})), []
    place = os.fspath(config)
    return place, list(file_entries(place)), []


def file_entries(path: str) -> Iterator[Entry]:
    """The entries of a file, those of included files first. Raises ConfigError."""
    folder, _, name = path.rpartition("/")
    try:
        data = open_storage(folder or ".").read(name, 1 << 24)
    except PathNotFound as error:
        raise ConfigError(f"There is no configuration {path!r}.") from error
    if path.endswith(".toml"):
        yield from _sections(_toml(data, path), path, _toml_lines(data.decode("utf-8", "replace")))
        return
    lines = _lines_of(data.decode("iso-8859-1"))
    properties = parse_properties(data, path)
    for key, text in properties.items():
        if key in _INCLUDES:
            yield from file_entries(text if text.startswith("/") or ":" in text else f"{folder or '.'}/{text}")
    for key, text in properties.items():
        if key not in _INCLUDES:
            yield Entry(key, text, _place(path, key, lines))


def _toml(data: bytes, path: str) -> Mapping[str, object]:
    try:
        import tomllib
    except ImportError as error:  # Python 3.10
        raise ConfigError(f"{path}: TOML needs Python 3.11; write a properties file, key=value a line.") from error
    try:
        return tomllib.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: no TOML: {error}.") from error


def _sections(values: Mapping[str, object], place: str, lines: Mapping[str, int]) -> Iterator[Entry]:
    """The entries, those of `tables` with the name of their table. Raises ConfigError."""
    yield from _flat({name: value for name, value in values.items() if name != _TABLES}, place, lines)
    tables = values.get(_TABLES, {})
    if not isinstance(tables, Mapping) or not all(isinstance(one, Mapping) for one in tables.values()):
        raise ConfigError(f"{_place(place, _TABLES, lines)}: expected a section for each table: [tables.orders].")
    for table, own in tables.items():
        for entry in _flat(own, place, lines, f"{_TABLES}.{table}"):
            key = entry.key.removeprefix(f"{_TABLES}.{table}.")
            head, _, tail = key.partition(".")
            if find_spec(key) is None and find_spec(canonical(tail)) is not None:
                # As a key of the source's client it would get lost.
                raise ConfigError(f'{entry.place}: a name with a dot is quoted: [tables."{table}.{head}"].')
            yield Entry(key, entry.text, entry.place, table)
        if not own:
            yield Entry("", "", _place(place, f"{_TABLES}.{table}", lines), table)


def _flat(values: Mapping[str, object], place: str, lines: Mapping[str, int], before: str = "") -> Iterator[Entry]:
    """The entries of nested tables, their names joined by dots."""
    for name, value in values.items():
        key = f"{before}.{name}" if before else name
        if isinstance(value, Mapping):
            yield from _flat(value, place, lines, key)
        else:
            yield Entry(key, text_of(value), _place(place, key, lines))


def _toml_lines(text: str) -> dict[str, int]:
    """Each key with the name of its section → the line's number; the sections themselves, too."""
    numbers: dict[str, int] = {}
    section = ""
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.replace('"', "").replace("'", "").strip()
        if bare.startswith("["):
            section = bare.partition("]")[0].lstrip("[").strip()
            numbers.setdefault(section, number)
        elif "=" in bare:
            key = bare.partition("=")[0].strip()
            numbers.setdefault(f"{section}.{key}" if section else key, number)
    return numbers


def _lines_of(text: str) -> dict[str, int]:
    """What stands before the first separator of each line of properties → the line's number."""
    numbers: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        cut = min((at for at in map(line.find, "=: \t") if at > 0), default=len(line))
        numbers.setdefault(line[:cut].strip(), number)
    return numbers


def _place(path: str, key: str, lines: Mapping[str, int]) -> str:
    """The file and the line of a key. An inline table of TOML has a line for all its keys."""
    parts = key.split(".")
    heads = (".".join(parts[:end]) for end in range(len(parts), 0, -1))
    number = next((lines[head] for head in heads if head in lines), None)
    return path if number is None else f"{path}:{number}"


def canonical(key: str) -> str:
    """The key of an entry in Hudi's spelling of today."""
    if key.startswith(_OLD_PREFIX):
        newer = STREAMER_PREFIX + key.removeprefix(_OLD_PREFIX)
        key = newer if find_spec(key) is None else key
    flag = key.removeprefix(STREAMER_PREFIX).removeprefix("--").replace("_", "-")
    if flag in _FLAGS_OF_WRITES:
        return _FLAGS_OF_WRITES[flag]
    if find_spec(STREAMER_PREFIX + flag) is not None or flag == _COMPACTION_OFF:
        return STREAMER_PREFIX + flag
    return KEYWORDS.get(key, key)


def _checked(spec: OptionSpec, entry: Entry) -> None:
    """Raise ConfigError for a value that its key can't have, with the line."""
    if spec.support is not Support.HONOURED or not entry.text.strip():
        return
    try:
        spec.normalise(entry.text)
    except HudiError as error:
        raise ConfigError(f"{entry.place}: {error}") from error


def _nearest(key: str) -> str:
    flags = [spec.key.removeprefix(STREAMER_PREFIX) for spec in OPTIONS if spec.key.startswith(STREAMER_PREFIX)]
    known = [*(spec.key for spec in OPTIONS), *flags, *_FLAGS_OF_WRITES, *KEYWORDS]
    bare = key.removeprefix("--").replace("_", "-")
    near = get_close_matches(key, known, n=1, cutoff=0.7) or get_close_matches(bare, known, n=1, cutoff=0.6)
    return f" Did you mean {near[0]}?" if near else " docs/streamer-options.md and docs/options.md list them."
