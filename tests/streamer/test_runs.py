"""Where a table's first round begins, when a continuous run ends by itself, and schemas changed on the way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable, Streamer, write_hudi
from pyhudi.actions.streamer_checkpoints import newest_checkpoint
from pyhudi.errors import ConfigError
from pyhudi.streamer.first_checkpoints import FIRST_CHECKPOINTS, first_start
from pyhudi.streamer.schema_changes import SCHEMA_CHANGES, changed_schema
from pyhudi.streamer.settings import load_settings
from pyhudi.streamer.termination import TERMINATIONS, termination_of

PROVIDER, PROVIDER_PATH = "hoodie.streamer.initial-checkpoint-provider", "hoodie.streamer.checkpoint.provider.path"
CHANGES = "hoodie.streamer.schemaprovider.schema_post_processor"


def config(tmp_path: Path, *rows: object, table: str = "t", **more: object) -> dict[str, Any]:
    (tmp_path / "in").mkdir(exist_ok=True)
    if rows:
        number = len(list((tmp_path / "in").iterdir()))
        (tmp_path / "in" / f"f{number}").write_text("\n".join(map(json.dumps, rows)))
    root = {"hoodie.streamer.source.dfs.root": str(tmp_path / "in"), "record_key": "id"}
    return {"target-base-path": str(tmp_path / table), **root, **more}


def ids(path: Path) -> list[int]:
    return sorted(HudiTable.open(path).scan().to_arrow()["id"].to_pylist())


class Once:
    """A strategy of one's own."""

    def __init__(self, settings: dict[str, str]) -> None:
        self.rounds = int(settings["own.rounds"])

    def should_shutdown(self, has_new_data: bool) -> bool:
        self.rounds -= 1
        return self.rounds == 0


class Given:
    """A provider of one's own."""

    def __init__(self, settings: dict[str, str]) -> None:
        self.text = settings.get("own.text", "")

    def checkpoint(self) -> str:
        return self.text


def test_a_continuous_run_ends_after_rounds_without_new_data_by_hudis_strategy(tmp_path: Path) -> None:
    strategy = "org.apache.hudi.utilities.deltastreamer.NoNewDataTerminationStrategy"
    settings = config(
        tmp_path,
        {"id": 1},
        continuous=True,
        **{
            "post-write-termination-strategy-class": strategy,
            "max.rounds.without.new.data.to.shutdown": 2,
            "min-sync-interval-seconds": 0,
        },
    )
    streamer = Streamer(settings)
    told: list[str] = []

    def tell(line: str) -> None:
        told.append(line)
        if len(told) == 1:  # new data begins the count again
            config(tmp_path, {"id": 2})

    done = streamer.run(told=tell)
    assert (done.rows, done.commits) == (2, 2)
    assert ids(tmp_path / "t") == [1, 2]
    assert streamer.run().rows == 0  # a run after it counts from 0


def test_hudis_strategy_counts_rounds_in_a_row() -> None:
    strategy = termination_of(
        load_settings(
            {"target-base-path": "/t", "post-write-termination-strategy-class": "NoNewDataTerminationStrategy"}
        )
    )
    assert strategy is not None
    answers = [strategy.should_shutdown(has) for has in (False, False, True, False, False, False)]
    assert answers == [False, False, False, False, False, True]
    assert set(TERMINATIONS.entries) == {"NoNewDataTerminationStrategy"}


def test_a_strategy_of_ones_own_ends_a_run(tmp_path: Path) -> None:
    more = {"post-write-termination-strategy-class": f"{__name__}:Once", "own.rounds": 1}
    assert Streamer(config(tmp_path, {"id": 1}, continuous=True, **more)).run().rounds == 1
    with pytest.raises(ConfigError, match=r"Given has no method should_shutdown"):
        Streamer(config(tmp_path, **{"post-write-termination-strategy-class": f"{__name__}:Given"}))
    with pytest.raises(ConfigError, match="Unknown termination strategy 'NoNewData'"):
        Streamer(config(tmp_path, **{"post-write-termination-strategy-class": "NoNewData"}))


def test_a_new_table_begins_where_another_table_stopped_and_only_once(tmp_path: Path) -> None:
    Streamer(config(tmp_path, {"id": 1})).run()
    provider = "org.apache.hudi.utilities.checkpointing.InitialCheckpointFromAnotherHoodieTimelineProvider"
    more = {PROVIDER: provider, PROVIDER_PATH: str(tmp_path / "t")}
    copy = config(tmp_path, {"id": 2}, table="copy", **more)

    assert Streamer(copy).run().rows == 1
    assert ids(tmp_path / "copy") == [2]
    Streamer(config(tmp_path, {"id": 3})).run()  # the other table goes on
    assert Streamer(copy).run(until_empty=True).rows == 1
    assert ids(tmp_path / "copy") == [2, 3]


def test_the_provider_is_asked_once_although_what_it_reads_goes_on(tmp_path: Path) -> None:
    first = config(tmp_path, {"id": 1})
    Streamer(first).run()
    more = {PROVIDER: "InitialCheckpointFromAnotherHoodieTimelineProvider", PROVIDER_PATH: str(tmp_path / "t")}
    copy = Streamer(config(tmp_path, table="copy", **more))
    assert copy.run().commits == 0  # nothing new, and no table to note it
    Streamer(config(tmp_path, {"id": 2})).run()
    assert copy.run().rows == 1


