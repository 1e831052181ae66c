"""AWS Glue has what is registered as real HiveSyncTool left it in a metastore, by requests that Glue takes."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from pyhudi import HudiTable, write_hudi
from pyhudi.cli.main import main
from pyhudi.errors import ConfigError, StorageError, TableExists
from pyhudi.meta_client import MetaClient
from pyhudi.model.options import WriteOptions
from pyhudi.model.options.aws import AwsOptions
from pyhudi.model.options.catalogs.glue import GlueOptions
from pyhudi.storage import open_storage
from pyhudi.storage.clock import SystemClock
from pyhudi.sync import glue as glue_module
from pyhudi.sync.glue import GlueCatalog
from pyhudi.sync.syncing import sync_to
from tests.support.catalogs import Registered, comparable, oracle_cases, oracle_steps, stored_as_oracle
from tests.support.glue import WatchedGlue, refusal, refused_parts, stored_in_glue

ROWS = [{"id": i, "city": "ab"[i % 2], "ts": 1} for i in range(4)]
SYNC = "hoodie.datasource.hive_sync."
GLUE = "hoodie.datasource.meta.sync.glue."
# Where we take a side of our own: tests/sync/test_hive_oracle.py. Glue has no managed tables.
_DIFFERENT = {"comments": (0,), "mor_skip_ro_suffix": (1,), "not_incremental": (1,)}
_REFUSED = ("no_auto_database", "colon")
_GLUES_OWN = ("hudi.metadata-listing-enabled",)


def written(path: Any, rows: Any = ROWS, **options: str) -> HudiTable:
    given = {"hoodie.metadata.enable": "false", "hoodie.table.name": "rides", **options}
    write_hudi(str(path), rows, record_key="id", partition_by="city", ordering="ts", options=given)
    return HudiTable.open(str(path))


def ride(number: int, city: str, **more: Any) -> dict[str, Any]:
    return {"id": number, "city": city, "ts": number, **more}


def stored(glue: WatchedGlue, name: str = "rides", database: str = "default") -> Registered:
    return stored_in_glue(GlueCatalog(glue.client, GlueOptions()), glue.client, database, name)


def cities(glue: WatchedGlue) -> set[str]:
    return {values[0] for values in stored(glue).locations}


def names(glue: WatchedGlue) -> list[str]:
    return [name for name, _ in glue.calls]


@pytest.mark.parametrize("name", [name for name in oracle_cases() if name not in _REFUSED])
def test_tables_are_there_as_real_hudi_has_registered_them(name: str, glue: WatchedGlue, tmp_path: Path) -> None:
    catalog = GlueCatalog(glue, GlueOptions())
    for number, folder, options, step in oracle_steps(name, tmp_path):
        meta = MetaClient.load(open_storage(str(folder)))
        sync_to(catalog, meta, WriteOptions.parse(options, None, meta.config).sync.of("glue"))
        if number in _DIFFERENT.get(name, ()):
            continue
        for table, there in stored_as_oracle(step, folder).items():
            one = stored(glue, table, options[f"{SYNC}database"])
            expected = comparable(there, name, step["hudi"], _GLUES_OWN)
            assert comparable(one, name, step["hudi"], _GLUES_OWN) == expected, table


@pytest.mark.parametrize("values", [["a b", "50%", "zürich", "x#y", "q?"], [f"c{n:04}" for n in range(12)]])
def test_partitions_of_odd_values_come_and_go_and_move(values: list[str], glue: WatchedGlue, tmp_path: Path) -> None:
    table = written(tmp_path / "t", [ride(n, value) for n, value in enumerate(values)])
    catalog, batch = GlueCatalog(glue, GlueOptions()), {f"{SYNC}batch_num": "7"}

    table.sync("glue", options=batch)
    assert set(catalog.partition_names("default", "rides")) == {(value,) for value in values}
    located = catalog.locations("default", "rides", [(value,) for value in (*values, "none")], 4)
    assert located == {(value,): f"file:{tmp_path}/t/{value}" for value in values}
    assert max(count for _, count in glue.calls) == min(7, len(values))

    catalog.move_partitions("default", "rides", {(values[0],): "file:/elsewhere", ("none",): "file:/none"}, 5)
    table.delete_partitions(values[1:3])
    table.sync("glue", options={**batch, "hoodie.meta.sync.incremental": "false"})
    left = [value for value in values if value not in values[1:3]]
    assert stored(glue).locations == {(value,): f"file:{tmp_path}/t/{value}" for value in left}


# ---- what is asked of Glue


def test_nothing_new_costs_two_requests(glue: WatchedGlue) -> None:
    table = written("memory://glue-idle")
    table.sync("glue")
    glue.calls.clear()

    assert [one.action for one in table.sync("glue").tables] == ["unchanged"]
    assert names(glue) == ["get_database", "get_table"]


def test_only_partitions_that_changed_are_asked_for(glue: WatchedGlue) -> None:
    table = written("memory://glue-asked", [ride(i, f"c{i:03}") for i in range(30)])
    table.sync("glue")
    table.upsert([ride(3, "c003"), ride(900, "new")])
    glue.calls.clear()

    table.sync("glue")

    looks, change = [("get_database", 0), ("get_table", 0)], [("get_table", 0), ("update_table", 0)]
    assert glue.calls == [*looks, ("batch_get_partition", 2), ("batch_create_partition", 1), *change]


def test_requests_have_as_many_partitions_as_glue_takes(glue: WatchedGlue) -> None:
    count = 130
    catalog, values = GlueCatalog(glue, GlueOptions()), [(f"c{n}",) for n in range(count)]
    table = written("memory://glue-limits", [ride(1, "c0")])
    table.sync("glue")
    glue.calls.clear()
    there = catalog.table("default", "rides")
    assert there is not None

    catalog.add_partitions("default", "rides", there, {one: f"s3://b/{one[0]}" for one in values}, 1000)
    assert set(catalog.locations("default", "rides", values * 8, 5000)) == set(values)
    catalog.move_partitions("default", "rides", dict.fromkeys(values, "s3a://b/moved"), 1000)
    assert set(stored(glue).locations.values()) == {"s3://b/moved"}
    catalog.drop_partitions("default", "rides", values, 1000)

    counts = {name: [size for each, size in glue.calls if each == name] for name in glue.counts}
    assert counts["batch_create_partition"] == counts["batch_update_partition"] == [100, 30]
    assert counts["batch_get_partition"] == [1000, 40, 100, 30]
    assert counts["batch_delete_partition"] == [25] * 5 + [5]


def test_all_partitions_are_read_in_pages_without_their_columns_and_in_segments(glue: WatchedGlue) -> None:
    written("memory://glue-pages", [ride(i, f"c{i}") for i in range(23)]).sync("glue")
    glue.page = 5

    for threads in (1, 4):
        catalog = GlueCatalog(glue, GlueOptions(all_read_threads=threads))
        assert set(catalog.partition_names("default", "rides")) == {(f"c{i}",) for i in range(23)}
        assert glue.arguments["get_partitions"]["ExcludeColumnSchema"]
        assert ("Segment" in glue.arguments["get_partitions"]) == (threads > 1)


def test_changes_are_sent_in_parallel_as_an_option_says(glue: WatchedGlue) -> None:
    table = written("memory://glue-threads", [ride(i, f"c{i}") for i in range(20)])
    barrier, waiting = Barrier(3, timeout=20), list[str]()

    def together(name: str) -> None:
        if name == "batch_create_partition" and len(waiting) < 3:
            waiting.append(name)
            barrier.wait()  # breaks unless three requests are under way together

    glue.before = together
    table.sync("glue", options={f"{GLUE}partition_change_parallelism": "3", f"{SYNC}batch_num": "5"})

    assert len(waiting) == 3
    assert len(cities(glue)) == 20


# ---- what differs from a metastore


def test_partitions_own_columns_follow_those_of_the_table(glue: WatchedGlue) -> None:
    table = written("memory://glue-cascade", [ride(i, f"c{i}") for i in range(13)])
    table.sync("glue")
    table.upsert([ride(1, "c1", fare=1.5)])
    glue.page, before = 6, [one.name for one in stored(glue).table.columns]
    glue.calls.clear()

    (said,) = table.sync("glue").tables

    there = stored(glue)
    assert (said.columns_added, [one.name for one in there.table.columns]) == (("fare",), [*before, "fare"])
    assert set(there.columns_of.values()) == {there.table.columns}
    assert GlueCatalog(glue.client, GlueOptions()).own_columns("default", "rides", [("c1",), ("none",)], 9) == {
        ("c1",): there.table.columns
    }
    assert [size for name, size in glue.calls if name == "batch_update_partition"] == [6, 6, 1]


def test_a_cascade_that_was_cut_short_is_made_whole_by_the_next_sync(glue: WatchedGlue) -> None:
    table = written("memory://glue-cut", [ride(i, f"c{i}") for i in range(6)])
    table.sync("glue")
    table.upsert([ride(1, "c1", fare=1.5)])
    glue.page, glue.failures["batch_update_partition"] = 2, [lambda real, given: real(**given), refusal("Denied")]

    with pytest.raises(StorageError, match="refused batch_update_partition: Denied"):
        table.sync("glue")
    table.sync("glue")

    there = stored(glue)
    assert set(there.columns_of.values()) == {there.table.columns}
    assert there.table.columns[-1].name == "fare"


def test_hadoops_names_of_s3_are_written_as_athena_knows_them(glue: WatchedGlue) -> None:
    written("memory://glue-s3").sync("glue")
    catalog = GlueCatalog(glue, GlueOptions())
    there = catalog.table("default", "rides")
    assert there is not None
    for scheme in ("s3a", "s3n", "s3"):
        catalog.add_partitions("default", "rides", there, {(scheme,): f"{scheme}://b/t/{scheme}"}, 10)

    added = {values[0]: place for values, place in stored(glue).locations.items() if values[0].startswith("s3")}
    assert added == {scheme: f"s3://b/t/{scheme}" for scheme in ("s3a", "s3n", "s3")}


def test_options_of_glue_come_before_those_of_hive(glue: WatchedGlue) -> None:
    hives = {f"{SYNC}database": "hives", f"{SYNC}table": "hives"}
    table = written("memory://glue-names")
    own = {f"{GLUE}database_name": "Lake", f"{GLUE}table_name": "Trips", f"{GLUE}metadata_file_listing": "true"}

    table.sync("glue", options=hives)
    table.sync("glue", options={**hives, **own})

    assert stored(glue, "hives", "hives").table.properties["hudi.metadata-listing-enabled"] == "FALSE"
    assert stored(glue, "trips", "lake").table.properties["hudi.metadata-listing-enabled"] == "TRUE"
    assert stored(glue, "trips", "lake").table.properties["EXTERNAL"] == "TRUE"


def test_requests_name_the_account_that_an_option_names(glue: WatchedGlue) -> None:
    written("memory://glue-account").sync("glue", options={f"{GLUE}catalogId": "123456789012"})

    assert {name: given.get("CatalogId") for name, given in glue.arguments.items()} == dict.fromkeys(
        glue.counts, "123456789012"
    )


@pytest.mark.parametrize("skips", ["true", "false"])
def test_older_versions_of_a_table_are_stored_only_if_an_option_says_so(skips: str, glue: WatchedGlue) -> None:
    written("memory://glue-archive").sync("glue", options={f"{GLUE}skip_table_archive": skips})

    assert glue.arguments["update_table"]["SkipArchive"] == (skips == "true")


def test_what_a_sync_makes_is_tagged(glue: WatchedGlue) -> None:
    options = {f"{GLUE}resource_tags": "team:rides, cost : a:b"}
    written("memory://glue-tags").sync("glue", options=options)

    account = "arn:aws:glue:us-east-1:123456789012"
    assert glue.arguments["create_database"]["Tags"] == {"team": "rides", "cost": "a:b"}
    assert glue.arguments["tag_resource"] == {
        "ResourceArn": f"{account}:table/default/rides",
        "TagsToAdd": {"team": "rides", "cost": "a:b"},
    }


def test_a_table_that_can_not_be_tagged_is_not_made(glue: WatchedGlue) -> None:
    table = written("memory://glue-untagged")
    glue.failures["tag_resource"] = [refusal("AccessDeniedException", "not authorized to glue:TagResource")]

    with pytest.raises(StorageError, match="AccessDeniedException: not authorized to glue:TagResource"):
        table.sync("glue", options={f"{GLUE}resource_tags": "team:rides"})
    assert glue.client.get_databases()["DatabaseList"] == []


def test_another_programs_properties_stay(glue: WatchedGlue) -> None:
    table = written("memory://glue-theirs")
    table.sync("glue")
    given = glue.client.get_table(DatabaseName="default", Name="rides")["Table"]
    changed = {key: given[key] for key in ("Name", "StorageDescriptor", "PartitionKeys", "TableType", "Parameters")}
    changed |= {"Description": "by hand", "Parameters": {**given["Parameters"], "theirs": "x"}}
    glue.client.update_table(DatabaseName="default", TableInput=changed)

    table.upsert([ride(9, "c", fare=1.5)])
    table.sync("glue")

    there = glue.client.get_table(DatabaseName="default", Name="rides")["Table"]
    assert (there["Description"], there["Parameters"]["theirs"]) == ("by hand", "x")
    assert there["StorageDescriptor"]["Columns"][-1]["Name"] == "fare"


# ---- several at once


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize(
    "at", ["get_table", "create_database", "create_table", "batch_create_partition", "batch_get_partition",
           "batch_delete_partition", "update_table"]
)  # fmt: skip
def test_two_syncs_at_once_end_with_what_the_table_has(is_first: bool, at: str, glue: WatchedGlue) -> None:
    """The slow one is overtaken at one of its requests: by commits that take away and bring, and by their syncs."""
    table = written(f"memory://glue-twice-{at}-{is_first}", [ride(1, "a"), ride(2, "b"), ride(3, "c")])
    if not is_first:
        table.sync("glue")
        table.delete_partitions(["a"])
        table.upsert([ride(4, "d")])
    overtaken = list[str]()

    def overtaking(name: str) -> None:
        if name == at and not overtaken:
            overtaken.append(at)
            other = HudiTable.open(table.path)
            other.upsert([ride(5, "a"), ride(6, "e", fare=1.5)])
            other.sync("glue")
            other.delete_partitions(["b"])
            other.sync("glue")

    glue.before = overtaking
    table.sync("glue")

    is_asked = {"create_database": is_first, "create_table": is_first, "batch_get_partition": not is_first}
    assert bool(overtaken) == is_asked.get(at, at != "batch_delete_partition" or not is_first)
    if overtaken:
        for _ in range(2):
            assert cities(glue) == ({"a", "c", "e"} if is_first else {"a", "c", "d", "e"})
            table.sync("glue")
        assert stored(glue).table.properties["last_commit_time_sync"] == table.history(1)[0].instant_time
        assert stored(glue).table.columns[-1].name == "fare"


def test_syncs_in_threads_end_in_one_state(glue: WatchedGlue) -> None:
    table = written("memory://glue-atonce", [ride(n, f"c{n}") for n in range(20)])

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: table.sync("glue"), range(4)))

    assert sum(result.tables[0].action == "created" for result in results) == 1
    assert len(cities(glue)) == 20
    assert [one.action for one in table.sync("glue").tables] == ["unchanged"]


# ---- what Glue refuses


@pytest.mark.parametrize(
    ("operation", "error"),
    [
        ("get_database", "ThrottlingException"),
        ("create_table", "ConcurrentModificationException"),
        ("batch_create_partition", "OperationTimeoutException"),
        ("update_table", "ConcurrentModificationException"),
        ("update_table", "ThrottlingException"),
        ("get_table", "InternalServiceException"),
    ],
)
def test_a_busy_glue_is_asked_again_after_pauses_that_grow(operation: str, error: str, glue: WatchedGlue) -> None:
    table = written(f"memory://glue-busy-{operation}-{error}")
    glue.failures[operation] = [refusal(error) for _ in range(4)]

    table.sync("glue")

    assert cities(glue) == {"a", "b"}
    assert 1.5 < glue.clock.slept_s < 3.1


def test_a_glue_that_stays_busy_is_an_error(glue: WatchedGlue) -> None:
    table = written("memory://glue-stays-busy")
    glue.failures["batch_create_partition"] = [refusal("ThrottlingException", "Rate exceeded") for _ in range(8)]

    with pytest.raises(StorageError, match=r"batch_create_partition: ThrottlingException: Rate exceeded \(after 8"):
        table.sync("glue")
    assert glue.client.get_databases()["DatabaseList"] == []
    assert glue.clock.slept_s < 30


def test_an_update_that_another_one_has_passed_is_recreated_and_loses_nothing_of_it(glue: WatchedGlue) -> None:
    table = written("memory://glue-passed")
    table.sync("glue")
    table.upsert([ride(9, "c")])

    def passed(real: Callable[..., Any], given: dict[str, Any]) -> Any:
        there = glue.client.get_table(DatabaseName="default", Name="rides")["Table"]
        parameters = {**there["Parameters"], "theirs": "x"}
        glue.client.update_table(DatabaseName="default", TableInput={**given["TableInput"], "Parameters": parameters})
        return real(**given)

    glue.failures["update_table"] = [passed]
    table.sync("glue")

    properties = stored(glue).table.properties
    assert properties["theirs"] == "x"
    assert properties["last_commit_time_sync"] == table.history(1)[0].instant_time


@pytest.mark.parametrize("code", ["InternalServiceException", "ThrottlingException"])
def test_partitions_that_glue_was_too_busy_for_are_sent_again_alone(code: str, glue: WatchedGlue) -> None:
    table = written("memory://glue-some", [ride(i, f"c{i}") for i in range(9)])
    glue.failures["batch_create_partition"] = [
        refused_parts("PartitionInputList", code, "c1", "c2"),
        refused_parts("PartitionInputList", code, "c2"),
    ]
    table.sync("glue")
    assert [size for name, size in glue.calls if name == "batch_create_partition"] == [9, 2, 1]
    assert len(cities(glue)) == 9

    table.delete_partitions(["c1", "c3"])
    glue.failures["batch_delete_partition"] = [refused_parts("PartitionsToDelete", code, "c3")]
    table.sync("glue")
    assert len(cities(glue)) == 7

    table.upsert([ride(20, "c5", fare=1.5)])
    glue.failures["batch_update_partition"] = [refused_parts("Entries", code, "c5", "c6")]
    table.sync("glue")
    there = stored(glue)
    assert set(there.columns_of.values()) == {there.table.columns}


def test_a_refused_partition_of_a_batch_is_named(glue: WatchedGlue) -> None:
    table = written("memory://glue-refused", [ride(i, f"c{i}") for i in range(9)])
    failure = refused_parts("PartitionInputList", "InvalidInputException", "c1", "c2")
    glue.failures["batch_create_partition"] = [failure]

    with pytest.raises(StorageError, match=r"batch_create_partition of 2 of 9 partitions, first 'c1': InvalidInput"):
        table.sync("glue")
    assert glue.client.get_databases()["DatabaseList"] == []
    table.sync("glue")

    table.delete_partitions(["c1"])
    glue.failures["batch_delete_partition"] = [refused_parts("PartitionsToDelete", "InvalidInputException", "c1")]
    with pytest.raises(StorageError, match=r"batch_delete_partition of 1 of 1 partitions, first 'c1': InvalidInput"):
        table.sync("glue")
    table.sync("glue")
    assert len(cities(glue)) == 8


def test_partitions_that_are_as_they_should_be_by_now_are_no_error(glue: WatchedGlue) -> None:
    table = written("memory://glue-by-now")
    glue.failures["batch_create_partition"] = [refused_parts("PartitionInputList", "AlreadyExistsException", "a")]
    table.sync("glue")
    table.delete_partitions(["b"])
    glue.failures["batch_delete_partition"] = [refused_parts("PartitionsToDelete", "EntityNotFoundException", "b")]

    assert table.sync("glue").tables[0].partitions_dropped == 1


def test_partitions_that_an_answer_leaves_out_are_asked_for_again(glue: WatchedGlue) -> None:
    def part(real: Callable[..., Any], given: dict[str, Any]) -> Any:
        asked = given["PartitionsToGet"]
        return {**real(**{**given, "PartitionsToGet": asked[:3]}), "UnprocessedKeys": asked[3:]}

    written("memory://glue-left", [ride(i, f"c{i}") for i in range(40)]).sync("glue")
    glue.failures["batch_get_partition"] = [part] * 12

    located = GlueCatalog(glue, GlueOptions()).locations("default", "rides", [(f"c{i}",) for i in range(40)], 100)

    assert len(located) == 40
    assert glue.clock.slept_s == 0


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("changes", [False, True])
def test_wherever_a_sync_ends_the_next_one_makes_it_whole(kind: str, changes: bool, glue: WatchedGlue) -> None:
    table = written(f"memory://glue-ends-{kind}-{changes}", **{"hoodie.datasource.write.table.type": kind})
    if changes:
        table.sync("glue")
        table.delete_partitions(["a"])
        table.upsert([ride(9, "c", fare=1.5)])
    ended = 0
    for place in range(60):
        seen = list[str]()

        def end(name: str, place: int = place, seen: list[str] = seen) -> None:
            seen.append(name)
            if len(seen) == place + 1:
                raise refusal("AccessDeniedException", f"not authorized to {name}")

        glue.before = end
        said = _error_of(table)
        if said is None:
            break
        assert f"refused {seen[place]}: AccessDenied" in said
        ended += 1
        if not changes:
            assert glue.client.get_databases()["DatabaseList"] == []
    glue.before = lambda name: None
    table.sync("glue")

    assert ended >= (5 if kind == "cow" else 9)
    for name in ["rides"] if kind == "cow" else ["rides", "rides_ro", "rides_rt"]:
        there = stored(glue, name)
        assert {values[0] for values in there.locations} == ({"b", "c"} if changes else {"a", "b"})
        assert {one.name for columns in there.columns_of.values() for one in columns} == {
            one.name for one in there.table.columns
        }
        assert there.table.properties["last_commit_time_sync"] == table.history(1)[0].instant_time


def _error_of(table: HudiTable) -> str | None:
    """What a sync ends with, None for success."""
    try:
        table.sync("glue")
    except StorageError as error:
        return str(error)
    return None


def test_a_table_of_the_same_name_at_another_place_stays_as_it_is(glue: WatchedGlue) -> None:
    written("memory://glue-first").sync("glue")
    before = stored(glue)

    with pytest.raises(
        TableExists, match=r"AWS Glue \(us-east-1\): default\.rides is at memory://glue-first.*glue\.table_name"
    ):
        written("memory://glue-second").sync("glue", options={f"{GLUE}recreate_table_on_error": "true"})
    assert stored(glue) == before


def test_a_database_with_tables_of_others_is_not_dropped_after_an_error(glue: WatchedGlue) -> None:
    table = written("memory://glue-theirs-stay")

    def refuses(real: Callable[..., Any], given: dict[str, Any]) -> Any:
        glue.client.create_table(DatabaseName="default", TableInput={"Name": "theirs"})
        raise refusal("AccessDeniedException", "not authorized")

    glue.failures["batch_create_partition"] = [refuses]
    with pytest.raises(StorageError, match="not authorized"):
        table.sync("glue")
    assert [one["Name"] for one in glue.client.get_tables(DatabaseName="default")["TableList"]] == ["theirs"]


# ---- places and rights


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that knows neither a region nor credentials."""
    for name in ("AWS_DEFAULT_REGION", "AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/nowhere")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.mark.usefixtures("nowhere")
