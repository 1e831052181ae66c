"""Reading one file group of the metadata table: its records in the order in which they were written.

Base file and blocks of log files are HFiles, so single keys and prefixes are looked up in each by its index. The
records keep their order by `sequence`: 0 in the base file, then one number per block.
Source: docs/formats/metadata-table.md, "Reading a file group", "Records".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import CorruptFile
from pyhudi.filegroup.log_blocks import BlockRules, blocks_of
from pyhudi.filegroup.log_damage import scan_slice
from pyhudi.formats.avro.decode import AvroDecoder
from pyhudi.formats.hfile import GATHER_BYTES, Entries, HFileReader, gathered, open_hfile
from pyhudi.formats.hfile.key_column import sorted_keys
from pyhudi.formats.hfile.prefixes import ranges_of
from pyhudi.formats.log.reader import LogBlock
from pyhudi.meta_client import MetaClient
from pyhudi.metadata.rows_by_key import RowsByKey
from pyhudi.metadata.sorted_runs import sorted_runs
from pyhudi.model.file_group import FileSlice
from pyhudi.model.keys import RECORD_KEY
from pyhudi.storage.file_memory import kept_in_state
from pyhudi.view.committed_logs import damage_rules

__all__ = ["DELETED", "KEY", "SEQUENCE", "TYPE", "GroupReader", "concat_records", "decoded_records", "with_keys"]

KEY, TYPE, SEQUENCE, DELETED = "key", "type", "sequence", "deleted"
_SCHEMAS = 32  # parsed ones that are kept; releases have a few, and each kind of partition its columns
_SMALL_BYTES = 1 << 20  # of a slice whose records are read at once: compressed, some ten times as many in memory
_KEPT_BLOCK_BYTES = 128 << 10  # of log files' blocks whose records stay in memory, as a write of some 10,000 rows makes
_ADVICE = "What the metadata table knows is incomplete without it."


@dataclass(frozen=True)
class GroupReader:
    """Reads a slice of the metadata table.

    Args: meta: of the metadata table; payloads: the records' fields that are wanted; counts: do blocks of an instant
          count? raises: a log file that lost blocks is an error, else a warning, and the others are read.
    """

    meta: MetaClient
    file_slice: FileSlice
    payloads: tuple[str, ...]
    counts: Callable[[str], bool]
    raises: bool = True

    def all(self, without: str | None = None) -> pa.Table:
        """All records: `key`, `type`, the payloads, `sequence`, and `deleted` for keys of delete blocks.

        Args:   without: a key whose records are not wanted, and not decoded.
        """
        found = _Found((KEY, TYPE, *self.payloads))
        self._find(found, lambda reader: (_others(entries, without) for entries in reader.scan()), None)
        return found.table(self._nothing())

    def runs(self) -> Iterator[pa.Table]:
        """The same in pieces that ascend by key, with all versions of a key in one piece; files stay open meanwhile."""
        if self.file_slice.size_bytes <= _SMALL_BYTES:
            rows = self.all()
            if rows.num_rows:
                yield rows
            return
        with ExitStack() as opened:
            files = []
            base = self.file_slice.base_file
            if base is not None:
                source = opened.enter_context(self.meta.storage.open_input(base.path))
                files.append(self._pieces(HFileReader(source, base.path), base.path, 0))
            for number, block in enumerate(self.blocks(), 1):
                if block.is_delete:
                    deletes = _deletes(block, number, None)
                    files.append(iter([deletes.sort_by(KEY)]))
                    continue
                source = opened.enter_context(self.meta.storage.open_input(block.path))
                reader = HFileReader(source, block.where, block.frame.content_offset, block.frame.content_size)
                files.append(self._pieces(reader, block.where, number))
            for piece in sorted_runs(files, self.file_slice.group.file_id):
                if TYPE in piece.column_names:  # else deletes alone, of keys that nothing here has
                    yield piece

    def with_keys(self, keys: pa.Array) -> pa.Table:
        """The records with these keys (text, no nulls)."""
        return with_keys([(self, keys)]) if len(keys) else self._nothing()

    def with_prefixes(self, prefixes: Sequence[str]) -> pa.Table:
        """The records whose keys begin with one of the prefixes; of deleted keys there may be others, too."""
        found = _Found((KEY, TYPE, *self.payloads))
        wanted = [keys.first for keys in ranges_of(prefix.encode() for prefix in prefixes)]
        texts = [prefix.decode() for prefix in wanted]
        small = self._from_memory(found, lambda rows: rows.with_prefixes(texts))
        self._find(found, lambda reader: reader.prefix_columns(wanted), None, small)
        return found.table(self._nothing())

    def find_keys(self, found: _Found, keys: pa.Array) -> None:
        """Put the records with these keys to what was found."""
        wanted, texts = sorted_keys(keys), [str(key) for key in keys.to_pylist()]
        small = self._from_memory(found, lambda rows: rows.with_keys(texts))
        self._find(found, lambda reader: reader.lookup_columns(wanted), keys, small)

    def _from_memory(self, found: _Found, take: Callable[[RowsByKey], pa.Table]) -> Callable[[LogBlock, int], bool]:
        """Puts what is wanted of a small block, whose records stay in memory, to what was found; False for others."""

        def small(block: LogBlock, number: int) -> bool:
            rows = self._kept_rows(block)
            if rows is not None:
                found.add_rows(take(rows), number)
            return rows is not None

        return small

    def _find(
        self,
        found: _Found,
        take: _Take,
        keys: pa.Array | None,
        without_opening: Callable[[LogBlock, int], bool] = lambda _block, _number: False,
    ) -> None:
        storage, base = self.meta.storage, self.file_slice.base_file
        if base is not None:
            with open_hfile(storage, base.path, base.path) as reader:
                found.add(reader, base.path, 0, take)
        for number, block in enumerate(self.blocks(), 1):
            if block.is_delete:
                found.deletes.append(_deletes(block, number, keys))
            elif not without_opening(block, number):
                place = block.frame.content_offset, block.frame.content_size
                with open_hfile(storage, block.path, block.where, *place, state=block.state) as reader:
                    found.add(reader, block.where, number, take)

    def _kept_rows(self, block: LogBlock) -> RowsByKey | None:
        """The records of a small block, which stay in memory; None where they can't."""
        if block.state is None or block.frame.content_size > _KEPT_BLOCK_BYTES:
            return None

        def decoded() -> RowsByKey:
            found = _Found((KEY, TYPE, *self.payloads))
            place = block.frame.content_offset, block.frame.content_size
            with open_hfile(self.meta.storage, block.path, block.where, *place, state=block.state) as reader:
                found.add(reader, block.where, 0, lambda reader: reader.scan())
            return RowsByKey.of(found.table(self._nothing()).drop_columns([SEQUENCE, DELETED]))

        part = ("records", block.frame.offset, self.payloads)
        return kept_in_state(block.state, block.path, part, decoded, RowsByKey.size_bytes)

    def blocks(self) -> tuple[LogBlock, ...]:
        """The blocks of the log files that count, in their order."""
        rules = BlockRules(self.meta.config.table_version, self.counts)
        damage = damage_rules(self.meta, raises=self.raises, advice=_ADVICE)
        blocks = blocks_of(scan_slice(self.meta.storage, self.file_slice, damage), rules)
        return tuple(block for block in blocks if self.counts(block.instant_time))

    def _pieces(self, reader: HFileReader, where: str, number: int) -> Iterator[pa.Table]:
        for rows in decoded_records(reader, where, self.payloads):
            yield _numbered(rows, pa.repeat(pa.scalar(number, pa.int32()), rows.num_rows))

    def _nothing(self) -> pa.Table:
        fields = [pa.field(KEY, pa.string()), pa.field(TYPE, pa.int32())]
        fields += [pa.field(name, pa.null()) for name in self.payloads]
        return pa.schema([*fields, pa.field(SEQUENCE, pa.int32()), pa.field(DELETED, pa.bool_())]).empty_table()


