"""The option table and its doors: spellings, values, precedence, refusals, warnings, the page."""

from __future__ import annotations

import ast
import subprocess
import sys
import warnings
from collections import Counter
from dataclasses import dataclass, field, fields, is_dataclass

import pytest

from pyhudi.errors import ConfigError
from pyhudi.model.options import (
    KEYWORDS,
    OPTIONS,
    HudiOptionWarning,
    Kind,
    OptionScope,
    ReadOptions,
    Support,
    WriteOptions,
    options_from_keywords,
    resolve,
    spec_of,
    streamer_options,
)
from pyhudi.model.options.concurrency import RETRIES_BY_DEFAULT, ConcurrencyOptions
from pyhudi.model.options.declare import specs_of
from pyhudi.model.options.not_honoured import options_not_honoured
from pyhudi.model.options.streamer.runs import ROUNDS_WITHOUT_DATA
from pyhudi.model.options.streamer.streamer import StreamerOptions
from pyhudi.model.table_format import TableFormat
from tests.support.source import modules

KEY = "hoodie.datasource.write.recordkey.field"
ALL = (*OPTIONS, *options_not_honoured())


@dataclass(frozen=True)
class Table:
    """As much of a table's config as options look at."""

    table_name: str = "trips"
    table_type: str = "COPY_ON_WRITE"
    table_version: int = 8
    base_file_format: str = "PARQUET"
    populate_meta_fields: bool = True
    cdc_enabled: bool = False
    record_key_fields: tuple[str, ...] = ("id",)
    partition_fields: tuple[str, ...] = ("region",)
    partition_field_types: tuple[str, ...] = ("",)
    ordering_fields: tuple[str, ...] = ("ts",)
    key_generator: str | None = "SIMPLE"
    hive_style_partitioning: bool = True
    url_encode_partitioning: bool = False
    slash_separated_dates: bool = False
    drop_partition_columns: bool = False
    record_merge_mode: str = "EVENT_TIME_ORDERING"
    payload_class: str | None = None
    merge_strategy_id: str | None = None
    keygen_properties: dict[str, str] = field(default_factory=dict)
    properties: dict[str, str] = field(default_factory=dict)

    @property
    def format(self) -> TableFormat:
        return TableFormat(self.table_version)


def test_every_option_has_a_key_a_kind_and_a_doc_line():
    for spec in ALL:
        assert spec.key.startswith("hoodie.") or spec.key in ("as.of.instant", ROUNDS_WITHOUT_DATA)
        assert isinstance(spec.kind, Kind), spec.key
        assert spec.doc.endswith("."), spec.key
        assert "\n" not in spec.doc
        assert spec.group