def test_without_a_region_credentials_or_an_answer_the_error_says_so_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("boto3")
    table = written("memory://glue-nowhere")
    region = {"hoodie.aws.glue.region": "eu-central-1"}
    keys = {"hoodie.aws.access.key": "AKIA", "hoodie.aws.secret.key": "very-secret"}
    closed = {"hoodie.aws.glue.endpoint": "http://127.0.0.1:1"}
    monkeypatch.setattr(SystemClock, "sleep_s", lambda self, seconds: pytest.fail("a pause"))

    with pytest.raises(ConfigError, match=r"specify a region.*hoodie\.aws\.glue\.region"):
        table.sync("glue")
    with pytest.raises(StorageError, match=r"AWS Glue \(eu-central-1\) did not answer get_database: NoCredentials"):
        table.sync("glue", options=region)
    with pytest.raises(ConfigError, match=r"needs both of hoodie\.aws\.access\.key and"):
        table.sync("glue", options={**region, "hoodie.aws.access.key": "AKIA"})
    with pytest.raises(StorageError, match=r"127\.0\.0\.1:1\) did not answer get_database: EndpointConn") as caught:
        table.sync("glue", options={**region, **keys, **closed})
    assert "secret" not in str(caught.value)


@pytest.mark.usefixtures("nowhere")
def test_credentials_are_those_of_options_or_of_a_role() -> None:
    mock_aws = pytest.importorskip("moto").mock_aws
    keys = GlueOptions(region="eu-west-1", aws=AwsOptions("AKIA", "s", "t"))
    role = replace(keys, aws=replace(keys.aws, role_arn="arn:aws:iam::123456789012:role/lake", role_external_id="lake"))

    with mock_aws():
        own, taken_on = glue_module._client(keys), glue_module._client(role)

    assert {one.meta.region_name for one in (own, taken_on)} == {"eu-west-1"}
    assert own._request_signer._credentials.access_key == "AKIA"
    assert taken_on._request_signer._credentials.access_key.startswith("ASIA")
    assert own.meta.config.retries["total_max_attempts"] == 1


