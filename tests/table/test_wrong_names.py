"""Arguments by name: signatures and help show them, wrong names are told the right ones."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path

import pytest

from pyhudi import ConfigError, HudiTable, bootstrap, follow, import_table, repair_properties, write_hudi
from pyhudi.model.options import ARGUMENTS, KEYWORDS
from pyhudi.table.groups.inspection import TableInspection
from pyhudi.table.groups.lists import TableConstraints, TableIndexes, TableSavepoints
from pyhudi.table.groups.maintenance import Maintenance
from pyhudi.table.groups.metadata import TableMetadata
from pyhudi.table.merge_builder import Merge
from pyhudi.table.scan import Scan
from pyhudi.table.wrong_names import UnknownArgument
from tests.support.tables.rides import ROWS, ids

GROUPS = (Maintenance, TableInspection, TableSavepoints, TableIndexes, TableConstraints, TableMetadata)
PUBLIC = {kind.__name__: kind for kind in (HudiTable, Merge, Scan, *GROUPS)}


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    write_hudi(tmp_path / "t", ROWS, record_key="id", partition_by="city", ordering="ts")
    return HudiTable.open(tmp_path / "t")


def public_calls() -> list[tuple[str, Callable[..., object]]]:
    methods = [
        (f"{name}.{verb}", getattr(kind, verb))
        for name, kind in PUBLIC.items()
        for verb in dir(kind)
        if not verb.startswith("_") and callable(getattr(kind, verb))
    ]
    return [
        *methods,
        *((call.__name__, call) for call in (write_hudi, bootstrap, import_table, follow, repair_properties)),
    ]


@pytest.mark.parametrize(("name", "call"), public_calls(), ids=[name for name, _ in public_calls()])
def test_a_signature_has_16_arguments_at_most_and_says_their_names(name: str, call: Callable[..., object]) -> None:
    parameters = inspect.signature(call).parameters
    assert len(parameters) - ("self" in parameters) <= 16
    unsaid = [str(p) for p in parameters.values() if p.kind is inspect.Parameter.VAR_KEYWORD]
    assert unsaid == ([] if not name.endswith(".to_pandas") else ["**options: 'Any'"]), "to_pandas: those of pyarrow"


def test_options_that_are_arguments_are_those_of_the_signatures() -> None:
    taken = {name for _, call in public_calls() for name in inspect.signature(call).parameters}
    taken.remove("engine")  # sync_check's, of the engine that reads; the option's is the one that writes
    assert taken & KEYWORDS.keys() == ARGUMENTS


def test_an_option_by_its_name_does_what_its_key_does(table: HudiTable) -> None:
    for number in range(3):
        table.upsert(ROWS[:1], options={"hoodie.clean.automatic": False, "_run": number})
    by_key = table.clean(dry_run=True, options={"hoodie.clean.commits.retained": 1})
    assert len(by_key.planned) == 2
    assert table.clean(dry_run=True, commits_retained=1).planned == by_key.planned
    assert len(table.clean(dry_run=True).planned) == 0
    with pytest.raises(ConfigError, match="expected one integer, found 'few'"):
        table.clean(commits_retained="few")  # type: ignore[arg-type]


def test_an_argument_of_none_is_an_option_that_is_not_given(table: HudiTable) -> None:
    assert table.upsert(ROWS[:1], schema_mode=None).updated == 1


def test_changes_since_none_are_those_since_the_first_commit(table: HudiTable) -> None:
    mark = None
    counts = []
    for _ in range(2):
        changes = table.changes(since=mark)
        counts.append(changes.count())
        mark = changes.checkpoint
    assert counts == [len(ROWS), 0]


NEIGHBOURS = [
    (lambda t: t.delete(predicate="id = 1"), r"HudiTable\.delete has no argument 'predicate'\. Did you mean 'where'"),
    (lambda t: t.scan(row_filter="id = 1"), "'row_filter'. Did you mean 'where'"),
    (lambda t: t.to_arrow(selected_fields=["id"]), "Did you mean 'columns'"),
    (lambda t: t.scan(version=3), "Did you mean 'as_of'"),
    (lambda t: t.scan(snapshot_id=3), "Did you mean 'as_of'"),
    (lambda t: t.restore(version=3), "Did you mean 'to'"),
    (lambda t: t.merge(ROWS, predicate="x"), "Did you mean 'on'"),
    (lambda t: t.merge(ROWS, source_alias="s"), "always called source and target"),
    (lambda t: t.merge(ROWS).when_matched_update(updates={}), "Did you mean 'set'"),
    (lambda t: t.update(updates={}), "Did you mean 'set'"),
    (lambda t: t.clean(retention_hours=1), "Did you mean 'hours_retained'"),
    (lambda t: t.clean(older_than=1), "Did you mean 'hours_retained'"),
    (lambda t: t.clean(retain_last=1), "Did you mean 'commits_retained'"),
    (lambda t: t.cluster(z_order=["id"]), "Did you mean 'sort_columns'"),
    (lambda t: t.upsert(ROWS, mode="overwrite"), r"write_hudi\(path, data, mode='overwrite'\)"),
    (lambda t: t.upsert(ROWS, merge_schema=True), "New columns of the data are added"),
    (lambda t: t.upsert(ROWS, operation="insert"), "options=.*hoodie.datasource.write.operation"),
    (lambda t: t.upsert(ROWS, custom_metadata={}), r"options=\{'_name': 'text'\}"),
    (lambda t: t.upsert(ROWS, commits_retained=1), r"given as options=\{'hoodie\.clean\.commits\.retained'"),
    (lambda t: t.clean(record_key="id"), r"options=\{'hoodie\.datasource\.write\.recordkey\.field'"),
    (lambda t: t.upsert(ROWS, recordKey="id"), r"options=\{'hoodie\.datasource\.write\.recordkey\.field'"),
    (lambda t: t.upsert(ROWS, partition_cols="city"), r"options=\{'hoodie\.datasource\.write\.partitionpath\.field'"),
    (lambda t: t.upsert(ROWS, precombine_field="ts"), r"options=\{'hoodie\.table\.ordering\.fields'"),
    (lambda t: t.upsert(ROWS, compresion="zstd"), r"options=\{'hoodie\.parquet\.compression\.codec'"),
    (lambda t: write_hudi(t.path, ROWS, cdc=True), r"options=\{'hoodie\.table\.cdc\.enabled'"),
    (lambda t: t.upsert(ROWS, **{"hoodie.index.type": "BLOOM"}), r"go into options=\{'hoodie\.index\.type'"),
    (lambda t: t.scan(begin="2024-01-01"), r"HudiTable\.changes\(since, until\)"),
    (lambda t: t.changes(as_of="2024-01-01"), r"argument of HudiTable\.scan"),
    (lambda t: t.inspect.files(limit=3), "has no argument 'limit'"),
    (lambda t: write_hudi(t.path, ROWS, primary_key="id"), "write_hudi has no argument 'primary_key'.*'record_key'"),
    (lambda t: write_hudi(t.path, ROWS, merge_key="id"), "Did you mean 'record_key'"),
    (lambda t: write_hudi(t.path, ROWS, key="id"), "Did you mean 'record_key'"),
    (lambda t: HudiTable.open(t.path, storage_config={}), "Did you mean 'storage_options'"),
    (lambda t: HudiTable.open(t.path, version=1), "as_of of scan"),
    (lambda t: HudiTable.create(t.path, ROWS[0], compression="zstd"), r"options=\{'hoodie\.parquet\.compression"),
    (lambda t: t.metadata.rebuild(dryrun=True), "Did you mean 'dry_run'"),
]


@pytest.mark.parametrize(("call", "told"), NEIGHBOURS, ids=[told for _, told in NEIGHBOURS])
def test_a_neighbours_word_is_answered_with_ours(
    table: HudiTable, call: Callable[[HudiTable], object], told: str
) -> None:
    with pytest.raises(UnknownArgument, match=told) as caught:
        call(table)
    assert isinstance(caught.value, ConfigError)
    assert isinstance(caught.value, TypeError), "what Python raises for a name that nobody takes"
    assert len(table.history()) == 1


def test_open_takes_options_of_reads_for_all_of_them(table: HudiTable) -> None:
    first = table.state().timeline.commits().instants[0].requested_time
    table.delete(where="id < 3")
    then = HudiTable.open(table.path, options={"as.of.instant": first, "hoodie.memory.merge.max.size": 1 << 20})
    assert ids(then) == [0, 1, 2, 3, 4, 5]
    assert then.scan().count() == 6
    now = table.state().timeline.commits().instants[-1].requested_time
    assert then.scan(as_of=now).count() == 3, "what a call says itself wins"
    then.upsert(ROWS[:1])
    assert ids(table) == [0, 3, 4, 5], "a write is about the table as it is now"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"hoodie.metadata.enabel": "false"}, r"Unknown option 'hoodie\.metadata\.enabel'.*'hoodie\.metadata\.enable'"),
        ({"hoodie.index.type": "BLOOM"}, r"open takes options for reading; hoodie\.index\.type belongs to the call"),
        ({"hoodie.memory.merge.max.size": "much"}, "expected one integer, found 'much'"),
        ({"query_type": "read_optimized"}, r"Options have Hudi's keys, here 'hoodie\.datasource\.query\.type'"),
    ],
)
def test_open_refuses_other_options(table: HudiTable, options: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        HudiTable.open(table.path, options=options)


@pytest.mark.metadata_table
def test_reading_without_the_metadata_table_does_not_take_it_out_of_a_table_that_is_written(table: HudiTable) -> None:
    assert table.metadata.partitions
    opened = HudiTable.open(table.path, options={"hoodie.metadata.enable": False})
    assert "listing     from the metadata table" not in opened.scan().explain()
    opened.upsert(ROWS[:1])
    assert "listing     from the metadata table" in table.scan().explain()
