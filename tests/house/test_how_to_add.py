"""The pages in docs/contributing: their code runs as it is there, and does what the page says."""

from __future__ import annotations

import json
import pickle
import re
import socket
import subprocess
import sys
import types
from collections.abc import Callable, Mapping
from enum import IntEnum
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import flush_metrics, write_hudi
from pyhudi.errors import ConfigError, CorruptFile, LockTimeout
from pyhudi.formats.log import blocks, envelope, reader, writer
from pyhudi.locks import LockProvider, hold, open_lock
from pyhudi.model.options import HudiOptionWarning, WriteOptions
from pyhudi.registry import Registry
from pyhudi.services import after_write
from pyhudi.storage import LocalStorage, MemoryStorage
from pyhudi.table.calls import TableHandle, serve
from tests.support.source import ROOT
from tests.support.tables.small import DEFAULTS, TestTable

PAGES = sorted((ROOT / "docs" / "contributing").glob("*.md"))
FOLDER = "hoodie.write.lock.sqlite.folder"

Made = Callable[[str, str], types.ModuleType]


def examples(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "contributing" / f"{page}.md").read_text(), re.S)


def entries_of(page: str) -> dict[str, str]:
    """The rows of a registry that a page shows."""
    namespace: dict[str, Any] = {}
    exec(next(text for text in examples(page) if text.startswith("entries = {")), namespace)
    return dict(namespace["entries"])


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Made:
    """`made(page, name)`: the first whole module of a page, importable under this name."""

    def make(page: str, name: str) -> types.ModuleType:
        code = next(text for text in examples(page) if text.startswith('"""'))
        module = types.ModuleType(name)
        monkeypatch.setitem(sys.modules, name, module)
        exec(compile(code, f"docs/contributing/{page}.md", "exec"), module.__dict__)
        return module

    return make


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_that_says_how_to_add_something_is_short_and_linked(page: Path) -> None:
    assert sum(not line.startswith("|") for line in page.read_text().splitlines()) < 100
    assert f"(docs/contributing/{page.name})" in (ROOT / "CONTRIBUTING.md").read_text()


# ---- a lock provider -------------------------------------------------------------------------------------------------


@pytest.fixture
def sqlite_lock(made: Made, tmp_path: Path) -> Callable[[MemoryStorage], LockProvider]:
    """The lock of a table by the provider of the page."""
    (name, path), *_ = entries_of("add-a-lock-provider").items()
    module = made("add-a-lock-provider", path.partition(":")[0])
    assert Registry("lock provider", {name: path}).load("sqlite") is module.SqliteLock
    options = WriteOptions.parse({"hoodie.write.lock.provider": path, FOLDER: str(tmp_path)})
    return lambda storage: open_lock(options.lock, storage)


def test_the_lock_provider_worked_through_excludes_others(sqlite_lock: Callable[[Any], LockProvider]) -> None:
    storage = MemoryStorage()
    first, second, other = sqlite_lock(storage), sqlite_lock(storage), sqlite_lock(MemoryStorage())

    assert isinstance(first, LockProvider)
    with hold(first, 0):
        assert first.is_held
        assert not first.try_acquire(0)
        with pytest.raises(LockTimeout, match="a process of this machine"), hold(second, 0.01):
            pass
        second.release()
        assert first.is_held
        with hold(other, 0):
            pass
    assert not first.is_held
    with hold(second, 0):
        pass


