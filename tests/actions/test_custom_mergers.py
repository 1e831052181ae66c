"""Custom mergers on every road: log files, compaction, copy-on-write, combining the input; and who may name a class."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import ConfigError, HudiTable, UnsupportedTable, write_hudi
from pyhudi.cli.main import main
from pyhudi.storage import open_storage
from pyhudi.timeline.table_properties import update_table_config
from tests.support.values.mergers import NewestParts, example

orders = example("order_events")
CLASSES = "hoodie.write.record.merge.custom.implementation.classes"
BY_ROWS = f"{NewestParts.__module__}:NewestParts"
ORDERS = [
    {"order_id": "o1", "state": "cancelled", "order_info": "3 chairs", "payment_info": "card declined"},
    {"order_id": "o2", "state": "paid", "order_info": "1 lamp", "payment_info": "card"},
]


def table_of(path: Path, merger: str, strategy_id: str, **more: Any) -> HudiTable:
    options = {
        "hoodie.write.record.merge.mode": "CUSTOM",
        "hoodie.write.record.merge.strategy.id": strategy_id,
        CLASSES: merger,
    }
    return HudiTable.create(path, orders.SCHEMA, record_key="order_id", ordering="seq", options=options, **more)


@pytest.mark.thorough
@pytest.mark.parametrize("table_type", ["MERGE_ON_READ", "COPY_ON_WRITE"])
def test_the_example_puts_orders_together_from_two_services(tmp_path: Path, table_type: str) -> None:
    assert orders.run(tmp_path / "orders", table_type).to_pylist() == ORDERS


@pytest.mark.thorough
@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("table_type", ["MERGE_ON_READ", "COPY_ON_WRITE"])
def test_a_merger_of_rows_does_the_same_and_compaction_too(tmp_path: Path, version: int, table_type: str) -> None:
    table = table_of(
        tmp_path / "t", BY_ROWS, NewestParts.strategy_id, table_type=table_type, table_version=version
    )  # fmt: skip
    table.upsert(orders.event("o1", 1, "created", order="2 chairs"))
    table.upsert(orders.event("o1", 3, "cancelled", payment="card declined"))
    table.upsert(orders.event("o1", 2, "changed", order="3 chairs"))
    expected = [{"state": "cancelled", "order_info": "3 chairs", "payment_info": "card declined"}]

    assert table.to_arrow(list(expected[0])).to_pylist() == expected
    if table_type == "MERGE_ON_READ":
        assert sum(table.inspect.files()["log_files"].to_pylist()) == 2
        table.compact()
        assert sum(table.inspect.files()["log_files"].to_pylist()) == 0
        assert table.scan(list(expected[0]), query_type="read_optimized").to_arrow().to_pylist() == expected


@pytest.mark.parametrize("table_type", ["MERGE_ON_READ", "COPY_ON_WRITE"])
def test_deletes_by_key_remove_and_rows_after_them_start_over(tmp_path: Path, table_type: str) -> None:
    table = table_of(tmp_path / "t", "order_events:OrderEvents", orders.OrderEvents.strategy_id, table_type=table_type)
    table.upsert(orders.event("o1", 5, "created", order="2 chairs"))
    table.delete(pa.table({"order_id": ["o1"]}))
    assert table.to_arrow().num_rows == 0
    if table_type == "MERGE_ON_READ":
        table.compact()  # before, the log files' row would meet the base file's, as in real Hudi

    table.upsert(orders.event("o1", 1, "paid", payment="card"))

    assert table.to_arrow(["state", "order_info"]).to_pylist() == [{"state": "paid", "order_info": None}]


@pytest.mark.thorough
def test_without_its_merger_a_table_is_read_from_its_base_files_only(tmp_path: Path) -> None:
    orders.run(tmp_path / "t")
    opened = HudiTable.open(tmp_path / "t")

    with pytest.raises(UnsupportedTable, match=f"{orders.OrderEvents.strategy_id}.*no class was given"):
        opened.to_arrow()
    with pytest.raises(UnsupportedTable, match="no implementation"):
        opened.upsert(orders.event("o1", 9, "paid"))
    with pytest.raises(UnsupportedTable, match="no implementation"):
        opened.compact()
    assert opened.scan(["state"], query_type="read_optimized").to_arrow().num_rows == 2


@pytest.mark.metadata_table
def test_the_metadata_table_is_compared_with_rows_that_the_merger_gives(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t"
    by_hand = {"hoodie.compact.inline": "false"}
    table = table_of(
        path, BY_ROWS, NewestParts.strategy_id, table_type="MERGE_ON_READ", partition_by="order_id"
    )  # fmt: skip
    for seq, state in enumerate(("created", "paid"), 1):
        table.upsert(orders.event("o1", seq, state), options=by_hand)
    opened, named = HudiTable.open(path), f"{CLASSES}={BY_ROWS}"

    with pytest.raises(UnsupportedTable, match=f"no class was given.*{CLASSES}"):
        opened.metadata.validate()
    assert opened.metadata.validate(options={CLASSES: BY_ROWS}) == ()
    assert HudiTable.open(path, options={CLASSES: BY_ROWS}).metadata.validate() == ()
    assert table.metadata.rebuild(dry_run=True).unreadable is None
    assert main(["metadata", "validate", str(path)]) == 1
    assert CLASSES in capsys.readouterr().err
    assert main(["metadata", "validate", str(path), "--option", named]) == 0
    assert main(["head", str(path), "--columns", "state", "--csv", "--option", named]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "paid"


@pytest.mark.parametrize("table_type", ["MERGE_ON_READ", "COPY_ON_WRITE"])
def test_undoing_and_keeping_house_need_no_merger(tmp_path: Path, table_type: str) -> None:
    table = table_of(tmp_path / "t", BY_ROWS, NewestParts.strategy_id, table_type=table_type)
    for seq, state in enumerate(("created", "changed", "paid"), 1):
        table.upsert(orders.event("o1", seq, state))
    first = table.state().timeline.commits().instants[0].requested_time
    opened = HudiTable.open(tmp_path / "t")

    def states() -> list[str]:
        return table.to_arrow(["state"])["state"].to_pylist()

    opened.clean()
    opened.rollback()
    assert states() == ["changed"]
    opened.savepoints.create(first)
    opened.restore(first)
    assert states() == ["created"]
    opened.maintenance.archive()
    assert states() == ["created"]


@pytest.mark.thorough
@pytest.mark.parametrize("table_type", ["MERGE_ON_READ", "COPY_ON_WRITE"])
def test_deleting_partitions_needs_no_merger(tmp_path: Path, table_type: str) -> None:
    table = table_of(
        tmp_path / "t", BY_ROWS, NewestParts.strategy_id, table_type=table_type, partition_by="state"
    )  # fmt: skip
    for order, state in (("o1", "paid"), ("o2", "created"), ("o3", "lost")):
        table.upsert(orders.event(order, 1, state))
        table.upsert(orders.event(order, 2, state))
    opened = HudiTable.open(tmp_path / "t")

    assert opened.delete_partitions("paid").partitions == ("paid",)
    assert sorted(table.to_arrow(["order_id"])["order_id"].to_pylist()) == ["o2", "o3"]
    by_rows = orders.event("o9", 1, "lost")
    write_hudi(tmp_path / "t", by_rows, operation="delete_partition")
    assert table.to_arrow(["order_id"])["order_id"].to_pylist() == ["o2"]
    opened.delete_partitions(matching="*")
    assert table.to_arrow().num_rows == 0


@pytest.mark.thorough
def test_the_first_class_with_the_table_s_strategy_id_is_taken(tmp_path: Path) -> None:
    orders.run(tmp_path / "t")
    named = f"org.apache.hudi.HoodieSparkRecordMerger,{BY_ROWS},order_events:OrderEvents"

    opened = HudiTable.open(tmp_path / "t", options={CLASSES: named})

    assert opened.to_arrow(list(ORDERS[0])).sort_by("order_id").to_pylist() == ORDERS
    with pytest.raises(UnsupportedTable, match=r"none of .* has this id"):
        HudiTable.open(tmp_path / "t", options={CLASSES: BY_ROWS}).to_arrow()
    with pytest.raises(ConfigError, match=r"open takes options for reading; hoodie\.index\.type"):
        HudiTable.open(tmp_path / "t", options={"hoodie.index.type": "BLOOM"})


@pytest.mark.thorough
def test_a_class_named_in_the_table_s_files_is_never_imported(tmp_path: Path) -> None:
    orders.run(tmp_path / "t")
    evil = tmp_path / "evil_merger.py"
    evil.write_text("raise SystemExit('imported')\n")
    names = {
        CLASSES: "evil_merger:Merger",
        "hoodie.record.merge.custom.implementation.classes": "evil_merger:Merger",
        f"hoodie.record.merge.property.{CLASSES}": "evil_merger:Merger",
        "hoodie.compaction.payload.class": "evil_merger:Merger",
    }
    update_table_config(open_storage(tmp_path / "t"), names, ())
    sys.path.insert(0, str(tmp_path))
    try:
        with pytest.raises(UnsupportedTable):
            HudiTable.open(tmp_path / "t").to_arrow()
        with pytest.raises(UnsupportedTable):
            HudiTable.open(tmp_path / "t").upsert(orders.event("o1", 9, "paid"))
    finally:
        sys.path.remove(str(tmp_path))
    assert "evil_merger" not in sys.modules


def test_version_6_can_t_say_a_merger_of_your_own(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"hoodie[.]write[.]table[.]version=8 or 9"):
        table_of(tmp_path / "t", BY_ROWS, NewestParts.strategy_id, table_version=6)


def test_a_write_can_t_change_the_strategy(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t", BY_ROWS, NewestParts.strategy_id)

    with pytest.raises(ConfigError, match="was made with"):
        table.upsert(
            orders.event("o1", 1, "paid"),
            options={"hoodie.write.record.merge.strategy.id": orders.OrderEvents.strategy_id},
        )
    with pytest.raises(ConfigError, match="expected a UUID"):
        table_of(tmp_path / "u", BY_ROWS, "mine")


def test_rows_of_a_merged_table_don_t_move_between_partitions(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t", BY_ROWS, NewestParts.strategy_id, partition_by="state", index="GLOBAL_SIMPLE")
    table.upsert(orders.event("o1", 1, "created", order="x"), options={"hoodie.index.type": "GLOBAL_SIMPLE"})

    with pytest.raises(UnsupportedTable, match="another partition"):
        table.upsert(orders.event("o1", 2, "paid", payment="y"), options={"hoodie.index.type": "GLOBAL_SIMPLE"})
    assert table.to_arrow(["state"]).to_pylist() == [{"state": "created"}]
