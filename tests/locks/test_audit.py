"""The audit of the storage-based lock: who leaves a journal, and what is found in them. Source: docs/locks.md."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from pyhudi import ConfigError, HudiTable, write_hudi
from pyhudi.errors import CorruptFile, StorageError
from pyhudi.locks import LockOptions, LockProvider, open_lock
from pyhudi.locks.audit import (
    AUDIT_FOLDER,
    AUDIT_SWITCH,
    AuditIssue,
    audit_status,
    clean_audit,
    set_audit,
    validate_audit,
)
from pyhudi.locks.storage_based import LOCK_PATH
from pyhudi.model.options.concurrency import StorageLockOptions
from pyhudi.storage import FixedClock, LocalStorage, MemoryStorage, Storage

NOW_MS = 1_760_000_000_000
VALID_MS = 300_000
LINE = {"ownerId": "o", "transactionStartTime": 10, "timestamp": 10, "state": "START", "lockExpiration": 20}


def lock_of(storage: Storage, clock: FixedClock) -> LockProvider:
    return open_lock(LockOptions("STORAGE", retry_wait_ms=5, storage=StorageLockOptions(300, 30)), storage, clock)


def audited() -> tuple[MemoryStorage, FixedClock]:
    storage = MemoryStorage()
    set_audit(storage, True)
    return storage, FixedClock(NOW_MS, step_ms=0)


def journals(storage: Storage) -> list[list[dict[str, Any]]]:
    files = (storage.read(entry.path) for entry in storage.list(AUDIT_FOLDER))
    return [[json.loads(line) for line in data.splitlines()] for data in files]


def journal(storage: Storage, name: str, *lines: dict[str, object]) -> None:
    text = "".join(json.dumps({**LINE, **line}) + "\n" for line in lines)
    storage.write(f"{AUDIT_FOLDER}/{name}.jsonl", text.encode())


def test_a_holder_leaves_hudis_lines_about_taking_renewing_and_giving_back() -> None:
    storage, clock = audited()
    lock = lock_of(storage, clock)

    assert lock.try_acquire(0)
    clock.advance(1000)
    assert lock._renew()  # type: ignore[attr-defined]
    clock.advance(500)
    lock.release()

    (lines,) = journals(storage)
    owner = json.loads(storage.read(LOCK_PATH))["owner"]
    assert lines == [
        {
            "ownerId": owner,
            "transactionStartTime": NOW_MS,
            "timestamp": NOW_MS + after_ms,
            "state": state,
            "lockExpiration": NOW_MS + after_ms + VALID_MS,
            "lockHeld": True,
        }
        for state, after_ms in (("START", 0), ("RENEW", 1000), ("END", 1500))
    ]
    (entry,) = storage.list(AUDIT_FOLDER)
    assert entry.name == f"{NOW_MS}_{owner.split()[0]}.jsonl"


def test_without_the_switch_there_is_no_journal() -> None:
    storage, clock = MemoryStorage(), FixedClock(NOW_MS)
    for _ in range(2):
        lock = lock_of(storage, clock)
        assert lock.try_acquire(0)
        lock.release()
        assert journals(storage) == []
        set_audit(storage, False)

    assert not audit_status(storage).enabled


@pytest.mark.parametrize(
    ("text", "enabled"),
    [
        ('{"STORAGE_LOCK_AUDIT_SERVICE_ENABLED":true}', True),
        ('{"STORAGE_LOCK_AUDIT_SERVICE_ENABLED":"true"}', True),
        ('{"STORAGE_LOCK_AUDIT_SERVICE_ENABLED":false}', False),
        ("{}", False),
    ],
)
def test_the_switch_is_hudis_file(text: str, enabled: bool) -> None:
    storage = MemoryStorage()
    storage.write(AUDIT_SWITCH, text.encode())

    assert audit_status(storage).enabled is enabled


def test_a_switch_that_is_none_stops_no_writer_and_is_reported() -> None:
    storage, clock = MemoryStorage(), FixedClock(NOW_MS)
    storage.write(AUDIT_SWITCH, b"[]")
    lock = lock_of(storage, clock)

    with pytest.warns(RuntimeWarning, match="not audited"):
        assert lock.try_acquire(0)
    lock.release()
    with pytest.raises(CorruptFile, match="on or off"):
        audit_status(storage)


def test_a_journal_that_cannot_be_written_stops_no_writer_and_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    storage, clock = audited()
    lock = lock_of(storage, clock)
    write = storage.write

    def failing(path: str, data: bytes) -> None:
        if path.startswith(AUDIT_FOLDER):
            raise StorageError("full")
        write(path, data)

    monkeypatch.setattr(storage, "write", failing)
    with pytest.warns(RuntimeWarning, match="lacks START"):
        assert lock.try_acquire(0)
    with pytest.warns(RuntimeWarning, match="lacks END"):
        lock.release()
    assert json.loads(storage.read(LOCK_PATH))["expired"]


def test_holders_one_after_another_are_fine_and_one_at_work_is_no_issue() -> None:
    storage, clock = audited()
    first, second = lock_of(storage, clock), lock_of(storage, clock)
    for lock in (first, second, first):
        assert lock.try_acquire(0)
        clock.advance(10)
        lock.release()
    assert second.try_acquire(0)

    validation = validate_audit(storage, clock)

    assert (validation.files, validation.issues) == (4, ())
    second.release()


def test_a_holder_that_died_is_reported_and_the_one_after_it_is_no_overlap() -> None:
    storage, clock = audited()
    assert lock_of(storage, clock).try_acquire(0)
    clock.advance(VALID_MS + 501)
    other = lock_of(storage, clock)
    assert other.try_acquire(0)
    other.release()

    validation = validate_audit(storage, clock)

    assert [issue.kind for issue in validation.issues] == ["not_ended"]
    assert validation.issues[0].file.startswith(f"{NOW_MS}_")
    assert not validation.has_errors


def test_two_holders_at_once_are_an_error_that_names_both() -> None:
    storage = MemoryStorage()
    journal(storage, "a", {}, {"timestamp": 15, "state": "END"})
    journal(storage, "b", {"timestamp": 14}, {"timestamp": 30, "state": "END"})
    journal(storage, "c", {"timestamp": 30}, {"timestamp": 31, "state": "END"})  # begins as b ends

    validation = validate_audit(storage, FixedClock(NOW_MS))

    assert validation.issues == (AuditIssue("overlap", "a.jsonl", "b.jsonl"),)
    assert validation.has_errors


def test_holdings_of_one_file_are_apart_so_that_another_writer_may_come_between() -> None:
    """Hudi's provider keeps one file for its whole life."""
    storage = MemoryStorage()
    journal(
        storage,
        "hudi",
        {},
        {"timestamp": 15, "state": "END"},
        {"timestamp": 50, "lockExpiration": 60},
        {"timestamp": 55, "state": "END"},
    )
    journal(storage, "between", {"timestamp": 20}, {"timestamp": 40, "state": "END"})

    assert validate_audit(storage, FixedClock(NOW_MS)).issues == ()

    journal(storage, "within", {"timestamp": 52}, {"timestamp": 53, "state": "END"})
    assert [(issue.file, issue.other) for issue in validate_audit(storage, FixedClock(NOW_MS)).issues] == [
        ("hudi.jsonl", "within.jsonl")
    ]