def test_the_lock_of_a_process_that_is_killed_is_free(
    sqlite_lock: Callable[[Any], LockProvider], tmp_path: Path
) -> None:
    storage = LocalStorage(str(tmp_path / "table"))
    with hold(sqlite_lock(storage), 0):
        (file,) = tmp_path.glob("*.db")
    code = f"""
import os, signal, sqlite3
connection = sqlite3.connect({str(file)!r}, isolation_level=None)
connection.execute("BEGIN EXCLUSIVE")
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode < 0

    with hold(sqlite_lock(storage), 0):
        pass


def test_the_lock_provider_worked_through_says_what_it_lacks(made: Made) -> None:
    made("add-a-lock-provider", "my_locks")
    own = {"hoodie.write.lock.provider": "my_locks:SqliteLock"}

    with pytest.raises(ConfigError, match=f"{FOLDER} is not given"):
        open_lock(WriteOptions.parse(own).lock, MemoryStorage())
    with pytest.warns(HudiOptionWarning, match=f"Did you mean '{FOLDER}'"):
        WriteOptions.parse({**own, "hoodie.write.lock.sqlite.folde": "/tmp"})


# ---- an index --------------------------------------------------------------------------------------------------------


def test_the_index_worked_through_keeps_the_rows_of_a_tenant_together(made: Made) -> None:
    ((name, path),) = entries_of("add-an-index").items()
    module = made("add-an-index", path.partition(":")[0])
    assert Registry("index", {name: path}).load("TENANT") is module.TenantIndex
    options = {"hoodie.index.class": path, "hoodie.index.tenant.separator": "/"}
    table = TestTable(options=options)
    rows = [(f"{tenant}/{n}", "x", 1, n) for n in range(3) for tenant in ("acme", "bolt")]

    table.insert(*rows[:3])
    result = table.upsert(*rows)

    assert (result.updated, result.inserted) == (3, 3)
    assert table.rows() == sorted(rows)
    read = table.read()
    files = zip(*(read.column(at).to_pylist() for at in ("id", "_hoodie_file_name")), strict=True)
    assert len({(key.split("/")[0], file) for key, file in files}) == 2
    work = module.FindTenant("/", {"x": {}})
    assert pickle.loads(pickle.dumps(work)) == work


# ---- a table service -------------------------------------------------------------------------------------------------


def trimmable() -> TestTable:
    table = TestTable()
    table.bulk_insert(*((f"k{n}", f"2024-01-0{n}", 1, n) for n in range(1, 5)))
    return table


def test_the_table_service_worked_through_trims_a_table(made: Made) -> None:
    module, table = made("add-a-table-service", "pyhudi.services.trim"), trimmable()
    options = WriteOptions.parse(DEFAULTS, table=table.meta.config)

    would = serve(table.storage, partial(module.trim, partitions_kept=3, dry_run=True), options, table.engine)
    assert (would.trimmed, str(would)) == (("2024-01-01",), "trim: 1 partitions would go")
    assert len(table.rows()) == 4

    done = serve(table.storage, partial(module.trim, partitions_kept=3), options, table.engine)
    assert str(done) == "trim: 1 partitions went"
    assert table.meta.timeline.last_commit().requested_time == done.instant_time
    assert [row[0] for row in table.rows()] == ["k2", "k3", "k4"]
    with pytest.raises(ConfigError, match="at least 1 partition"):
        serve(table.storage, partial(module.trim, partitions_kept=0), options, table.engine)


def test_the_method_and_the_row_of_the_table_service_call_it(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    namespace = {**made("add-a-table-service", "pyhudi.services.trim").__dict__, "partial": partial}
    for text in examples("add-a-table-service")[1:]:
        exec(compile(text, "docs/contributing/add-a-table-service.md", "exec"), namespace)
    table = trimmable()
    hudi_table = types.SimpleNamespace(_handle=TableHandle(table.meta, None, {}))

    assert namespace["trim_table"](hudi_table, 3).trimmed == ("2024-01-01",)
    rows: Mapping[str, Any] = {**after_write.AFTER_WRITE, "trim": namespace["trim_after_write"]}
    monkeypatch.setattr(after_write, "AFTER_WRITE", rows)
    result = table.upsert(("k5", "2024-01-05", 1, 5))

    assert list(result.services) == ["trim"]
    assert [row[0] for row in table.rows()] == ["k4", "k5"]


# ---- a log block -----------------------------------------------------------------------------------------------------


def test_the_log_block_worked_through_is_written_and_read(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    module = made("add-a-log-block", "pyhudi.formats.log.blocks.arrow_data")
    number, row = (text for text in examples("add-a-log-block") if not text.startswith('"""'))
    members = {member.name: member.value for member in blocks.BlockType}
    name, value = (part.strip() for part in number.split("="))
    assert int(value) not in members.values()
    known = IntEnum("BlockType", {**members, name: int(value)})  # type: ignore[misc]
    monkeypatch.setattr(envelope, "BlockType", known)
    rows: dict[str, Any] = {"BlockType": known, "DataBlock": blocks.DataBlock}
    exec(row, rows)
    every = {**blocks.DATA_BLOCKS, **rows["DATA_BLOCKS"]}
    for place in (blocks, writer):
        monkeypatch.setattr(place, "DATA_BLOCKS", every)

    schema = json.dumps({"type": "record", "name": "r", "fields": [{"name": "id", "type": "string"}]})
    batch = pa.record_batch({"id": ["a", "b"], "v": [1, None]})
    storage = MemoryStorage()
    file = writer.LogFileWriter(storage, "log")
    for form in ("arrow", "parquet"):
        file.append(writer.data_block(batch, schema, form, {envelope.HeaderKey.INSTANT_TIME: "1"}))
    file.close()

    ours, parquet = reader.scan_log(storage, "log")
    assert isinstance(ours, reader.LogBlock)
    assert isinstance(parquet, reader.LogBlock)
    assert ours.is_data
    assert ours.rows() == parquet.rows() == pa.Table.from_batches([batch])
    assert ours.rows(["v"]) == pa.table({"v": [1, None]})
    with pytest.raises(CorruptFile, match="log at byte 0: the Arrow block"):
        module.decode(b"no stream", schema, None, "log at byte 0")


