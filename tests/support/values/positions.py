"""Record positions in log blocks, held against the base file."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from pyhudi.formats.log.positions import decode_positions, encode_positions
from pyhudi.formats.log.reader import LogBlock, scan_log
from pyhudi.model.filenames import BaseFileName, LogFileName
from pyhudi.storage.base import Storage


def blocks_with_positions(storage: Storage) -> Iterator[tuple[str, LogBlock]]:
    """Path of the log file → blocks that say positions."""
    for info in list(storage.walk("")):
        if LogFileName.parse(info.path.rpartition("/")[2]) is None or info.path.startswith(".hoodie"):
            continue
        for block in scan_log(storage, info.path):
            has_records = isinstance(block, LogBlock) and (block.is_data or block.is_delete)
            if has_records and block.placed(records_of(block))[1]:
                yield info.path, block


def records_of(block: LogBlock) -> pa.Table:
    return block.deletes().keys if block.is_delete else block.rows(["_hoodie_record_key"])


def check_positions(storage: Storage) -> int:
    """Every position is the row of the base file that has the record's key; how many blocks say positions."""
    checked = 0
    bases = {}
    for info in storage.walk(""):
        name = BaseFileName.parse(info.path.rpartition("/")[2])
        if name is not None and not info.path.startswith(".hoodie"):
            bases[info.path.rpartition("/")[0], name.file_id, name.instant_time] = info.path
    for path, block in blocks_with_positions(storage):
        log = LogFileName.parse(path.rpartition("/")[2])
        assert log is not None
        records = records_of(block)
        base_instant, text = block.placed(records)
        positions = decode_positions(text, block.where)
        assert encode_positions(positions) == text, block.where
        base = bases.get((path.rpartition("/")[0], log.file_id, base_instant))
        if base is None:
            continue  # cleaned
        stored = pq.read_table(pa.BufferReader(storage.read(base)), columns=["_hoodie_record_key"]).column(0)
        keys = records.column("_hoodie_record_key").to_pylist()
        assert stored.take(pa.array(positions)).to_pylist() == keys, block.where
        checked += 1
    return checked
