"""hoodie.properties: created once, updated so that a crash anywhere is harmless."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pyhudi.errors import CorruptFile, TableExists, TableNotFound, UnsupportedTable, WriteConflict
from pyhudi.formats.properties import parse_properties, print_properties
from pyhudi.model.filenames import PROPERTIES_BACKUP_PATH, PROPERTIES_PATH
from pyhudi.model.new_table import has_valid_checksum
from pyhudi.model.table_config import NewTable, TableConfig, new_table_properties
from pyhudi.storage import FixedClock, LocalStorage, MemoryStorage
from pyhudi.storage.memory import InjectedFault
from pyhudi.timeline.table_properties import create_table, load_table_config, table_exists, update_table_config

KEY = "hoodie.table.metadata.partitions"


def clock() -> FixedClock:
    return FixedClock(1_760_000_000_000)


def properties(**changes: Any) -> dict[str, str]:
    return new_table_properties(NewTable("t", record_key_fields=("id",), **changes))


def table() -> MemoryStorage:
    storage = MemoryStorage()
    create_table(storage, properties(), clock())
    storage.reset_faults()
    return storage


def is_clean(storage: MemoryStorage) -> bool:
    """One whole file, no backup."""
    whole = has_valid_checksum(parse_properties(storage.read(PROPERTIES_PATH), "t"))
    return whole and storage.stat(PROPERTIES_BACKUP_PATH) is None


def test_a_created_table_loads_as_it_was_made() -> None:
    assert load_table_config(table()).properties == properties()


def test_the_file_has_the_two_comment_lines_of_hudi() -> None:
    lines = table().read(PROPERTIES_PATH).decode().splitlines()

    assert lines[:2] == ["#Properties saved on 2025-10-09T08:53:20.000Z", "#Thu Oct 09 08:53:20 UTC 2025"]


@pytest.mark.parametrize(("version", "timeline"), [(6, "archived"), (9, "timeline/history")])
def test_the_folders_of_a_new_table_are_made(version: int, timeline: str, tmp_path: Path) -> None:
    create_table(LocalStorage(str(tmp_path)), properties(table_version=version), clock())

    for folder in (".aux/.bootstrap/.partitions", ".aux/.bootstrap/.fileids", ".schema", ".temp", timeline):
        assert (tmp_path / ".hoodie" / folder).is_dir(), folder


def test_a_table_is_created_once() -> None:
    with pytest.raises(TableExists, match="already"):
        create_table(table(), properties(), clock())


def test_a_version_that_we_do_not_write_is_not_created() -> None:
    storage = MemoryStorage()

    with pytest.raises(UnsupportedTable):
        create_table(storage, {**properties(), "hoodie.table.version": "10"}, clock())
    assert storage.paths() == ()


def test_no_table_is_table_not_found() -> None:
    storage = MemoryStorage()
    storage.write("some/file", b"")

    with pytest.raises(TableNotFound, match=r"hoodie\.properties"):
        load_table_config(storage, clock())
    assert not table_exists(storage)


def test_folders_of_a_creation_that_died_are_no_table_and_no_obstacle() -> None:
    storage = MemoryStorage()
    storage.make_folder(".hoodie/.aux")

    with pytest.raises(TableNotFound):
        load_table_config(storage, clock())
    create_table(storage, properties(), clock())
    assert table_exists(storage)


def test_creation_that_dies_at_any_call_leaves_a_table_or_none() -> None:
    calls = _calls_of(lambda storage: create_table(storage, properties(), clock()), MemoryStorage())
    for kind in ("before", "after", "torn"):
        for n in range(1, calls + 1):
            storage = MemoryStorage()
            storage.fail_at(n, kind)  # type: ignore[arg-type]
            with pytest.raises(InjectedFault):
                create_table(storage, properties(), clock())
            storage.reset_faults()
            if not table_exists(storage):
                create_table(storage, properties(), clock())
            assert load_table_config(storage, clock()).properties == properties()


def test_an_update_sets_and_removes_keys() -> None:
    storage = table()

    updated = update_table_config(storage, {KEY: "files"}, ["hoodie.table.cdc.enabled"], clock())

    assert updated.metadata_partitions == ("files",)
    assert "hoodie.table.cdc.enabled" not in updated.properties
    assert load_table_config(storage).properties == updated.properties
    assert is_clean(storage)
    assert storage.read(PROPERTIES_PATH).startswith(b"#Updated at 2025-10-09T08:53:20")


def test_an_update_that_changes_nothing_writes_nothing() -> None:
    storage = table()
    before = storage.read(PROPERTIES_PATH)

    update_table_config(storage, {"hoodie.table.name": "t"}, ["hoodie.not.there"], clock())

    assert storage.read(PROPERTIES_PATH) == before


def test_a_new_name_gets_a_new_checksum() -> None:
    updated = update_table_config(table(), {"hoodie.database.name": "lake"}, clock=clock())

    assert has_valid_checksum(updated.properties)


def test_an_update_that_dies_at_any_call_shows_old_or_new_and_the_next_one_puts_it_right() -> None:
    old = properties()
    new = {**old, KEY: "files"}
    calls = _calls_of(lambda storage: update_table_config(storage, {KEY: "files"}, clock=clock()), table())
    outcomes = set()
    for kind in ("before", "after", "torn"):
        for n in range(1, calls + 1):
            storage = table()
            storage.fail_at(n, kind)  # type: ignore[arg-type]
            with pytest.raises(InjectedFault):
                update_table_config(storage, {KEY: "files"}, clock=clock())
            storage.reset_faults()

            found = load_table_config(storage.clone(), clock()).properties
            assert found in (old, new), (kind, n)
            outcomes.add(found == new)

            after = update_table_config(storage, {"hoodie.next": "1"}, clock=clock())
            assert after.properties == {**found, "hoodie.next": "1"}, (kind, n)
            assert is_clean(storage)
    assert outcomes == {True, False}


def test_recovery_that_dies_at_any_call_is_recovered_by_the_next() -> None:
    def crashed() -> MemoryStorage:
        storage = table()
        storage.write(PROPERTIES_BACKUP_PATH, storage.read(PROPERTIES_PATH))
        storage.write(PROPERTIES_PATH, storage.read(PROPERTIES_PATH)[:200])
        storage.reset_faults()
        return storage

    calls = _calls_of(lambda storage: update_table_config(storage, {KEY: "files"}, clock=clock()), crashed())
    for kind in ("before", "after", "torn"):
        for n in range(1, calls + 1):
            storage = crashed()
            storage.fail_at(n, kind)  # type: ignore[arg-type]
            with pytest.raises(InjectedFault):
                update_table_config(storage, {KEY: "files"}, clock=clock())
            storage.reset_faults()
            assert load_table_config(storage.clone(), clock()).properties in (
                properties(),
                {**properties(), KEY: "files"},
            )
            update_table_config(storage, {"hoodie.next": "1"}, clock=clock())
            assert is_clean(storage)


def test_while_hudi_replaces_the_file_the_backup_is_read() -> None:
    storage = table()
    storage.write(PROPERTIES_BACKUP_PATH, storage.read(PROPERTIES_PATH))
    storage.delete(PROPERTIES_PATH)

    assert table_exists(storage)
    assert load_table_config(storage, clock()).properties == properties()


def test_a_file_cut_anywhere_is_corrupt_and_says_what_to_do() -> None:
    whole = table().read(PROPERTIES_PATH)
    for length in range(len(whole)):
        storage = MemoryStorage()
        storage.write(PROPERTIES_PATH, whole[:length])
        with pytest.raises(CorruptFile, match=r"hoodie\.properties.*(Restore|restore)"):
            load_table_config(storage, clock())


def test_a_file_of_real_hudi_cut_within_a_line_is_corrupt(shared: Path) -> None:
    """Real Hudi writes the checksum anywhere; whatever comes after it, a cut in a line is found."""
    import zipfile

    with zipfile.ZipFile(shared / "golden" / "1.2.0" / "cow_small_files.zip") as archive:
        whole = archive.read("cow_small_files/.hoodie/hoodie.properties")
    for length in range(len(whole)):
        if whole[:length].endswith(b"\n"):
            continue
        storage = MemoryStorage()
        storage.write(PROPERTIES_PATH, whole[:length])
        with pytest.raises(CorruptFile):
            load_table_config(storage, clock())


def test_a_wrong_checksum_is_corrupt_and_the_right_one_is_reported() -> None:
    storage = MemoryStorage()
    right = properties()["hoodie.table.checksum"]
    storage.write(PROPERTIES_PATH, print_properties({**properties(), "hoodie.table.checksum": "1"}))

    with pytest.raises(CorruptFile, match=rf"found hoodie.table.checksum=1, where the table's name gives {right}"):
        load_table_config(storage, clock())


def test_a_missing_checksum_is_corrupt() -> None:
    storage = MemoryStorage()
    storage.write(PROPERTIES_PATH, print_properties({k: v for k, v in properties().items() if "checksum" not in k}))

    with pytest.raises(CorruptFile):
        load_table_config(storage, clock())


def test_a_damaged_file_with_a_damaged_backup_is_not_touched_by_an_update() -> None:
    storage = table()
    storage.write(PROPERTIES_PATH, b"hoodie.table.na")
    storage.write(PROPERTIES_BACKUP_PATH, b"hoodie")

    with pytest.raises(CorruptFile):
        update_table_config(storage, {KEY: "files"}, clock=clock())
    assert storage.read(PROPERTIES_BACKUP_PATH) == b"hoodie"


def test_a_disk_that_does_not_keep_what_was_written_loses_nothing() -> None:
    class Forgetful(MemoryStorage):
        def write(self, path: str, data: bytes) -> None:
            super().write(path, data[:-20] if path == PROPERTIES_PATH else data)

    storage = Forgetful()
    storage.create_new(PROPERTIES_PATH, print_properties(properties()))

    with pytest.raises(CorruptFile, match="read back"):
        update_table_config(storage, {KEY: "files"}, clock=clock())
    assert load_table_config(storage, clock()).properties == properties()


class Contended(MemoryStorage):
    """Another process, which knows no lock, does something right after the properties were written."""

    def then(self) -> None:
        raise NotImplementedError

    def write(self, path: str, data: bytes) -> None:
        super().write(path, data)
        if path == PROPERTIES_PATH and self.stat(PROPERTIES_BACKUP_PATH) is not None:
            self.then()


class Replaced(Contended):
    def then(self) -> None:
        super(Contended, self).write(PROPERTIES_PATH, print_properties({**properties(), "hoodie.theirs": "1"}))


class Deleted(Contended):
    def then(self) -> None:
        self.delete(PROPERTIES_PATH)


@pytest.mark.parametrize(("storage", "key"), [(Replaced(), "hoodie.theirs"), (Deleted(), None)])
def test_what_another_process_writes_at_the_same_moment_is_not_deleted(storage: MemoryStorage, key: str | None) -> None:
    storage.create_new(PROPERTIES_PATH, print_properties(properties()))

    with pytest.raises(WriteConflict, match=r"without the lock.*hoodie\.write\.lock\.provider") as caught:
        update_table_config(storage, {KEY: "files"}, clock=clock())

    assert caught.value.retryable
    expected = {**properties(), key: "1"} if key else properties()
    assert load_table_config(storage, clock()).properties == expected


def test_a_backup_that_another_process_makes_at_the_same_moment_is_a_conflict() -> None:
    class Backed(MemoryStorage):
        def create_new(self, path: str, data: bytes) -> None:
            if path == PROPERTIES_BACKUP_PATH:
                self.write(path, print_properties(properties()))
            super().create_new(path, data)

    storage = Backed()
    storage.create_new(PROPERTIES_PATH, print_properties(properties()))

    with pytest.raises(WriteConflict):
        update_table_config(storage, {KEY: "files"}, clock=clock())
    assert load_table_config(storage, clock()).properties == properties()


def test_a_wait_for_another_writer_is_bounded() -> None:
    storage, waiting = MemoryStorage(), clock()
    storage.write(PROPERTIES_PATH, b"half")

    with pytest.raises(CorruptFile):
        load_table_config(storage, waiting)
    assert 0 < waiting.slept_s < 2
    assert waiting.slept_s == pytest.approx(0.8)  # between five looks; after the last there is nothing to wait for


def _calls_of(work: Any, storage: MemoryStorage) -> int:
    """How many storage calls a piece of work makes when nothing goes wrong."""
    storage.reset_faults()
    result = work(storage)
    assert isinstance(result, TableConfig)
    return storage.calls