def test_the_options_that_are_not_honoured_are_read_when_a_key_is_unknown_and_not_before():
    code = (
        "import pyhudi.model.options.not_honoured as rows; from pyhudi.model.options import WriteOptions;"
        "write = lambda **more: WriteOptions.parse({'hoodie.table.name': 't', 'path': '/t', **more});"
        "size = lambda: rows.options_not_honoured.cache_info().currsize;"
        "write(); before = size(); write(**{'hoodie.x': 1}); print(before, size())"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "0 1\n"


def test_no_key_or_spelling_stands_twice():
    spellings = [spelling for spec in ALL for spelling in (spec.key, *spec.aliases)]
    assert len(spellings) == len(set(spellings))


def test_every_default_of_an_honoured_option_is_a_value_of_it():
    for spec in OPTIONS:
        if spec.default is not None:
            assert spec.normalise(spec.default) == spec.default, spec.key


def test_the_defaults_of_the_class_are_those_of_the_table():
    parsed = WriteOptions.parse({})
    untouched = WriteOptions(
        operation="bulk_insert",
        update_partition_path={"GLOBAL_SIMPLE": True, "GLOBAL_BLOOM": True, "GLOBAL_RECORD_LEVEL_INDEX": False},
        concurrency=ConcurrencyOptions(conflict_retries=RETRIES_BY_DEFAULT, guards_new_keys=True),  # no mode is named
    )
    assert {f.name: getattr(parsed, f.name) for f in fields(parsed)} == {
        f.name: getattr(untouched, f.name) for f in fields(untouched)
    }


def leaves(options: object) -> dict[str, object]:
    """Field → value, of parts too."""
    found: dict[str, object] = {}
    for each in fields(options):  # type: ignore[arg-type]
        value = getattr(options, each.name)
        found.update(
            {f"{each.name}.{name}": leaf for name, leaf in leaves(value).items()}
            if is_dataclass(value)
            else {each.name: value}
        )
    return found


# Being given says something by itself: of the policy the two numbers, of the table's encoding the flag, of the metadata
# table that there shall be one, of the mode that conflicts and retries are Hudi's.
SAID_BY_BEING_GIVEN = {
    "hoodie.write.concurrency.mode": {"concurrency.conflict_retries", "concurrency.guards_new_keys"},
    "hoodie.write.num.retries.on.conflict.failures": {"concurrency.conflict_retries"},
    "hoodie.clean.fileversions.retained": {"cleaning.policy"},
    "hoodie.clean.hours.retained": {"cleaning.policy"},
    "hoodie.datasource.hive_sync.metastore.uris": {"sync.named_catalogs"},
    "hoodie.datasource.write.operation": {"operation"},
    "hoodie.metadata.enable": {"metadata.enable"},
    "hoodie.write.complex.keygen.new.encoding": {"complex_key_new_encoding"},
}


@pytest.mark.filterwarnings("ignore::pyhudi.HudiOptionWarning")  # schema on read, whose default is not what reads do
def test_giving_the_default_of_the_page_is_the_same_as_giving_nothing():
    parses = {
        OptionScope.WRITE: WriteOptions.parse,
        OptionScope.READ: ReadOptions.parse,
        OptionScope.STREAM: streamer_options,
    }
    plain = {scope: leaves(parse({})) for scope, parse in parses.items()}
    unlike: dict[str, set[str]] = {}
    for spec in OPTIONS:
        for scope in spec.scopes:
            if spec.default is not None:
                given = leaves(parses[scope]({spec.key: spec.default}))
                names = {name for name in given if given[name] != plain[scope][name]}
                names -= {"explicit", "keygen_options"} | {name for name in names if name.endswith("_is_given")}
                unlike |= {spec.key: names} if names else {}
    assert unlike == SAID_BY_BEING_GIVEN


def test_every_class_that_declares_options_is_in_the_known_keys():
    declared = {spec.key for kind in (WriteOptions, ReadOptions, StreamerOptions) for spec in specs_of(kind)}
    without_a_field = {"hoodie.layout.optimize.enable", "hoodie.schema.on.read.enable"}
    assert declared | without_a_field == {spec.key for spec in OPTIONS}


def test_every_key_of_an_honoured_option_is_written_down_once():
    spellings = {text for spec in OPTIONS for text in (spec.key, *spec.aliases)}
    written = Counter(
        node.value
        for path, tree in modules().items()
        if path.startswith("pyhudi/model/options/")
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node.value in spellings
    )
    assert {key for key, times in written.items() if times > 1} == set()


def test_every_python_name_stands_for_the_one_spelling_of_an_honoured_option():
    for name, key in KEYWORDS.items():
        assert name.isidentifier()
        assert spec_of(key).key == key
        assert spec_of(key).support is Support.HONOURED


@pytest.mark.parametrize(
    ("older", "newer", "text"),
    [
        ("hoodie.datasource.write.precombine.field", "hoodie.table.ordering.fields", "ts"),
        ("hoodie.table.precombine.field", "hoodie.table.ordering.fields", "ts"),
        ("hoodie.datasource.write.storage.type", "hoodie.datasource.write.table.type", "COPY_ON_WRITE"),
        ("hoodie.deltastreamer.keygen.timebased.timestamp.type", "hoodie.keygen.timebased.timestamp.type", "SCALAR"),
        ("hoodie.streamer.keygen.timebased.timezone", "hoodie.keygen.timebased.timezone", "UTC"),
        ("hoodie.cleaner.policy.failed.writes", "hoodie.clean.failed.writes.policy", "EAGER"),
        ("hoodie.table.recordkey.fields", KEY, "id"),
    ],
)
def test_an_older_spelling_means_the_newer_one(older, newer, text):
    assert resolve({older: text}) == {newer: text}


def test_two_spellings_that_disagree_are_an_error_with_both():
    both = {"hoodie.datasource.write.precombine.field": "ts", "hoodie.table.ordering.fields": "seq"}
    with pytest.raises(ConfigError, match=r"precombine\.field=ts and hoodie\.table\.ordering\.fields=seq"):
        resolve(both)


def test_two_spellings_that_agree_are_one():
    both = {"hoodie.datasource.write.precombine.field": "ts", "hoodie.table.ordering.fields": "ts"}
    assert resolve(both) == {"hoodie.table.ordering.fields": "ts"}


def test_the_call_wins_over_the_session():
    assert resolve({KEY: "id"}, session={KEY: "other", "hoodie.index.type": "BLOOM"}) == {
        KEY: "id",
        "hoodie.index.type": "BLOOM",
    }


def test_python_values_become_text():
    given = {KEY: ["a", " b"], "hoodie.populate.meta.fields": False, "hoodie.bucket.index.num.buckets": 8, "path": "x"}
    assert resolve(given) == {
        KEY: "a,b",
        "hoodie.populate.meta.fields": "false",
        "hoodie.bucket.index.num.buckets": "8",
    }


def test_an_unknown_key_is_warned_about_with_the_nearest_known_one():
    with pytest.warns(HudiOptionWarning, match=r"Did you mean 'hoodie\.datasource\.write\.recordkey\.field'"):
        assert resolve({"hoodie.datasource.write.record.key.field": "id"}) == {}


def test_a_key_for_a_users_generator_passes_without_a_word():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert resolve({"hoodie.keygen.user.bits": 32}) == {"hoodie.keygen.user.bits": "32"}
    assert WriteOptions.parse({"hoodie.keygen.user.bits": 32}).keygen_options == {"hoodie.keygen.user.bits": "32"}


def test_an_option_without_effect_is_warned_about_by_name_and_with_what_happens_instead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pyhudi.warnings._messages_given_once", set())
    with pytest.warns(HudiOptionWarning, match=r"hoodie\.clean\.parallelism\. Cleaning runs at the end of a write"):
        assert resolve({"hoodie.clean.parallelism": "7"}) == {}


@pytest.mark.parametrize(
    "key", ["hoodie.clean.automatic", "hoodie.compact.inline", "hoodie.archive.automatic", "hoodie.table.cdc.enabled"]
)
def test_a_value_that_says_what_we_do_is_taken_without_a_word(key):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        resolve({key: "false"})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hoodie.datasource.hive_sync.use_spark_catalog", "true"),
        ("hoodie.prewrite.validators", "x.Y"),
        ("hoodie.datasource.write.operation", "upsert_prepped"),
        ("hoodie.datasource.write.payload.class", "org.apache.hudi.common.model.EmptyHoodieRecordPayload"),
        ("hoodie.parquet.outputtimestamptype", "INT96"),
    ],
)
def test_what_would_change_contents_is_refused_by_name(key, value):
    with pytest.raises(ConfigError) as caught:
        resolve({key: value})
    assert spec_of(key).key in str(caught.value)
    assert value in str(caught.value)
    assert "this release" in str(caught.value)


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("hoodie.populate.meta.fields", "yes", "expected true or false, found 'yes'"),
        ("hoodie.bucket.index.num.buckets", "many", "expected one integer, found 'many'"),
        ("hoodie.bulkinsert.sort.mode", "SORTED", "expected one of NONE, GLOBAL_SORT"),
        ("hoodie.write.table.version", "7", "expected one of 6, 8, 9"),
        ("hoodie.bucket.index.num.buckets", "0", "expected at least 1, found 0"),
    ],
)
def test_a_value_that_cannot_be_read_is_an_error_with_key_expectation_and_finding(key, value, expected):
    with pytest.raises(ConfigError, match=expected) as caught:
        WriteOptions.parse({key: value})
    assert key in str(caught.value)