def test_a_table_that_others_have_filled_begins_where_the_provider_says(tmp_path: Path) -> None:
    write_hudi(tmp_path / "t", [{"id": 9}], record_key="id")
    with pytest.raises(ConfigError, match="none has a checkpoint"):
        Streamer(config(tmp_path, {"id": 1})).run()
    more = {PROVIDER: f"{__name__}:Given", "own.text": "1"}
    assert Streamer(config(tmp_path, **more)).run().rows == 1
    meta = HudiTable.open(tmp_path / "t").state()
    newest = newest_checkpoint(meta)
    assert newest is not None
    assert newest.reset is None
    with pytest.raises(ConfigError, match=r"Given\.checkpoint\(\) returned ''; expected a text"):
        Streamer(config(tmp_path, table="other", **{PROVIDER: f"{__name__}:Given"})).run()


CONNECT = ["day=1/kafka-1+0+000+0009.avro", "day=2/h=1/kafka-1+0+010+0019.avro", "day=1/kafka-1+1+0+4.parquet"]


def test_a_table_begins_behind_the_events_that_kafka_connect_has_written_as_files(tmp_path: Path) -> None:
    for name in [*CONNECT, "day=1/other.avro", "tmp/kafka-1+0+020+0099.avro"]:
        path = tmp_path / "connect" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    settings = load_settings(
        config(tmp_path, **{PROVIDER: "KafkaConnectHdfsProvider", PROVIDER_PATH: str(tmp_path / "connect")})
    )

    assert first_start(settings).text == "kafka-1,0:20,1:5"
    (tmp_path / "connect" / "day=1" / "kafka-1+3+0+4.avro").write_text("x")
    with pytest.raises(ConfigError, match=r"partition 3 of kafka-1, and none of 2"):
        first_start(settings)
    (tmp_path / "connect" / "day=1" / "k2+0+0+4.avro").write_text("x")
    with pytest.raises(ConfigError, match=r"of one topic, found those of 2 topics, k2, kafka-1"):
        first_start(settings)


@pytest.mark.parametrize("name", sorted(FIRST_CHECKPOINTS.entries))
def test_a_provider_without_its_place_or_with_an_empty_one_is_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"checkpoint\.provider\.path is missing"):
        first_start(load_settings(config(tmp_path, **{PROVIDER: name})))
    write_hudi(tmp_path / "empty", [{"id": 1}], record_key="id")
    settings = load_settings(config(tmp_path, **{PROVIDER: name, PROVIDER_PATH: str(tmp_path / "empty")}))
    with pytest.raises(ConfigError, match=r"has no checkpoint of a Streamer|of one topic, found none"):
        first_start(settings)


SCHEMA = pa.schema([("id", pa.int64()), ("Secret", pa.string()), ("v", pa.string())])


def without_v(schema: pa.Schema) -> pa.Schema:
    return schema.remove(schema.get_field_index("v"))


def changes(*names: str, **more: object) -> Any:
    keys = {f"{CHANGES}.{key.replace('_', '.')}": value for key, value in more.items()}
    return load_settings({"target-base-path": "/t", CHANGES: ",".join(names), **keys})


def test_schemas_are_changed_one_after_the_other() -> None:
    package = "org.apache.hudi.utilities.schema.postprocessor."
    settings = changes(
        f"{package}DropColumnSchemaPostProcessor",
        f"{package}add.AddPrimitiveColumnSchemaPostProcessor",
        f"{__name__}:without_v",
        "DeleteSupportSchemaPostProcessor",
        delete_columns="secret",
        add_column_name="ts",
        add_column_type="LONG",
    )

    assert changed_schema(SCHEMA, settings).names == ["id", "ts", "_hoodie_is_deleted"]
    assert changed_schema(SCHEMA, settings).field("ts").type == pa.int64()
    assert len(SCHEMA_CHANGES.entries) == 3


@pytest.mark.parametrize(
    ("names", "more", "words"),
    [
        (["DropColumnSchemaPostProcessor"], {"delete_columns": "x"}, r"delete\.columns=x: expected columns of"),
        (["DropColumnSchemaPostProcessor"], {}, r"delete\.columns=: expected columns"),
        (["DropColumnSchemaPostProcessor"], {"delete_columns": "id,secret,v"}, "leaves no column"),
        (["AddPrimitiveColumnSchemaPostProcessor"], {"add_column_name": "ts"}, r"\.type are both needed"),
        (
            ["AddPrimitiveColumnSchemaPostProcessor"],
            {"add_column_name": "v", "add_column_type": "int"},
            "has a column v",
        ),
        (["builtins:len"], {}, "returned 3; expected a schema of Arrow"),
        (["Chained"], {}, "Unknown schema post-processor 'Chained'"),
    ],
)
def test_a_change_that_a_schema_cant_take_is_named(names: list[str], more: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        changed_schema(SCHEMA, changes(*names, **more))


def test_a_column_that_is_dropped_from_a_providers_schema_does_not_come_into_the_table(tmp_path: Path) -> None:
    fields = [{"name": name, "type": kind} for name, kind in (("id", "long"), ("secret", "string"))]
    (tmp_path / "o.avsc").write_text(json.dumps({"type": "record", "name": "o", "fields": fields}))
    more = {
        "hoodie.streamer.schemaprovider.source.schema.file": str(tmp_path / "o.avsc"),
        CHANGES: "DropColumnSchemaPostProcessor,DeleteSupportSchemaPostProcessor",
        f"{CHANGES}.delete.columns": "secret",
    }
    Streamer(config(tmp_path, {"id": 1, "secret": "x"}, {"id": 2, "secret": "y"}, **more)).run()
    Streamer(config(tmp_path, {"id": 1, "_hoodie_is_deleted": True}, **more)).run()

    table = HudiTable.open(tmp_path / "t").scan(meta_columns=False).to_arrow()
    assert table["id"].to_pylist() == [2]
    assert "secret" not in table.schema.names


def test_a_change_without_a_providers_schema_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="changes the schema of a provider, and there is none"):
        Streamer(config(tmp_path, {"id": 1}, **{CHANGES: "DeleteSupportSchemaPostProcessor"}))