def test_secrets_are_shown_nowhere() -> None:
    options = WriteOptions.parse({"hoodie.aws.secret.key": "very-secret", "hoodie.aws.session.token": "very-secret"})

    assert options.sync.glue.aws.secret_key == "very-secret"
    assert options.lock.aws.secret_key == "very-secret"
    assert "very-secret" not in repr(options)


# ---- indexes


def test_partitions_are_indexed_as_options_say(glue: WatchedGlue) -> None:
    path = "memory://glue-indexed"
    on, fields = {f"{GLUE}partition_index_fields.enable": "true"}, f"{GLUE}partition_index_fields"
    rows = [{"id": 1, "y": "2026", "m": "10", "ts": 1}]
    write_hudi(path, rows, record_key="id", partition_by=["y", "m"], options={"hoodie.table.name": "rides"})
    table = HudiTable.open(path)

    with pytest.raises(ConfigError, match=r"partition_index_fields names 'd', which is none .* \(m, y\)"):
        table.sync("glue", options={**on, fields: "y;d"})
    assert glue.calls == []

    table.sync("glue", options={**on, fields: "Y;m,m"})
    assert glue.index_names("default", "rides") == ["hudi_managed_[y, m]", "hudi_managed_[m]"]
    assert stored(glue).table.properties["partition_filtering.enabled"] == "true"

    glue.calls.clear()
    table.sync("glue", options=on)
    assert glue.index_names("default", "rides") == ["hudi_managed_[y, m]"]
    assert names(glue) == ["get_database", "get_table", "get_partition_indexes", "delete_partition_index"]

    theirs = {"IndexName": "theirs", "Keys": ["m"]}
    glue.create_partition_index(DatabaseName="default", TableName="rides", PartitionIndex=theirs)
    table.sync("glue")
    assert glue.index_names("default", "rides") == ["theirs"]
    assert stored(glue).table.properties["partition_filtering.enabled"] == "false"
    glue.calls.clear()
    table.sync("glue")
    assert names(glue) == ["get_database", "get_table"]