def test_choices_are_read_in_any_case():
    assert WriteOptions.parse({"hoodie.datasource.write.operation": "UPSERT"}).operation == "upsert"


def test_without_a_record_key_the_default_operation_is_bulk_insert():
    assert WriteOptions.parse({}).operation == "bulk_insert"
    assert WriteOptions.parse({KEY: "id"}).operation == "upsert"


def test_a_read_leaves_options_of_writing_alone_and_the_other_way_round():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read = ReadOptions.parse({KEY: "id", "hoodie.clustering.inline": "true", "as.of.instant": "2024-01-01"})
        assert read == ReadOptions(query_type="snapshot", as_of="2024-01-01")
        assert resolve({"hoodie.datasource.query.type": "incremental"}) == {}


def test_the_tables_own_facts_fill_the_options():
    parsed = WriteOptions.parse({}, table=Table())
    assert parsed.record_key_fields == ("id",)
    assert parsed.partition_fields == ("region",)
    assert parsed.ordering_fields == ("ts",)
    assert parsed.table_version == 8
    assert parsed.hive_style_partitioning
    assert parsed.merge_mode == "EVENT_TIME_ORDERING"
    assert parsed.operation == "upsert"
    assert parsed.explicit == frozenset()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (KEY, "uuid"),
        ("hoodie.datasource.write.partitionpath.field", "city"),
        ("hoodie.table.ordering.fields", "seq"),
        ("hoodie.write.table.version", "9"),
        ("hoodie.datasource.write.hive_style_partitioning", "false"),
        ("hoodie.table.name", "rides"),
        ("hoodie.write.record.merge.mode", "COMMIT_TIME_ORDERING"),
        ("hoodie.datasource.write.payload.class", "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"),
    ],
)
def test_an_option_of_the_call_that_contradicts_the_table_is_an_error_with_both_values(key, value):
    with pytest.raises(ConfigError, match="the table 'trips'") as caught:
        WriteOptions.parse({key: value}, table=Table())
    assert value in str(caught.value)


