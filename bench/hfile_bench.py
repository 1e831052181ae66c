"""Looking up keys in HFiles as a record index has them: python -m bench.hfile_bench [keys [folder]]

    decode        the entries of one block in columns, and by the loop
    ten           10 keys of all files, blocks not read yet and read before      < 100 ms in 10 M keys
    hundred       100,000 keys of 1 M in one file                                <= 600 ms
    scan          all entries of a file

Keys are random UUIDs, dealt over ten files; values have the bytes of an index record. Files are in the system's cache.
"""

from __future__ import annotations

import io
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.formats.hfile import HFileReader, HFileWriter, gathered
from pyhudi.formats.hfile.entries import _of_one_length, _one_by_one

FILES = 10
BATCH = 100_000


def uuids(count: int, seed: int) -> pa.Array:
    """Sorted texts of 36 bytes, all different."""
    digits = np.frombuffer(np.random.default_rng(seed).bytes(16 * count).hex().encode(), "S1").reshape(count, 32)
    text = np.full((count, 36), b"-", "S1")
    for start, end, at in ((0, 8, 0), (8, 12, 9), (12, 16, 14), (16, 20, 19), (20, 32, 24)):
        text[:, at : at + end - start] = digits[:, start:end]
    distinct = np.unique(np.ascontiguousarray(text).view("S36")[:, 0])
    return pa.array(distinct.tolist(), pa.binary())


def records(count: int, seed: int) -> pa.Array:
    """Values as record index entries are: ids and times of which few differ, 40 to 45 bytes."""
    random = np.random.default_rng(seed)
    groups = [random.bytes(19 + n % 2) for n in range(50)]
    made = [b"\x00" * 7 + b"\x0a" + b"\x02\x142024-01-01" + group + b"\x00\x00\x02" for group in groups]
    return pa.array(made, pa.binary()).take(pa.array(random.integers(0, len(made), count)))


def hfile(path: Path, count: int, seed: int) -> pa.Array:
    """Write one; its keys."""
    keys = uuids(count, seed)
    with pa.OSFile(str(path), "wb") as sink:
        writer = HFileWriter(sink, info={"schema": b"{}"})
        writer.append_columns(keys, records(len(keys), seed))
        writer.close()
    return keys


def timed(what: str, call: Callable[[], object], repeats: int = 3) -> None:
    """Print the best of several runs: elapsed, and of the processor, which says more on a busy machine."""
    wall = processor = float("inf")
    for _ in range(repeats):
        start, start_processor = time.perf_counter(), time.process_time()
        call()
        wall = min(wall, time.perf_counter() - start)
        processor = min(processor, time.process_time() - start_processor)
    print(f"{what:64} {wall * 1000:9.2f} ms {processor * 1000:9.2f} ms of the processor", flush=True)


def found(readers: list[HFileReader], keys: list[pa.Array]) -> int:
    """How many of each file's keys are found in it, put together for a decoder."""
    return sum(
        len(part)
        for reader, wanted in zip(readers, keys, strict=True)
        for part in gathered(reader.lookup_columns(wanted))
    )


def decoding() -> None:
    """One block, in columns and by the loop."""
    sink = io.BytesIO()
    writer = HFileWriter(sink)
    writer.append_columns(uuids(10_000, 1), records(10_000, 1))
    writer.close()
    entries = next(HFileReader(pa.BufferReader(sink.getvalue()), "block").scan())
    timed(f"decode {len(entries)} entries, columns", lambda: _of_one_length(entries.content), 20)
    timed(f"decode {len(entries)} entries, loop", lambda: _one_by_one(entries.content, "block"), 20)


def lookups(folder: Path, total: int) -> None:
    """Ten files with so many keys."""
    paths = [folder / f"{n}.hfile" for n in range(FILES)]
    start = time.perf_counter()
    samples = []
    for number, path in enumerate(paths):
        keys = hfile(path, total // FILES, number)
        samples.append(keys.take(pa.array(np.random.default_rng(number).integers(0, len(keys), 20))))
    size = sum(path.stat().st_size for path in paths)
    print(f"{total} keys in {FILES} files: {size / total:.1f} bytes a key, made in {time.perf_counter() - start:.1f} s")

    def opened() -> list[HFileReader]:
        return [HFileReader(pa.OSFile(str(path), "rb"), str(path)) for path in paths]

    timed("open the files", opened)
    timed("10 keys, a file each, files not open", lambda: found(opened(), [s[:1] for s in samples]))
    readers = opened()
    turns = iter(range(20))

    def other_keys() -> int:
        turn = next(turns)
        return found(readers, [s[turn : turn + 1] for s in samples])

    timed("10 keys, a file each, files open, other keys each time", other_keys, 10)
    timed("the same keys again", lambda: found(readers, [s[:1] for s in samples]))


def batch(folder: Path) -> None:
    """Many keys of one file, and all of it."""
    path = folder / "batch.hfile"
    keys = hfile(path, 1_000_000, 99)
    wanted = keys.take(pa.array(np.random.default_rng(1).choice(len(keys), BATCH, replace=False))).cast(pa.string())

    def reader() -> HFileReader:
        return HFileReader(pa.OSFile(str(path), "rb"), str(path))

    assert found([reader()], [wanted]) == BATCH
    timed(f"{BATCH} of 1,000,000 keys, file not open", lambda: found([reader()], [wanted]))
    timed(
        "scan of 1,000,000 entries, keys and places", lambda: [pc.count(part.key_array()) for part in reader().scan()]
    )


def main() -> None:
    """Measure all."""
    total = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    decoding()
    with tempfile.TemporaryDirectory(dir=sys.argv[2] if len(sys.argv) > 2 else None) as folder:
        batch(Path(folder))
        lookups(Path(folder), total)


if __name__ == "__main__":
    main()
