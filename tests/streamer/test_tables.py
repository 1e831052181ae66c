"""Several tables by one configuration: each its own keys, rounds in turn, and a failure that stops no other."""

from __future__ import annotations

import json
import pickle
import threading
from pathlib import Path
from typing import Any

import pytest

from pyhudi import HudiTable, Streamer
from pyhudi.cli.main import WRONG, main
from pyhudi.errors import ConfigError
from pyhudi.streamer.results import StreamerCheck, StreamerRun, TablesFailed
from pyhudi.streamer.schemas import provided_columns
from pyhudi.streamer.settings import load_settings
from pyhudi.streamer.tables import load_tables


def rows(path: Path) -> list[int]:
    return sorted(HudiTable.open(path).scan().to_arrow()["id"].to_pylist())


def file(folder: Path, *found: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"f{len(list(folder.iterdir()))}").write_text("\n".join(map(json.dumps, found)))


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Two tables: orders by their id, customers by their customer's."""
    file(tmp_path / "in" / "orders", {"id": 1}, {"id": 2})
    file(tmp_path / "in" / "customers", {"id": 7, "customer": "a"})
    (tmp_path / "p.toml").write_text(f'''base-path-prefix = "{tmp_path}/lake"
record_key = "id"

[tables.orders]
hoodie.streamer.source.dfs.root = "{tmp_path}/in/orders"

[tables."shop.customers"]
record_key = "customer"
hoodie.streamer.source.dfs.root = "{tmp_path}/in/customers"
''')
    return tmp_path


def break_orders(lake: Path) -> None:
    section = f'[tables.orders]\ntransformer-class = "{__name__}:broken"'
    (lake / "p.toml").write_text((lake / "p.toml").read_text().replace("[tables.orders]", section))


def broken(batch: Any) -> Any:
    return 1 / 0


def test_one_run_fills_each_table_by_its_own_keys_before_the_common_ones(lake: Path) -> None:
    done = Streamer(lake / "p.toml").run()

    assert (done.rows, done.commits, list(done.tables)) == (3, 2, ["orders", "shop.customers"])
    assert done.tables["orders"].rows == 2
    assert rows(lake / "lake" / "orders") == [1, 2]
    customers = HudiTable.open(lake / "lake" / "shop" / "customers")
    assert customers.state().config.record_key_fields == ("customer",)
    assert str(done).splitlines()[2] == "in all: 3 rows in 2 commits"
    assert Streamer(lake / "p.toml").run(until_empty=True).rows == 0


def test_a_check_shows_rows_of_all_tables_and_writes_nothing(lake: Path) -> None:
    checked = Streamer(lake / "p.toml").check()

    assert (checked.waiting, list(checked.tables)) == (3, ["orders", "shop.customers"])
    assert checked.tables["shop.customers"].rows == [{"id": 7, "customer": "a"}]
    assert not (lake / "lake").exists()


