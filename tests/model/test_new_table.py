"""Properties of new tables: key for key what Hudi's DataFrame writer stores, version by version."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pyhudi.errors import ConfigError
from pyhudi.formats.properties import parse_properties
from pyhudi.model.merge_mode import OVERWRITE_PAYLOAD, PAYLOAD_STRATEGY_ID
from pyhudi.model.new_table import has_valid_checksum
from pyhudi.model.table_config import NewTable, TableConfig, new_table_properties

VERSIONS = {"0.15.0": 6, "1.0.2": 8, "1.2.0": 9}
# They belong to the metadata table, which ours start without.
METADATA_KEYS = (
    "hoodie.table.metadata.partitions",
    "hoodie.table.metadata.partitions.inflight",
    "hoodie.table.index.defs.path",
)
OPTION = "hoodie.datasource.write."


def golden_tables(shared: Path) -> Iterator[tuple[str, str, dict[str, Any], dict[str, str]]]:
    """Tables that a DataFrame writer made: (release, name, description, properties)."""
    for archive in sorted((shared / "golden").glob("*/*.zip")):
        release, name = archive.parent.name, archive.stem
        description = json.loads(archive.with_suffix(".json").read_text())
        with zipfile.ZipFile(archive) as table:
            properties = parse_properties(table.read(f"{name}/.hoodie/hoodie.properties"), name)
        made_by_sql = "hoodie.table.create.schema" in properties or properties.get("hoodie.database.name")
        has_options = name == "keys_auto" or f"{OPTION}recordkey.field" in description["options"]
        if not has_options or made_by_sql or name.startswith("upgrade_"):
            continue
        yield release, name, description, properties


def new_table(release: str, description: dict[str, Any]) -> NewTable:
    """What the golden table's writer was asked for."""
    options: dict[str, str] = description["options"]

    def names(*keys: str) -> tuple[str, ...]:
        text = next((options[key] for key in keys if options.get(key)), "")
        return tuple(name for name in text.split(",") if name)

    keys, partitions = names(OPTION + "recordkey.field"), names(OPTION + "partitionpath.field")
    generator = options.get(OPTION + "keygenerator.class")
    if generator is None:
        generator = "COMPLEX" if len(keys) > 1 or len(partitions) > 1 else "SIMPLE"
        generator = generator if partitions else "NON_PARTITION"
    payload = options.get(OPTION + "payload.class")
    return NewTable(
        table_name=options["hoodie.table.name"],
        table_type={"mor": "MERGE_ON_READ", "cow": "COPY_ON_WRITE"}[description["type"].lower()],
        table_version=VERSIONS[release],
        record_key_fields=keys,
        partition_fields=partitions,
        ordering_fields=names(OPTION + "precombine.field", "hoodie.table.ordering.fields", OPTION + "ordering.fields"),
        key_generator=generator,
        hive_style=options.get(OPTION + "hive_style_partitioning") == "true",
        url_encode=options.get(OPTION + "partitionpath.urlencode") == "true",
        slash_dates=options.get(OPTION + "slash.separated.date.partitioning") == "true",
        drop_partition_columns=options.get(OPTION + "drop.partition.columns") == "true",
        populate_meta_fields=options.get("hoodie.populate.meta.fields") != "false",
        keygen_properties={key: text for key, text in options.items() if key.startswith("hoodie.keygen.")},
        record_merge_mode=options.get("hoodie.write.record.merge.mode"),
        payload_class=payload,
        cdc_enabled=options.get("hoodie.table.cdc.enabled") == "true",
        cdc_logging_mode=options.get("hoodie.table.cdc.supplemental.logging.mode", "DATA_BEFORE_AFTER"),
    )


def test_new_tables_have_the_properties_that_real_hudi_stores(shared: Path) -> None:
    compared: list[str] = []
    differences: dict[str, Any] = {}
    for release, name, description, properties in golden_tables(shared):
        expected = {key: value for key, value in properties.items() if key not in METADATA_KEYS}
        made = new_table_properties(new_table(release, description))
        compared.append(f"{release}/{name}")
        if made != expected:
            differences[compared[-1]] = sorted(set(expected.items()) ^ set(made.items()))
    assert differences == {}
    assert len(compared) > 90
    assert {name.partition("/")[0] for name in compared} == set(VERSIONS)


def test_new_properties_load_as_the_table_that_was_asked_for() -> None:
    table = NewTable(
        table_name="flights",
        record_key_fields=("id", "leg"),
        partition_fields=("region:SIMPLE", "ts:TIMESTAMP"),
        ordering_fields=("ts",),
        key_generator="CUSTOM",
        hive_style=True,
        timezone="UTC",
    )

    config = TableConfig(new_table_properties(table)).check_writable()

    assert has_valid_checksum(config.properties)
    assert config.table_name == "flights"
    assert config.partition_fields == ("region", "ts")
    assert config.partition_field_types == ("SIMPLE", "TIMESTAMP")
    assert config.record_merge_mode == "EVENT_TIME_ORDERING"
    assert str(config.timeline_zone) == "UTC"


def test_a_users_own_key_generator_is_stored_by_its_name() -> None:
    for version in (6, 8, 9):
        table = NewTable("t", table_version=version, key_generator="my_package.keys:HashedKey")

        assert TableConfig(new_table_properties(table)).key_generator == "my_package.keys:HashedKey"


@pytest.mark.parametrize("version", [6, 8, 9])
def test_slash_separated_dates_are_remembered_by_every_version(version: int) -> None:
    table = NewTable("t", table_version=version, partition_fields=("d",), slash_dates=True)

    assert TableConfig(new_table_properties(table)).slash_separated_dates


def test_a_payload_of_ones_own_is_kept_with_the_mode_custom() -> None:
    properties = new_table_properties(NewTable("t", payload_class="org.example.Own"))

    assert properties["hoodie.record.merge.mode"] == "CUSTOM"
    assert properties["hoodie.compaction.payload.class"] == "org.example.Own"
    assert properties["hoodie.record.merge.strategy.id"] == PAYLOAD_STRATEGY_ID


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (NewTable("t", table_version=7), "version is 7"),
        (NewTable(" "), "hoodie.table.name"),
        (NewTable("t", table_type="COW"), "COPY_ON_WRITE"),
        (NewTable("t", timezone="Europe/Paris"), "LOCAL or UTC"),
        (NewTable("t", table_version=8, ordering_fields=("a", "b")), "one ordering field"),
        (NewTable("t", record_merge_mode="NEWEST"), "NEWEST"),
        (NewTable("t", record_merge_mode="EVENT_TIME_ORDERING", payload_class=OVERWRITE_PAYLOAD), "Leave one"),
        (
            NewTable("t", table_version=8, record_merge_mode="EVENT_TIME_ORDERING", payload_class=OVERWRITE_PAYLOAD),
            "Leave one",
        ),
    ],
)
def test_what_cannot_be_is_refused(table: NewTable, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        new_table_properties(table)