def test_a_session_wide_option_that_contradicts_the_table_is_passed_over():
    session = {KEY: "uuid", "hoodie.table.ordering.fields": "seq", "hoodie.write.table.version": "9"}
    parsed = WriteOptions.parse({}, session=session, table=Table())
    assert parsed.record_key_fields == ("id",)
    assert parsed.ordering_fields == ("ts",)
    assert parsed.table_version == 8


def test_partition_types_of_the_call_agree_with_bare_names_in_the_table():
    given = {"hoodie.datasource.write.partitionpath.field": "region:SIMPLE"}
    assert WriteOptions.parse(given, table=Table()).explicit == frozenset(given)


def test_a_table_without_ordering_takes_the_calls_ordering_for_this_write():
    plain = Table(ordering_fields=(), record_merge_mode="COMMIT_TIME_ORDERING")
    parsed = WriteOptions.parse({"hoodie.table.ordering.fields": "ts"}, table=plain)
    assert parsed.ordering_fields == ("ts",)
    assert parsed.merge_mode == "COMMIT_TIME_ORDERING"


def test_a_table_that_was_made_with_timestamps_as_text_stays_so():
    """A later write without the option would give every row a second key, and a second row."""
    key = "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled"
    table = Table(properties={key: "true"})
    assert WriteOptions.parse({}, table=table).consistent_logical_timestamp
    with pytest.raises(ConfigError, match="the table 'trips'"):
        WriteOptions.parse({key: "false"}, table=table)


def test_a_table_that_stores_no_merge_mode_takes_that_of_each_write():
    of_hudi_0 = Table(table_version=6, record_merge_mode="COMMIT_TIME_ORDERING")
    payload = {"hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload"}
    assert WriteOptions.parse(payload, table=of_hudi_0).merge_mode == "EVENT_TIME_ORDERING"
    assert WriteOptions.parse({}, table=of_hudi_0).merge_mode is None


def test_options_that_name_different_merge_modes_are_an_error():
    with pytest.raises(ConfigError, match="different merge modes"):
        WriteOptions.parse(
            {
                "hoodie.write.record.merge.mode": "EVENT_TIME_ORDERING",
                "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload",
            }
        )


def test_options_with_the_prefix_go_into_the_commit():
    assert WriteOptions.parse({"_checkpoint": "7", "other": "x"}).extra_metadata == {"_checkpoint": "7"}
    renamed = {"hoodie.datasource.write.commitmeta.key.prefix": "meta.", "meta.run": 5, "_checkpoint": "7"}
    assert WriteOptions.parse(renamed).extra_metadata == {"meta.run": "5"}


def test_writing_with_a_schema_history_is_refused():
    with pytest.raises(ConfigError, match=r"hoodie\.schema\.on\.read\.enable"):
        WriteOptions.parse({"hoodie.schema.on.read.enable": "true"})


def test_python_names_become_keys_and_a_wrong_name_is_answered_with_the_nearest():
    assert options_from_keywords({"record_key": "id", "hoodie.index.type": "BLOOM"}) == {
        KEY: "id",
        "hoodie.index.type": "BLOOM",
    }
    with pytest.raises(ConfigError, match="Did you mean 'record_key'"):
        options_from_keywords({"recordkey": "id"})
    with pytest.raises(ConfigError, match="same option"):
        options_from_keywords({"record_key": "id", KEY: "id"})