def test_an_index_that_glue_refuses_is_warned_of_and_tried_again(glue: WatchedGlue) -> None:
    table, on = written("memory://glue-index-later"), {f"{GLUE}partition_index_fields.enable": "true"}
    table.sync("glue")
    glue.failures["create_partition_index"] = [refusal("InvalidInputException", "an index is being made")]

    with pytest.warns(
        UserWarning, match=r"default\.rides is registered, but its partition indexes.*an index is being made"
    ):
        table.sync("glue", options=on)
    table.sync("glue", options=on)

    assert glue.index_names("default", "rides") == ["hudi_managed_[city]"]


def test_a_table_without_partitions_has_no_index(glue: WatchedGlue) -> None:
    on = {f"{GLUE}partition_index_fields.enable": "true"}
    write_hudi("memory://glue-flat", ROWS, record_key="id", options={"hoodie.table.name": "rides"})
    table = HudiTable.open("memory://glue-flat")

    table.sync("glue", options=on)
    glue.calls.clear()
    assert [one.action for one in table.sync("glue", options=on).tables] == ["unchanged"]
    assert names(glue) == ["get_database", "get_table"]


def test_the_command_line_registers_a_table(
    glue: WatchedGlue, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(tmp_path / "rides")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert main(["sync", "glue", str(tmp_path / "rides"), "--option", f"{GLUE}database_name=lake", "--json"]) == 0

    (said,) = json.loads(capsys.readouterr().out)["tables"]
    assert (said["name"], said["action"]) == ("lake.rides", "created")