@pytest.mark.parametrize("data", [b"", b"{", b"[]\n", b'{"state":"START"}\n', b'{"timestamp":"x"}', b"[" * 100_000])
def test_a_file_that_is_no_journal_is_an_error_and_the_others_are_read(data: bytes) -> None:
    storage = MemoryStorage()
    storage.write(f"{AUDIT_FOLDER}/broken.jsonl", data)
    journal(storage, "a", {}, {"timestamp": 15, "state": "END"})

    validation = validate_audit(storage, FixedClock(NOW_MS))

    assert validation.issues == (AuditIssue("unreadable", "broken.jsonl"),)
    assert validation.files == 1


def test_old_journals_are_deleted_and_nothing_else(tmp_path: Path) -> None:
    storage, clock = LocalStorage(str(tmp_path)), FixedClock(NOW_MS, step_ms=0)
    for name, days in (("old", 8), ("young", 6)):
        journal(storage, name, {})
        at_s = NOW_MS / 1000 - days * 86_400
        os.utime(tmp_path / AUDIT_FOLDER / f"{name}.jsonl", (at_s, at_s))
    set_audit(storage, True)

    planned = clean_audit(storage, clock, 7, dry_run=True)
    assert planned.files == ("old.jsonl",)
    assert len(storage.list(AUDIT_FOLDER)) == 2
    assert clean_audit(storage, clock, 7, dry_run=False).files == ("old.jsonl",)
    assert [entry.name for entry in storage.list(AUDIT_FOLDER)] == ["young.jsonl"]
    with pytest.raises(ConfigError, match="zero or more"):
        clean_audit(storage, clock, -1, dry_run=True)


@pytest.mark.thorough
def test_writes_of_a_table_leave_journals_that_are_in_order(tmp_path: Path) -> None:
    options = {"hoodie.write.lock.provider": "STORAGE"}
    write_hudi(tmp_path / "t", [{"id": 1}], record_key="id", options=options)
    table = HudiTable.open(tmp_path / "t")
    table.maintenance.lock_audit.enable()

    table.upsert([{"id": 2}], options=options)
    table.upsert([{"id": 1}], options=options)

    status = table.maintenance.lock_audit.status()
    assert status.enabled
    assert status.files >= 2
    assert table.maintenance.lock_audit.validate().issues == ()
    assert table.maintenance.lock_audit.disable().files == status.files
    assert len(table.maintenance.lock_audit.cleanup(0).files) == status.files
