"""Arguments by name: signatures and help show them, wrong names are told the right ones."""

from __future__ import annotations

import inspect
import pydoc
from collections.abc import Callable
from pathlib import Path

import pytest

import pyhudi
from pyhudi import ConfigError, HudiTable, write_hudi
from pyhudi.table import arguments
from pyhudi.table.merge_builder import Merge
from pyhudi.table.metadata import TableMetadata
from pyhudi.table.named_arguments import UnknownArgument
from pyhudi.table.scan import Scan
from tests.support.tables.rides import ROWS, ids

PUBLIC = {"HudiTable": HudiTable, "Merge": Merge, "Scan": Scan, "TableMetadata": TableMetadata}


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    write_hudi(tmp_path / "t", ROWS, record_key="id", partition_by="city", ordering="ts")
    return HudiTable.open(tmp_path / "t")


def public_calls() -> list[tuple[str, Callable[..., object]]]:
    methods = [
        (f"{name}.{verb}", getattr(kind, verb))
        for name, kind in PUBLIC.items()
        for verb in vars(kind)
        if not verb.startswith("_") and callable(getattr(kind, verb))
    ]
    return [*methods, ("write_hudi", write_hudi)]


@pytest.mark.parametrize(("name", "call"), public_calls(), ids=[name for name, _ in public_calls()])
def test_no_signature_takes_names_that_it_does_not_say(name: str, call: Callable[..., object]) -> None:
    parameters = inspect.signature(call).parameters.values()
    unsaid = [str(p) for p in parameters if p.kind is inspect.Parameter.VAR_KEYWORD]
    assert unsaid == ([] if name != "Scan.to_pandas" else ["**options: 'Any'"]), "to_pandas: those of pyarrow"


def test_every_method_that_takes_options_by_name_says_so_once() -> None:
    assert len(public_calls()) > 50
    taken = {name: set(inspect.signature(call).parameters) for name, call in public_calls()}
    assert {"record_key", "partition_by", "ordering", "table_type", "index", "lock", "metadata_table"} <= (
        taken["write_hudi"] & taken["HudiTable.create"] & taken["HudiTable.upsert"] & taken["HudiTable.merge"]
    )
    assert {"commits_retained", "hours_retained", "policy", "lock"} <= taken["HudiTable.clean"]
    assert {"min_commits", "max_commits"} <= taken["HudiTable.archive"]
    assert "record_key" not in taken["HudiTable.clean"]
    assert "operation" in taken["write_hudi"] - taken["HudiTable.upsert"]


def test_help_says_the_type_the_meaning_and_the_key_of_each_option() -> None:
    text = pydoc.plain(pydoc.render_doc(HudiTable.clean))
    assert "commits_retained: 'int | None' = None" in text
    assert "commits_retained: KEEP_LATEST_COMMITS: the table can be read as of each of this many newest" in text
    assert "Default: 10. `hoodie.clean.commits.retained`" in text
    assert text.index("commits_retained: KEEP") < text.index("lock: Lock provider"), "the call's own come first"


def test_an_option_by_its_name_does_what_its_key_does(table: HudiTable) -> None:
    for number in range(3):
        table.upsert(ROWS[:1], options={"hoodie.clean.automatic": False, "_run": number})
    by_key = table.clean(dry_run=True, options={"hoodie.clean.commits.retained": 1})
    assert len(by_key.planned) == 2
    assert table.clean(dry_run=True, commits_retained=1).planned == by_key.planned
    assert len(table.clean(dry_run=True).planned) == 0
    with pytest.raises(ConfigError, match="expected one integer, found 'few'"):
        table.clean(commits_retained="few")  # type: ignore[arg-type]


