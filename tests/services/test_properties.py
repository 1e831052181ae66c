"""Properties that a table's owner sets and removes. Source: docs/formats/table-config.md, "Changing the file"."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyhudi import ConfigError, HudiTable, write_hudi
from pyhudi.actions.constraints import CONSTRAINT_PREFIX
from pyhudi.errors import LockTimeout, StorageError
from pyhudi.formats.properties import parse_properties
from pyhudi.locks import LockOptions, hold, open_lock
from pyhudi.services.properties import _ELSEWHERE, _FIXED, PropertyDifference
from pyhudi.storage import LocalStorage

ROWS = [{"id": "a", "city": "rome"}, {"id": "b", "city": "oslo"}]


@pytest.fixture(params=[6, 8, 9])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> HudiTable:
    write_hudi(tmp_path / "t", ROWS, record_key="id", table_version=request.param)
    return HudiTable.open(tmp_path / "t")


def file_of(table: HudiTable) -> Path:
    return Path(table.path, ".hoodie", "hoodie.properties")


def copies(table: HudiTable) -> list[Path]:
    return sorted(file_of(table).parent.glob("hoodie.properties.*.bak"))


def test_keys_are_set_replaced_and_removed_at_once_and_the_file_before_is_kept(table: HudiTable) -> None:
    table.maintenance.set_properties({"my.old": "1", "my.gone": "x"})
    before = file_of(table).read_bytes()
    others = {key: value for key, value in table.state().config.properties.items() if not key.startswith("my.")}

    changed = table.maintenance.set_properties({"my.old": "2", "my.new": "3"}, unset=["my.gone", "my.never"])

    assert changed.differences == (
        PropertyDifference("my.gone", "x", None),
        PropertyDifference("my.new", None, "3"),
        PropertyDifference("my.old", "1", "2"),
    )
    assert changed.backup is not None
    assert Path(table.path, changed.backup).read_bytes() == before
    assert table.state().config.properties == {**others, "my.old": "2", "my.new": "3"}
    assert HudiTable.open(table.path).count() == 2


@pytest.mark.parametrize("value", ["", "a=b", "a: b", " led by blanks", "zwei\nZeilen", "ü€😀", "back\\slash", "#no!"])
def test_every_text_comes_back_as_it_was_given_in_the_form_of_javas_properties(table: HudiTable, value: str) -> None:
    table.maintenance.set_properties({"my.key": value, f"odd key: {value.strip() or 'x'}": "v"})

    stored = parse_properties(file_of(table).read_bytes(), "here")
    assert stored["my.key"] == value
    assert HudiTable.open(table.path).state().config.properties["my.key"] == value
    assert stored[f"odd key: {value.strip() or 'x'}"] == "v"


def test_a_dry_run_and_a_change_to_what_is_there_write_nothing(table: HudiTable) -> None:
    table.maintenance.set_properties({"my.key": "1"})
    before, kept = file_of(table).read_bytes(), copies(table)

    planned = table.maintenance.set_properties({"my.key": "2"}, dry_run=True)
    same = table.maintenance.set_properties({"my.key": "1"}, unset=["my.never"])

    assert planned.differences == (PropertyDifference("my.key", "1", "2"),)
    assert (planned.dry_run, planned.backup) == (True, None)
    assert (same.differences, same.backup) == ((), None)
    assert (file_of(table).read_bytes(), copies(table)) == (before, kept)


@pytest.mark.parametrize("key", sorted({*_FIXED, *_ELSEWHERE}))
@pytest.mark.parametrize("removes", [False, True])
def test_what_says_how_files_are_written_is_refused(tmp_path: Path, key: str, removes: bool) -> None:
    write_hudi(tmp_path / "t", ROWS, record_key="id")
    table = HudiTable.open(tmp_path / "t")
    before = file_of(table).read_bytes()

    with pytest.raises(ConfigError, match="Nothing was changed"):
        table.maintenance.set_properties(
            {"my.key": "1"} if removes else {"my.key": "1", key: "x"}, unset=[key] if removes else []
        )

    assert (file_of(table).read_bytes(), copies(table)) == (before, [])


@pytest.mark.parametrize(
    ("properties", "unset", "message"),
    [
        ({"my.key": "1"}, ["my.key"], "to be set and to be removed"),
        ({"": "1"}, [], "A property is text"),
        ({" ": "1"}, [], "A property is text"),
        ({"my.key": 1}, [], "A property is text"),
        ({"my.key": "\ud800"}, [], "A property is text"),
        ({f"{CONSTRAINT_PREFIX}x": "1"}, [], "add_constraint"),
    ],
)
def test_what_is_no_property_is_refused(
    tmp_path: Path, properties: dict[str, str], unset: list[str], message: str
) -> None:
    write_hudi(tmp_path / "t", ROWS, record_key="id")
    table = HudiTable.open(tmp_path / "t")
    before = file_of(table).read_bytes()

    with pytest.raises(ConfigError, match=message):
        table.maintenance.set_properties(properties, unset=unset)

    assert (file_of(table).read_bytes(), copies(table)) == (before, [])


def test_a_disk_that_refuses_leaves_the_properties_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_hudi(tmp_path / "t", ROWS, record_key="id")
    table = HudiTable.open(tmp_path / "t")
    before = table.state().config.properties
    for name in ("create_synced", "create_new", "write"):
        with monkeypatch.context() as patch:
            whole = getattr(LocalStorage, name)

            def failing(self: LocalStorage, path: str, data: bytes, whole: object = whole) -> None:
                if "hoodie.properties" in path:
                    raise StorageError("full")
                whole(self, path, data)  # type: ignore[operator]

            patch.setattr(LocalStorage, name, failing)
            with pytest.raises(StorageError, match="full"):
                table.maintenance.set_properties({"my.key": "1"})
        assert HudiTable.open(table.path).state().config.properties == before, name
    assert table.maintenance.set_properties({"my.key": "1"}).differences
    assert table.state().config.properties["my.key"] == "1"


def test_the_lock_is_waited_for(tmp_path: Path) -> None:
    write_hudi(tmp_path / "t", ROWS, record_key="id")
    table = HudiTable.open(tmp_path / "t")
    storage = LocalStorage(table.path)
    with hold(open_lock(LockOptions("FILESYSTEM"), storage), 5), pytest.raises(LockTimeout):
        table.maintenance.set_properties({"my.key": "1"}, options={"hoodie.write.lock.wait_time_ms": "50"})

    assert "my.key" not in table.state().config.properties