def with_keys(wanted: Sequence[tuple[GroupReader, pa.Array]]) -> pa.Table:
    """The records of several file groups with the keys that each of them may have; no key is in two of them.

    They are decoded together: to decode a few records takes as long as to decode hundreds.
    """
    found = _Found((KEY, TYPE, *wanted[0][0].payloads))
    for reader, keys in wanted:
        if len(keys):
            reader.find_keys(found, keys)
    return found.table(wanted[0][0]._nothing())


def decoded_records(reader: HFileReader, where: str, payloads: Sequence[str]) -> Iterator[pa.Table]:
    """All records of an HFile in the order of their keys: `key`, `type` and payloads. Raises CorruptFile."""
    decoder = _decoder(_schema_of(reader, where), (KEY, TYPE, *payloads))
    for entries in reader.scan():
        yield _decoded(entries, where, decoder)


@lru_cache(maxsize=_SCHEMAS)
def _decoder(schema_json: str, columns: tuple[str, ...]) -> AvroDecoder:
    """The same for all blocks of one schema: to parse it takes as long as to look up some keys."""
    return AvroDecoder(schema_json, columns, unions=True)


def concat_records(parts: Sequence[pa.Table]) -> pa.Table:
    """All records; of columns whose form has changed with the table's version, fields that a part lacks are null."""
    kinds: dict[str, set[pa.DataType]] = {}
    for field in (field for part in parts for field in part.schema if pa.types.is_struct(field.type)):
        kinds.setdefault(field.name, set()).add(field.type)
    changed = {name for name, found in kinds.items() if len(found) > 1}
    if changed:
        parts = [_with_optional_fields(part, changed) for part in parts]
    return pa.concat_tables(parts, promote_options="permissive")


def _with_optional_fields(part: pa.Table, changed: Collection[str]) -> pa.Table:
    """With all fields of the structs in these columns optional, so that Arrow joins structs of different fields."""
    for at, field in enumerate(part.schema):
        if field.name in changed and pa.types.is_struct(field.type):
            column = pa.chunked_array(
                [_optional(chunk) for chunk in part.column(at).chunks], _optional_type(field.type)
            )
            part = part.set_column(at, field.name, column)
    return part