def test_a_table_that_fails_stops_no_other_and_is_named_at_the_end_and_in_the_exit_code(
    lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file(lake / "in" / "orders", {"v": 1})
    lines: list[str] = []

    with pytest.raises(TablesFailed, match=r"1 of 2 tables failed: orders: SchemaMismatch: 1 of 3 rows") as failed:
        Streamer(lake / "p.toml").run(told=lines.append)
    result = pickle.loads(pickle.dumps(failed.value)).result
    assert isinstance(result, StreamerRun)
    assert (result.failed, result.tables["shop.customers"].rows) == (["orders"], 1)
    assert lines[0].startswith(f"{lake}/lake/orders: failed: SchemaMismatch")
    assert not (lake / "lake" / "orders").exists()

    assert main(["stream", str(lake / "p.toml")]) == WRONG
    assert "failed: orders" in capsys.readouterr().out
    (lake / "in" / "orders" / "f1").unlink()
    assert main(["stream", str(lake / "p.toml"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tables"]["orders"]["rows"] == 2


def test_a_check_tries_all_tables_and_names_those_that_fail(lake: Path) -> None:
    break_orders(lake)

    with pytest.raises(TablesFailed, match="1 of 2 tables failed: orders: ZeroDivisionError") as failed:
        Streamer(lake / "p.toml").check()
    assert isinstance(failed.value.result, StreamerCheck)
    assert failed.value.result.tables["shop.customers"].waiting == 1


def test_an_error_of_ones_own_code_stops_no_other_table(lake: Path) -> None:
    break_orders(lake)
    with pytest.raises(TablesFailed, match="orders: ZeroDivisionError"):
        Streamer(lake / "p.toml").run(until_empty=True)
    assert rows(lake / "lake" / "shop" / "customers") == [7]


def test_a_continuous_run_tries_a_table_that_failed_again_while_the_others_go_on(lake: Path) -> None:
    file(lake / "in" / "orders", {"v": 1})
    more = "continuous = true\nretry-interval-seconds = 0\nmin-sync-interval-seconds = 0\n"
    (lake / "p.toml").write_text(more + (lake / "p.toml").read_text())
    streamer = Streamer(lake / "p.toml")
    lines: list[str] = []

    def tell(line: str) -> None:
        lines.append(line)
        if "failed" in line:
            (lake / "in" / "orders" / "f1").unlink()  # somebody mends it
        elif "lake/orders" in line:
            streamer.stop()

    done = streamer.run(told=tell)
    assert done.failed == []
    assert [("failed" in line, "orders" in line) for line in lines] == [(True, True), (False, False), (False, True)]
    assert done.tables["orders"].rows == 2


def test_a_continuous_run_ends_when_all_tables_have_failed(lake: Path) -> None:
    for name in ("orders", "customers"):
        file(lake / "in" / name, {"v": 1})
    (lake / "p.toml").write_text("continuous = true\n" + (lake / "p.toml").read_text())
    with pytest.raises(TablesFailed, match="2 of 2 tables failed"):
        Streamer(lake / "p.toml").run()


def test_properties_of_hoodies_multi_table_streamer_are_read_as_they_are(lake: Path) -> None:
    folder = lake / "conf"
    folder.mkdir()
    (folder / "common.properties").write_text(
        "hoodie.deltastreamer.ingestion.tablesToBeIngested=shop.orders,customers\n"
        f"hoodie.deltastreamer.ingestion.shop.orders.configFile={folder}/special.properties\n"
        f"--config-folder={folder}\n--base-path-prefix={lake}/lake/\n--table-type=MERGE_ON_READ\n"
        "hoodie.datasource.write.recordkey.field=id\n"
    )
    (folder / "special.properties").write_text(f"hoodie.deltastreamer.source.dfs.root={lake}/in/orders\n")
    (folder / "default_customers_config.properties").write_text(
        f"hoodie.streamer.source.dfs.root={lake}/in/customers\nhoodie.datasource.write.recordkey.field=customer\n"
        f"hoodie.streamer.ingestion.targetBasePath={lake}/elsewhere\n"
    )

    done = Streamer(folder / "common.properties").run()
    assert {name: one.rows for name, one in done.tables.items()} == {"shop.orders": 2, "customers": 1}
    assert rows(lake / "lake" / "shop" / "orders") == [1, 2]
    assert rows(lake / "elsewhere") == [7]
    assert "MERGE_ON_READ" in str(HudiTable.open(lake / "elsewhere").inspect.describe())


def test_a_listed_name_without_a_database_has_the_folder_that_hudi_gives_it(tmp_path: Path) -> None:
    (tmp_path / "default_rides_config.properties").write_text("")
    (tmp_path / "p.properties").write_text(
        "hoodie.streamer.ingestion.tablesToBeIngested=rides\n--base-path-prefix=/lake\n--config-folder=.\n"
    )
    assert load_tables(tmp_path / "p.properties")["rides"].target == "/lake/default/rides"


LISTED = "--target-base-path=/t\nhoodie.streamer.ingestion.tablesToBeIngested=a.b\n"


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("p.toml", '[tables.a]\nrecord_keys = "x"\n', r"p\.toml:2: record_keys: .*Did you mean record_key\?"),
        (
            "p.toml",
            '[tables.a]\nrecord_key = "x"\ntarget-base-path="/a"\n[tables.b]\nrecord_keys = "x"\n',
            r"p\.toml:5: record_keys",
        ),
        ("p.toml", '[tables.a]\nrecord_key = "x"\n', r"p\.toml:2: target-base-path is missing"),
        ("p.toml", "[tables.shop.orders]\nrecord_key = 'x'\n", r'p\.toml:2: .*quoted: \[tables\."shop\.orders"\]'),
        ("p.toml", "tables = 1\n", r"p\.toml:1: expected a section for each table"),
        ("p.toml", 'base-path-prefix = "/l"\ntarget-base-path = "/t"\n', r"p\.toml:1: base-path-prefix is of several"),
        ("p.toml", 'target-base-path = "/t"\n[tables.a]\n[tables.b]\n', "b and a are both written to /t"),
        (
            "p.toml",
            '[tables.a]\ntarget-base-path = "/x/t"\n[tables.b]\ntarget-base-path = "file:///x/./t/"\n',
            "b and a are both written to file:///x/./t/",
        ),
        (
            "p.toml",
            'base-path-prefix = "/t"\n[tables.a]\n[tables.b]\nhoodie.errortable.base.path = "/t//a"\n',
            "b sets rows aside in /t//a, the table of a",
        ),
        ("p.toml", 'target-table = "t"\n[tables.a]\n', r"p\.toml:1: target-table would name all tables alike"),
        ("p.properties", "hoodie.streamer.ingestion.tablesToBeIngested=\n", r"expected db\.table,db\.table, found ''"),
        ("p.properties", LISTED.replace("a.b", "a.b.c"), r"p\.properties:2: .*expected db\.table.* found 'a\.b\.c'"),
        ("p.properties", LISTED, r"p\.properties:2: the file of the table a\.b is missing: .*a\.b\.configFile"),
        ("p.properties", LISTED + "--config-folder=conf\n", r"no configuration '.*/conf/a_b_config\.properties'"),
        (
            "p.properties",
            LISTED + "hoodie.streamer.ingestion.a.c.configFile=x\n",
            r"p\.properties:3: .*tablesToBeIngested does not list a\.c",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_before_anything_starts_with_its_line(
    name: str, text: str, words: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    if "a.c.configFile" in text:
        (tmp_path / "a_b_config.properties").write_text("")
        text += f"--config-folder={tmp_path}\n"
        (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError, match=words):
        Streamer(tmp_path / name)


def test_a_wrong_line_in_a_tables_own_file_is_named_with_that_file(tmp_path: Path) -> None:
    (tmp_path / "own.properties").write_text("\nhoodie.streamer.source.dfs.rot=/in\n")
    (tmp_path / "p.properties").write_text(LISTED + "hoodie.streamer.ingestion.a.b.configFile=own.properties\n")
    with pytest.raises(ConfigError, match=r"own\.properties:2: hoodie\.streamer\.source\.dfs\.rot: .*Did you mean"):
        load_tables(tmp_path / "p.properties")


def test_options_of_the_command_count_before_all_tables(lake: Path) -> None:
    tables = load_tables(lake / "p.toml")
    assert tables["orders"].operation == "upsert"
    assert main(["stream", str(lake / "p.toml"), "--option", "op=INSERT"]) == 0
    meta = HudiTable.open(lake / "lake" / "orders").state()
    assert meta.commits.metadata(meta.timeline.commits().instants[-1]).operation_type == "INSERT"


def test_a_schemas_url_is_made_of_the_registry_the_topic_of_the_table_and_the_suffix(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    schema = {"type": "record", "name": "o", "fields": [{"name": "id", "type": "long"}]}

    def fetched(url: str) -> str:
        asked.append(url)
        return json.dumps(schema)

    monkeypatch.setattr("pyhudi.streamer.schemas.fetched_schema", fetched)
    config = {
        "target-base-path": "/t",
        "schemaprovider-class": "SchemaRegistryProvider",
        "hoodie.streamer.schemaprovider.registry.baseUrl": "http://r:1/subjects/",
        "hoodie.streamer.source.kafka.topic": "orders",
    }
    parts = "hoodie.streamer.schemaprovider.registry."
    provided_columns(load_settings({**config, f"{parts}urlSuffix": "-value/versions/latest"}))
    suffixes = {f"{parts}sourceUrlSuffix": "-in", f"{parts}targetUrlSuffix": "-out"}
    assert provided_columns(load_settings({**config, **suffixes})).target is not None
    assert asked == [f"http://r:1/subjects/orders{end}" for end in ("-value/versions/latest", "-in", "-out")]
    with pytest.raises(ConfigError, match=r"urlSuffix, or sourceUrlSuffix is missing"):
        provided_columns(load_settings(config))


def test_tables_have_their_rounds_in_turn_however_large_the_backlog_of_one_is(lake: Path) -> None:
    for number in range(10, 13):
        file(lake / "in" / "orders", {"id": number})
    lines: list[str] = []
    (lake / "p.toml").write_text("source-limit = 1\n" + (lake / "p.toml").read_text())

    Streamer(lake / "p.toml").run(until_empty=True, told=lines.append)
    assert ["customers" in line for line in lines[:2]] == [False, True]
    assert rows(lake / "lake" / "orders") == [1, 2, 10, 11, 12]


def test_stop_ends_a_run_of_several_tables_in_another_thread(lake: Path) -> None:
    (lake / "p.toml").write_text("continuous = true\n" + (lake / "p.toml").read_text())
    streamer = Streamer(lake / "p.toml")
    told = threading.Event()
    running = threading.Thread(target=streamer.run, kwargs={"told": lambda line: told.set()})
    running.start()
    assert told.wait(30)
    streamer.stop()
    running.join(30)
    assert not running.is_alive()