# ---- a reporter ------------------------------------------------------------------------------------------------------


def test_the_reporter_worked_through_sends_the_numbers_of_each_action(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ((name, path),) = entries_of("add-a-reporter").items()
    module = made("add-a-reporter", path.partition(":")[0])
    assert Registry("metrics reporter", {name: path}).load("statsd") is module.StatsdReporter
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as agent:
        agent.bind(("127.0.0.1", 0))
        agent.settimeout(10)
        monkeypatch.setenv("STATSD_ADDRESS", f"127.0.0.1:{agent.getsockname()[1]}")
        options = {"hoodie.metrics.on": True, "hoodie.metrics.reporter.class": path}
        write_hudi(tmp_path / "rides", [{"id": 1}, {"id": 2}], record_key="id", options=options)

        heard = set[str]()
        while "rides.commit.totalRecordsWritten:2|g" not in heard:
            heard.add(agent.recv(1000).decode())
        flush_metrics()  # what actions did not set, such as counters, goes, too
        while not any(text.startswith("rides.lock.acquire.success:") for text in heard):
            heard.add(agent.recv(1000).decode())


# ---- what any part costs ---------------------------------------------------------------------------------------------

COSTS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (ROOT / "docs" / "contributing" / "what-a-part-costs.md").read_text().splitlines()
    if line.startswith("| ") and "`pyhudi/" in line
]
KINDS = {
    *("key generator", "index", "merge mode", "table service", "lock provider", "log block", "metadata partition"),
    *("SQL procedure", "storage", "store client", "upgrade step", "base file format", "metrics reporter"),
}


def test_the_page_of_costs_names_every_kind_of_part() -> None:
    assert {re.sub(r"\[(.*)\]\(.*\)", r"\1", row[0]) for row in COSTS} == KINDS


@pytest.mark.parametrize("row", COSTS, ids=lambda row: row[0])
def test_a_part_costs_three_files_at_most_and_its_row_goes_where_the_page_says(row: list[str]) -> None:
    paths = re.findall(r"`(pyhudi/[^`]+)`", "|".join(row))
    new, old = [path for path in paths if "<" in path], [path for path in paths if "<" not in path]

    assert len(new) == 1
    assert len({*paths}) <= 3
    assert (ROOT / new[0]).parent.is_dir()
    for name, path in re.findall(r"`(\w+)` of `(pyhudi/[^`]+)`", "|".join(row)):
        assert re.search(rf"^(?:def |class |    )?{name}\b", (ROOT / path).read_text(), re.M), (name, path)
        old.remove(path)
    assert not old
