"""Table config: real properties, inference of the merge mode, what is refused."""

from __future__ import annotations

import pickle
import zipfile
from pathlib import Path

import pytest

from pyhudi.errors import ConfigError, CorruptFile, UnsupportedTable
from pyhudi.formats.properties import parse_properties
from pyhudi.model.merge_mode import (
    DEFAULT_PAYLOAD,
    EVENT_TIME_STRATEGY_ID,
    OVERWRITE_PAYLOAD,
    PAYLOAD_STRATEGY_ID,
    infer_merge_mode,
)
from pyhudi.model.table_config import TableConfig

BASE = {"hoodie.table.name": "t", "hoodie.table.version": "9", "hoodie.timeline.layout.version": "2"}


def config(**changes: str) -> TableConfig:
    return TableConfig(BASE | {f"hoodie.{key.replace('__', '.')}": value for key, value in changes.items()})


def golden_config(shared: Path, version: str, name: str) -> TableConfig:
    with zipfile.ZipFile(shared / "golden" / version / f"{name}.zip") as table:
        return TableConfig(parse_properties(table.read(f"{name}/.hoodie/hoodie.properties"), name))


def test_every_golden_table_is_readable_and_writable(shared: Path) -> None:
    versions = set()
    for archive in sorted((shared / "golden").glob("*/*.zip")):
        loaded = golden_config(shared, archive.parent.name, archive.stem).check_readable().check_writable()
        assert loaded.record_merge_mode in ("COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING", "CUSTOM")
        versions.add((loaded.table_version, loaded.layout_version))
    assert versions == {(6, 1), (8, 2), (9, 2)}


def test_partition_types_of_the_custom_generator_are_split_off(shared: Path) -> None:
    loaded = golden_config(shared, "1.2.0", "keys_custom")

    assert loaded.partition_fields == ("region", "ts")
    assert loaded.partition_field_types == ("SIMPLE", "TIMESTAMP")
    assert loaded.key_generator == "CUSTOM"


def test_partition_fields_without_types_have_empty_types(shared: Path) -> None:
    assert golden_config(shared, "0.15.0", "keys_custom").partition_field_types == ("", "")


@pytest.mark.parametrize("version", ["0.15.0", "1.0.2", "1.2.0"])
def test_key_generators_have_one_name_whatever_the_version(shared: Path, version: str) -> None:
    names = ["keys_simple_hive_url", "keys_complex_one", "keys_timestamp_number", "keys_custom", "hfile_blocks"]

    found = [golden_config(shared, version, name).key_generator for name in names]

    assert found == ["SIMPLE", "COMPLEX", "TIMESTAMP", "CUSTOM", "NON_PARTITION"]


def test_settings_of_the_timestamp_generator_are_found(shared: Path) -> None:
    assert golden_config(shared, "1.2.0", "keys_timestamp_number").keygen_properties == {
        "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd/HH",
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.keygen.timebased.timezone": "GMT+8:00",
    }


def test_slash_separated_dates_are_known_by_the_extractor(shared: Path) -> None:
    assert golden_config(shared, "1.2.0", "keys_slash_dates").slash_separated_dates
    assert not golden_config(shared, "1.2.0", "keys_simple_int_partition").slash_separated_dates


def test_ordering_fields_of_all_versions(shared: Path) -> None:
    assert golden_config(shared, "0.15.0", "cow_operations").ordering_fields == ("ts",)
    assert golden_config(shared, "1.2.0", "g2_merge_multi_ordering").ordering_fields == ("major", "minor")
    assert golden_config(shared, "1.2.0", "keys_auto").ordering_fields == ()


def test_folders_of_the_timeline_by_layout(shared: Path) -> None:
    old, new = golden_config(shared, "0.15.0", "cow_operations"), golden_config(shared, "1.2.0", "cow_operations")

    assert (old.timeline_path, old.history_path) == (".hoodie", ".hoodie/archived")
    assert (new.timeline_path, new.history_path) == (".hoodie/timeline", ".hoodie/timeline/history")


def test_metadata_partitions(shared: Path) -> None:
    loaded = golden_config(shared, "0.15.0", "mdt_all_cow")

    assert loaded.metadata_partitions == ("bloom_filters", "column_stats", "files", "record_index")
    assert loaded.metadata_partitions_inflight == ()


def test_absent_keys_take_hudis_defaults() -> None:
    loaded = config()

    assert loaded.table_type == "COPY_ON_WRITE"
    assert loaded.populate_meta_fields
    assert not loaded.drop_partition_columns
    assert loaded.base_file_format == "PARQUET"
    assert loaded.timeline_zone is None
    assert loaded.record_key_fields == ()
    assert loaded.key_generator is None
    assert loaded.create_schema is None


