"""MergeRules: the rules that a table's properties give for merging versions of a row."""

from __future__ import annotations

import pytest

from pyhudi.errors import UnsupportedTable
from pyhudi.merge.base import Place
from pyhudi.merge.rules import FILL_UNAVAILABLE, IGNORE_DEFAULTS, MergeRules, merge_rules
from pyhudi.model.table_config import NewTable, TableConfig, new_table_properties

FIELD, MARKER = "hoodie.payload.delete.field", "hoodie.payload.delete.marker"
MODE = "hoodie.table.partial.update.mode"
PREFIX = "hoodie.record.merge.property."
CUSTOM_STRATEGY = "00000000-1111-2222-3333-444444444444"


def rules(properties: dict[str, str]) -> MergeRules:
    made = new_table_properties(NewTable("t", record_key_fields=("id",), ordering_fields=("ts",)))
    return merge_rules(TableConfig({**made, **properties}))


def test_a_table_that_says_nothing_takes_the_winner_as_it_is() -> None:
    found = rules({})

    assert (found.mode, found.ordering_fields) == ("EVENT_TIME_ORDERING", ("ts",))
    assert (found.partial_update_mode, found.unavailable_marker) == ("", "")
    assert (found.delete_field, found.delete_marker) == (None, None)
    assert not found.needs_pairs


@pytest.mark.parametrize("only", [FIELD, MARKER])
def test_a_delete_field_without_its_marker_is_refused_and_a_marker_without_its_field(only: str) -> None:
    with pytest.raises(UnsupportedTable, match="both or none"):
        rules({PREFIX + only: "op"})


@pytest.mark.parametrize("prefix", [PREFIX, ""])
def test_a_delete_field_and_its_marker_are_read_with_and_without_the_prefix(prefix: str) -> None:
    found = rules({prefix + FIELD: "op", prefix + MARKER: "D"})

    assert (found.delete_field, found.delete_marker, found.delete_any_case) == ("op", "D", False)


def test_the_property_with_the_prefix_counts_before_the_one_without() -> None:
    found = rules({PREFIX + FIELD: "op", PREFIX + MARKER: "D", FIELD: "other", MARKER: "X"})

    assert (found.delete_field, found.delete_marker) == ("op", "D")


@pytest.mark.parametrize(
    ("older", "mode"),
    [
        ("IGNORE_DEFAULTS", IGNORE_DEFAULTS),
        ("ignore_defaults", IGNORE_DEFAULTS),
        ("FILL_UNAVAILABLE", FILL_UNAVAILABLE),
        ("IGNORE_MARKERS", FILL_UNAVAILABLE),
        ("NONE", ""),
        ("", ""),
    ],
)
def test_partial_update_modes_have_older_names(older: str, mode: str) -> None:
    found = rules({MODE: older})

    assert found.partial_update_mode == mode
    assert found.needs_pairs == bool(mode)


def test_a_partial_update_mode_that_nobody_knows_is_refused() -> None:
    with pytest.raises(UnsupportedTable, match="KEEP_ALL is not known"):
        rules({MODE: "KEEP_ALL"})


@pytest.mark.parametrize(
    "key", ["hoodie.table.partial.update.custom.marker", PREFIX + "hoodie.write.partial.update.unavailable.value"]
)
def test_the_marker_of_unavailable_values_has_an_older_name(key: str) -> None:
    assert rules({MODE: FILL_UNAVAILABLE, key: "__debezium"}).unavailable_marker == "__debezium"


@pytest.mark.parametrize(
    ("classes", "message"),
    [((), "no class was given"), (("tests.merge.test_rules:Other",), "none of .*:Other has this id")],
)
def test_a_merger_that_nobody_has_is_reported_with_the_classes_that_were_given(
    classes: tuple[str, ...], message: str
) -> None:
    made = new_table_properties(NewTable("t", record_key_fields=("id",)))
    stored = {"hoodie.record.merge.mode": "CUSTOM", "hoodie.record.merge.strategy.id": CUSTOM_STRATEGY}

    with pytest.raises(UnsupportedTable, match=message):
        merge_rules(TableConfig({**made, **stored}), classes)


class Other:
    """A merger of another id."""

    strategy_id = "99999999-1111-2222-3333-444444444444"

    def merge(self, older: object, newer: object, context: object) -> object:
        return newer


PAYLOADS = "org.apache.hudi.common.model."


@pytest.mark.parametrize(
    ("payload", "version", "places"),
    [
        ("PartialUpdateAvroPayload", 6, {Place.FILE, Place.SLICE}),
        ("PartialUpdateAvroPayload", 8, {Place.FILE}),
        ("debezium.PostgresDebeziumAvroPayload", 6, {Place.SLICE}),
        ("debezium.PostgresDebeziumAvroPayload", 8, set()),
    ],
)
def test_below_version_8_deletes_in_log_files_win_by_place_as_their_ordering_value_is_unknown(
    payload: str, version: int, places: set[Place]
) -> None:
    made = new_table_properties(
        NewTable("t", record_key_fields=("id",), ordering_fields=("ts",), table_version=version)
    )
    made.pop("hoodie.record.merge.strategy.id", None)
    decided = {"hoodie.record.merge.mode": "CUSTOM", "hoodie.compaction.payload.class": PAYLOADS + payload}
    found = merge_rules(TableConfig({**made, **decided}))

    assert found.later_deletes == places


def test_the_columns_that_a_class_of_debezium_orders_by_are_its_own() -> None:
    made = new_table_properties(NewTable("t", record_key_fields=("id",), ordering_fields=("ts",), table_version=8))

    made.pop("hoodie.record.merge.strategy.id", None)
    payload = {"hoodie.compaction.payload.class": f"{PAYLOADS}debezium.MySqlDebeziumAvroPayload"}
    found = merge_rules(TableConfig({**made, "hoodie.record.merge.mode": "CUSTOM", **payload}))

    assert found.ordering_fields == ("_event_bin_file", "_event_pos")