def test_none_is_an_option_that_is_not_given(table: HudiTable) -> None:
    assert table.upsert(ROWS[:1], index=None, lock=None, record_key=None).updated == 1


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
    (lambda t: t.to_pandas(filters="id = 1"), "Did you mean 'where'"),
    (lambda t: t.to_arrow(selected_fields=["id"]), "Did you mean 'columns'"),
    (lambda t: t.to_arrow(version=3), "Did you mean 'as_of'"),
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
    (lambda t: t.upsert(ROWS, merge_schema=True), "Columns that are new in the data are added"),
    (lambda t: t.upsert(ROWS, operation="insert"), "The method is the operation"),
    (lambda t: t.upsert(ROWS, custom_metadata={}), r"options=\{'_name': 'text'\}"),
    (lambda t: t.upsert(ROWS, commits_retained=1), r"HudiTable\.clean.*options=\{'hoodie\.clean\.commits\.retained'"),
    (lambda t: t.clean(record_key="id"), r"It is an argument of HudiTable\.create"),
    (lambda t: t.upsert(ROWS, recordKey="id"), "Did you mean 'record_key'"),
    (lambda t: t.upsert(ROWS, partition_cols="city"), "Did you mean 'partition_by'"),
    (lambda t: t.upsert(ROWS, precombine_field="ts"), "Did you mean 'ordering'"),
    (lambda t: t.upsert(ROWS, compresion="zstd"), "Did you mean 'compression'"),
    (lambda t: t.files(limit=3), "has no argument 'limit'"),
    (lambda t: write_hudi(t.path, ROWS, primary_key="id"), "write_hudi has no argument 'primary_key'.*'record_key'"),
    (lambda t: write_hudi(t.path, ROWS, merge_key="id"), "Did you mean 'record_key'"),
    (lambda t: write_hudi(t.path, ROWS, key="id"), "Did you mean 'record_key'"),
    (lambda t: HudiTable.open(t.path, storage_config={}), "Did you mean 'storage_options'"),
    (lambda t: HudiTable.open(t.path, version=1), "as_of of scan"),
    (lambda t: HudiTable.create(t.path, ROWS[0], compression="zstd"), r"It is an argument of .*HudiTable\.upsert"),
    (lambda t: t.metadata.rebuild(dryrun=True), "Did you mean 'dry_run'"),
]


@pytest.mark.parametrize(("call", "told"), NEIGHBOURS, ids=[told for _, told in NEIGHBOURS])
def test_a_neighbours_word_is_told_ours(table: HudiTable, call: Callable[[HudiTable], object], told: str) -> None:
    with pytest.raises(UnknownArgument, match=told) as caught:
        call(table)
    assert isinstance(caught.value, ConfigError)
    assert isinstance(caught.value, TypeError), "what Python raises for a name that nobody takes"
    assert len(table.history()) == 1


def test_hudis_key_is_taken_for_an_argument_where_options_are(table: HudiTable) -> None:
    assert table.upsert(ROWS[:1], **{"hoodie.index.type": "BLOOM"}).updated == 1  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"has no argument"):
        table.files(**{"hoodie.index.type": "BLOOM"})  # type: ignore[call-arg]


def test_open_takes_options_of_reads_for_all_of_them(table: HudiTable) -> None:
    first = table.timeline.commits().instants[0].requested_time
    table.delete(where="id < 3")
    then = HudiTable.open(table.path, options={"as.of.instant": first, "hoodie.memory.merge.max.size": 1 << 20})
    assert ids(then) == [0, 1, 2, 3, 4, 5]
    assert then.scan().count() == 6
    now = table.timeline.commits().instants[-1].requested_time
    assert then.scan(as_of=now).count() == 3, "what a call says itself wins"
    then.upsert(ROWS[:1])
    assert ids(table) == [0, 3, 4, 5], "a write is about the table as it is now"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"hoodie.metadata.enabel": "false"}, r"Unknown option 'hoodie\.metadata\.enabel'.*'hoodie\.metadata\.enable'"),
        ({"hoodie.index.type": "BLOOM"}, r"open takes options for reading; hoodie\.index\.type goes to the call"),
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


def test_every_typed_dict_is_the_arguments_of_a_call() -> None:
    text = (Path(pyhudi.__file__).parent / "table/hudi_table.py").read_text()
    for name in arguments.__all__:
        used = f"Unpack[{name}]" in text or any(f"({name}" in line or f", {name}" in line for line in _classes())
        assert used, name


def _classes() -> list[str]:
    lines = Path(arguments.__file__).read_text().splitlines()
    return [line for line in lines if line.startswith("class ")]