def test_a_users_own_key_generator_class_stays_as_it_is() -> None:
    loaded = config(table__keygenerator__type="USER_PROVIDED", table__keygenerator__class="my_package.keys:HashedKey")

    assert loaded.key_generator == "my_package.keys:HashedKey"


@pytest.mark.parametrize(
    ("version", "mor", "mode", "payload", "strategy", "ordering", "expected"),
    [
        # 0.15.0 lets the later row win on copy-on-write, ordering field or not (golden cow_operations, third commit).
        (6, False, None, None, None, True, "COMMIT_TIME_ORDERING"),
        (6, True, None, OVERWRITE_PAYLOAD, EVENT_TIME_STRATEGY_ID, True, "COMMIT_TIME_ORDERING"),
        (6, True, None, DEFAULT_PAYLOAD, EVENT_TIME_STRATEGY_ID, True, "EVENT_TIME_ORDERING"),
        (6, True, None, "org.example.Own", EVENT_TIME_STRATEGY_ID, True, "CUSTOM"),
        (8, False, None, None, None, True, "EVENT_TIME_ORDERING"),
        (8, False, None, None, None, False, "COMMIT_TIME_ORDERING"),
        (8, True, None, OVERWRITE_PAYLOAD, EVENT_TIME_STRATEGY_ID, True, "EVENT_TIME_ORDERING"),
        (8, True, "CUSTOM", "org.example.Own", PAYLOAD_STRATEGY_ID, True, "CUSTOM"),
        (9, False, "EVENT_TIME_ORDERING", None, None, True, "EVENT_TIME_ORDERING"),
        (9, False, "commit_time_ordering", None, None, True, "COMMIT_TIME_ORDERING"),
        (9, True, None, "org.example.Own", None, True, "CUSTOM"),
    ],
)
def test_merge_mode_is_inferred_by_version(
    version: int, mor: bool, mode: str | None, payload: str | None, strategy: str | None, ordering: bool, expected: str
) -> None:
    inferred = infer_merge_mode(
        table_version=version,
        is_merge_on_read=mor,
        mode=mode,
        payload_class=payload,
        strategy_id=strategy,
        has_ordering=ordering,
    )

    assert inferred == expected


def test_a_mode_that_the_payload_class_contradicts_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"EVENT_TIME_ORDERING.*COMMIT_TIME_ORDERING"):
        _ = config(
            record__merge__mode="EVENT_TIME_ORDERING", compaction__payload__class=OVERWRITE_PAYLOAD
        ).record_merge_mode


@pytest.mark.parametrize("missing", ["hoodie.table.name", "hoodie.table.version"])
def test_properties_without_name_or_version_are_cut_off(missing: str) -> None:
    with pytest.raises(CorruptFile, match=missing):
        TableConfig({key: value for key, value in BASE.items() if key != missing})


def test_a_version_that_is_no_number_is_refused() -> None:
    with pytest.raises(CorruptFile, match="'nine'"):
        config(table__version="nine")


@pytest.mark.parametrize("version", ["0", "3", "7", "10"])
def test_other_versions_are_refused(version: str) -> None:
    layout = "2" if int(version) >= 8 else "1"

    with pytest.raises(UnsupportedTable, match=f"version {version}"):
        config(table__version=version, timeline__layout__version=layout).check_readable()


@pytest.mark.parametrize("version", ["4", "5"])
def test_versions_4_and_5_are_read_but_not_written(version: str) -> None:
    loaded = config(table__version=version, timeline__layout__version="1")

    assert loaded.check_readable() is loaded
    with pytest.raises(UnsupportedTable, match="upgrade"):
        loaded.check_writable()


def test_a_layout_that_does_not_belong_to_the_version_is_refused() -> None:
    with pytest.raises(UnsupportedTable, match="layout 1"):
        config(timeline__layout__version="1").check_readable()


def test_foreign_table_formats_are_refused() -> None:
    with pytest.raises(UnsupportedTable, match="'iceberg'"):
        config(table__format="iceberg").check_readable()


def test_changes_give_a_new_config() -> None:
    before = config(table__cdc__enabled="true")

    after = before.with_changes({"hoodie.x": "1"}, remove=["hoodie.table.cdc.enabled"])

    assert before.cdc_enabled
    assert not after.cdc_enabled
    assert after.properties["hoodie.x"] == "1"


def test_a_config_can_travel() -> None:
    assert pickle.loads(pickle.dumps(config())) == config()
