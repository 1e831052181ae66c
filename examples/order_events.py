"""Orders that two services write: a custom merger puts their parts together.

One service writes `order_info`, the other `payment_info`, both the order's `state`; their events come late and in any
order. The merged row has the newest state, and the newest part of each service:

    created   order_info, no payment_info      seq 1
    cancelled no order_info, payment_info      seq 3      →  cancelled with both

Run it: `python examples/order_events.py [folder]`
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi import HudiTable
from pyhudi.merge.custom import MergeContext

SCHEMA = pa.schema(
    [
        ("order_id", pa.string()),
        ("seq", pa.int64()),
        ("state", pa.string()),
        ("order_info", pa.string()),
        ("order_seq", pa.int64()),
        ("payment_info", pa.string()),
        ("payment_seq", pa.int64()),
    ]
)
PARTS = ("order", "payment")


class OrderEvents:
    """The row with the greater `seq` wins; each service's part is the newest that it sent.

    A part carries its own sequence number, so that it doesn't matter in which groups versions are merged: the rule is
    associative.
    """

    strategy_id = "7d0e2f6c-54a1-4f0b-9a86-3f1c1b1f6a52"

    def merge(self, older: pa.RecordBatch, newer: pa.RecordBatch, context: MergeContext) -> pa.RecordBatch:
        newer_wins = _is_later(older["seq"], newer["seq"])
        columns = {name: pc.if_else(newer_wins, newer[name], older[name]) for name in ("order_id", "seq", "state")}
        for part in PARTS:
            later = _is_later(older[f"{part}_seq"], newer[f"{part}_seq"])
            for name in (f"{part}_info", f"{part}_seq"):
                columns[name] = pc.if_else(later, newer[name], older[name])
        return pa.RecordBatch.from_pydict({name: columns[name] for name in older.schema.names}, schema=older.schema)


def _is_later(older: pa.Array, newer: pa.Array) -> pa.Array:
    """Is the newer side's number there, and not smaller? No number is smaller than every number."""
    return pc.fill_null(pc.greater_equal(newer, older), newer.is_valid())


def event(order_id: str, seq: int, state: str, *, order: str | None = None, payment: str | None = None) -> pa.Table:
    """One event of one of the services."""
    row = {"order_id": order_id, "seq": seq, "state": state, "order_info": order, "payment_info": payment}
    row |= {"order_seq": None if order is None else seq, "payment_seq": None if payment is None else seq}
    return pa.Table.from_pylist([row], SCHEMA)


def run(folder: Path, table_type: str = "MERGE_ON_READ") -> pa.Table:
    """Make the table, write the events of both services, return the orders."""
    table = HudiTable.create(
        folder,
        SCHEMA,
        record_key="order_id",
        ordering="seq",
        table_type=table_type,
        options={
            "hoodie.write.record.merge.mode": "CUSTOM",
            "hoodie.write.record.merge.strategy.id": OrderEvents.strategy_id,
            # A class is always named by the caller; the table stores the id only.
            "hoodie.write.record.merge.custom.implementation.classes": f"{__name__}:OrderEvents",
        },
    )
    table.upsert(event("o1", 1, "created", order="2 chairs"))
    table.upsert(event("o1", 3, "cancelled", payment="card declined"))
    table.upsert(event("o1", 2, "changed", order="3 chairs"))  # late: the state stays, the order's part is newer
    table.upsert(pa.concat_tables([event("o2", 1, "created", order="1 lamp"), event("o2", 2, "paid", payment="card")]))
    return table.to_arrow(["order_id", "state", "order_info", "payment_info"]).sort_by("order_id")


if __name__ == "__main__":
    place = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()) / "orders"
    for order in run(place).to_pylist():
        print(order)