def _optional(values: pa.Array) -> pa.Array:
    if not isinstance(values, pa.StructArray):
        return values
    fields = [field.with_nullable(True).with_type(_optional_type(field.type)) for field in values.type]
    children = [_optional(values.field(number)) for number in range(values.type.num_fields)]
    return pa.StructArray.from_arrays(children, fields=fields, mask=values.is_null())


def _optional_type(kind: pa.DataType) -> pa.DataType:
    if not pa.types.is_struct(kind):
        return kind
    return pa.struct([field.with_nullable(True).with_type(_optional_type(field.type)) for field in kind])


_Take = Callable[[HFileReader], Iterable[Entries]]


class _Found:
    """What is found in the files of a slice. Those of one schema are decoded together: there may be few records in each
    of many log files, and to decode a few takes as long as to decode hundreds.
    """

    def __init__(self, columns: tuple[str, ...]) -> None:
        self._columns = columns
        self._tables: list[pa.Table] = []
        self._held: dict[str, list[tuple[Entries, str, int]]] = {}  # by schema: entries, where they were, sequence
        self._held_bytes = 0
        self.deletes: list[pa.Table] = []

    def add(self, reader: HFileReader, where: str, number: int, take: _Take) -> None:
        held = self._held.setdefault(_schema_of(reader, where), [])
        for entries in gathered(take(reader)):
            held.append((entries, where, number))
            self._held_bytes += entries.size_bytes
            if self._held_bytes >= GATHER_BYTES:
                self._decode()

    def add_rows(self, rows: pa.Table, number: int) -> None:
        """Put records to it that are decoded already."""
        if rows.num_rows:
            self._tables.append(_numbered(rows, pa.repeat(pa.scalar(number, pa.int32()), rows.num_rows)))

    def table(self, nothing: pa.Table) -> pa.Table:
        """All of it; `nothing`: no rows of the columns, which delete blocks alone lack."""
        self._decode()
        return concat_records([nothing, *(part for part in (*self._tables, *self.deletes) if part.num_rows)])

    def _decode(self) -> None:
        for schema_json, held in self._held.items():
            if held:
                self._tables.append(_decoded_together(held, _decoder(schema_json, self._columns)))
                held.clear()
        self._held_bytes = 0


def _decoded_together(held: Sequence[tuple[Entries, str, int]], decoder: AvroDecoder) -> pa.Table:
    counts = [len(entries) for entries, _, _ in held]
    numbers = pa.array(np.repeat(np.array([number for _, _, number in held], np.int32), counts))
    if len(held) > 1:
        (together,) = gathered((entries for entries, _, _ in held), sum(e.size_bytes for e, _, _ in held) + 1)
        try:
            return _numbered(_decoded(together, held[0][1], decoder), numbers)
        except CorruptFile:
            pass  # one by one, they say which it is
    rows = pa.concat_tables([_decoded(entries, where, decoder) for entries, where, _ in held])
    return _numbered(rows, numbers)


def _others(entries: Entries, key: str | None) -> Entries:
    """The entries of all keys but this one."""
    row = None if key is None else entries.find(key.encode())
    return entries if row is None else entries.select(np.delete(np.arange(len(entries)), row))


def _schema_of(reader: HFileReader, where: str) -> str:
    schema = reader.schema_json
    if schema is None:
        raise CorruptFile(f"{where}: an HFile of the metadata table without a schema.")
    return schema


def _numbered(rows: pa.Table, numbers: pa.Array) -> pa.Table:
    rows = rows.append_column(SEQUENCE, numbers)
    return rows.append_column(DELETED, pa.repeat(pa.scalar(False), rows.num_rows))


def _decoded(entries: Entries, where: str, decoder: AvroDecoder) -> pa.Table:
    rows = decoder.decode(entries.content, entries.value_starts, entries.value_ends, where)
    return _with_keys(rows, entries.key_array(), where)


def _with_keys(rows: pa.Table, keys: pa.Array, where: str) -> pa.Table:
    """With the keys of the HFile as `key`: within the values it is empty."""
    try:
        texts = keys.cast(pa.string())
    except pa.ArrowInvalid as error:
        raise CorruptFile(f"{where}: a key of the metadata table is not UTF-8 ({error}).") from error
    return rows.set_column(rows.schema.get_field_index(KEY), KEY, texts)


def _deletes(block: LogBlock, number: int, keys: pa.Array | None) -> pa.Table:
    deleted = block.deletes().keys.column(RECORD_KEY)
    if keys is not None:
        deleted = deleted.filter(pc.is_in(deleted, keys))
    rows = len(deleted)
    columns = [deleted, pa.repeat(pa.scalar(number, pa.int32()), rows), pa.repeat(pa.scalar(True), rows)]
    return pa.table(dict(zip((KEY, SEQUENCE, DELETED), columns, strict=True)))
