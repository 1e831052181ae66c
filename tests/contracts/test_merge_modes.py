"""What every merge mode and every merger promises: associative, deletes taken whole, ordering values kept."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi import ConfigError
from pyhudi.merge import MERGE_MODES
from pyhudi.merge.base import Place
from pyhudi.merge.combine import ordering_columns
from pyhudi.merge.custom import Merged
from pyhudi.merge.pairs import combine_input, pair_merger
from pyhudi.merge.rules import FILL_UNAVAILABLE, IGNORE_DEFAULTS, MergeRules
from pyhudi.merge.versions import PairMerger, Versions, merge_versions
from pyhudi.model.keys import ARRIVAL, IS_DELETE, PARTITION_PATH, RECORD_KEY
from tests.support.sweeps import examples
from tests.support.values.mergers import SCHEMA, NewestParts


class NothingAfterCancelled:
    """Deletes orders that are cancelled; sees deletes, and lets them be final."""

    strategy_id = "0d3f2c44-90f1-4f1f-8c7e-55b1b7a1c002"
    sees_deletes = True

    def merge(self, older: pa.RecordBatch, newer: pa.RecordBatch, context: Any) -> Merged:
        wins = pc.greater_equal(pc.fill_null(newer["seq"], -1), pc.fill_null(older["seq"], -1))
        rows = [pc.if_else(wins, newer[name], older[name]) for name in older.schema.names]
        gone = pc.or_(context.older_is_delete, context.newer_is_delete)
        for side in (older, newer):
            gone = pc.or_(gone, pc.fill_null(pc.equal(side["state"], "cancelled"), False))
        return Merged(pa.RecordBatch.from_arrays(rows, schema=older.schema), gone)


STORED = pa.schema([pa.field(RECORD_KEY, pa.string()), *SCHEMA])
MODES = {name: MergeRules(name, ("seq",)) for name in MERGE_MODES.entries}
RULES: dict[str, MergeRules] = {
    **MODES,
    "event time, two fields": MergeRules("EVENT_TIME_ORDERING", ("seq", "order_seq")),
    "event time, first wins": MergeRules("EVENT_TIME_ORDERING", ("seq",), first_wins=True),
}
MERGERS = {
    "the example": MergeRules("EVENT_TIME_ORDERING", ("seq",), merger="order_events:OrderEvents"),
    "the example, by rows": MergeRules("EVENT_TIME_ORDERING", ("seq",), merger=f"{NewestParts.__module__}:NewestParts"),
}
# What rows that fill each other promise is less, in real Hudi as well: a delete takes no columns along that a row would
# have filled, and a merged row has one ordering value for columns of several versions.
FILLING = {
    "commit time, ignore defaults": MergeRules("COMMIT_TIME_ORDERING", ("seq",), IGNORE_DEFAULTS),
    "event time, ignore defaults": MergeRules("EVENT_TIME_ORDERING", ("seq",), IGNORE_DEFAULTS),
    "event time, fill unavailable": MergeRules("EVENT_TIME_ORDERING", ("seq",), FILL_UNAVAILABLE, "cancelled"),
}


ALL = {**RULES, **MERGERS, **FILLING}
# A version is a choice of few values and an example holds up to eight pairs or triples, so fifty are hundreds of them.
EXAMPLES = settings(deadline=None, max_examples=examples(50))


def numbers() -> st.SearchStrategy[int | None]:
    return st.none() | st.integers(0, 3)


@st.composite
def a_version(draw: st.DrawFn, deletes: bool = True) -> dict[str, Any]:
    order, payment = draw(numbers()), draw(numbers())
    return {
        "order_id": "o",
        "seq": draw(st.integers(1, 4)),
        "state": draw(st.sampled_from(["created", "paid", "cancelled"])),
        "order_info": None if order is None else f"order {order}",
        "order_seq": order,
        "payment_info": None if payment is None else f"payment {payment}",
        "payment_seq": payment,
        IS_DELETE: deletes and draw(st.booleans()),
    }


def three(deletes: bool = True) -> st.SearchStrategy[list[list[dict[str, Any]]]]:
    """Triples of versions of one key, in order of arrival."""
    return st.lists(st.lists(a_version(deletes), min_size=3, max_size=3), min_size=1, max_size=8)


def versions(rows: Sequence[dict[str, Any]], rules: MergeRules) -> Versions:
    deletes = np.array([row[IS_DELETE] for row in rows], np.bool_)
    plain = [{RECORD_KEY: "o", **{k: v for k, v in row.items() if k != IS_DELETE}} for row in rows]
    ordering = tuple(ordering_columns(pa.Table.from_pylist(plain, STORED), rules.ordering_fields))
    bare = [{RECORD_KEY: "o"} if gone else row for gone, row in zip(deletes, plain, strict=True)]
    return Versions(pa.Table.from_pylist(bare, STORED), deletes, ordering if rules.by_ordering else ())


def content_of(found: Versions) -> list[Any]:
    """What a reader can see of merged versions: rows, deletes, ordering values."""
    rows = found.rows.to_pylist()
    values = [column.to_pylist() for column in found.ordering]
    return [
        (bool(gone), None if gone else rows[i], [column[i] for column in values])
        for i, gone in enumerate(found.is_delete)
    ]


def check_associative(rules: MergeRules, triples: list[list[dict[str, Any]]]) -> None:
    merger: PairMerger = pickle.loads(pickle.dumps(pair_merger(rules)))
    a, b, c = (versions([triple[i] for triple in triples], rules) for i in range(3))

    left = merger.merge(merger.merge(a, b, Place.LOGS), c, Place.LOGS)
    right = merger.merge(a, merger.merge(b, c, Place.LOGS), Place.LOGS)

    assert content_of(left) == content_of(right)


@pytest.mark.parametrize("name", RULES)
@given(triples=three())
@EXAMPLES
def test_it_does_not_matter_in_which_groups_versions_are_merged(name: str, triples: Any) -> None:
    check_associative(RULES[name], triples)


@pytest.mark.thorough
@pytest.mark.parametrize("name", MERGERS)
@given(triples=three(deletes=False))
@EXAMPLES
def test_nor_for_rows_that_a_merger_puts_together(name: str, triples: Any) -> None:
    check_associative(MERGERS[name], triples)


@pytest.mark.thorough
@pytest.mark.parametrize("name", FILLING)
@given(triples=three(deletes=False))
@EXAMPLES
def test_nor_for_rows_that_fill_each_other_and_come_in_the_order_of_their_values(name: str, triples: Any) -> None:
    check_associative(FILLING[name], [sorted(triple, key=lambda row: row["seq"]) for triple in triples])


@pytest.mark.thorough
@pytest.mark.parametrize("name", ALL)
@given(pairs=st.lists(st.tuples(a_version(), a_version()), min_size=1, max_size=8))
@EXAMPLES
def test_a_merged_row_keeps_an_ordering_value_that_one_of_the_two_had(name: str, pairs: Any) -> None:
    rules = ALL[name]
    older, newer = (versions([pair[i] for pair in pairs], rules) for i in range(2))

    merged = pair_merger(rules).merge(older, newer, Place.LOGS)

    for i, (first, second) in enumerate(pairs):
        allowed = {first["seq"], second["seq"]}
        if not merged.is_delete[i]:
            assert merged.rows.column("seq")[i].as_py() in allowed
        if rules.by_ordering:
            assert merged.ordering[0][i].as_py() in allowed
        if first[IS_DELETE] and second[IS_DELETE]:
            assert merged.is_delete[i]
        if rules.by_ordering and not rules.first_wins and second[IS_DELETE] and second["seq"] > first["seq"]:
            assert merged.is_delete[i]


@pytest.mark.thorough
@pytest.mark.parametrize("name", ALL)
@given(rows=st.lists(st.tuples(st.sampled_from("abc"), a_version()), min_size=1, max_size=12))
@EXAMPLES
def test_combining_a_batch_is_merging_its_versions(name: str, rows: Any) -> None:
    rules = ALL[name]
    keys, plain = zip(*rows, strict=True)
    schema = pa.schema([*SCHEMA, (RECORD_KEY, pa.string()), (PARTITION_PATH, pa.string()), (IS_DELETE, pa.bool_())])
    batch = pa.Table.from_pylist(
        [{**row, RECORD_KEY: key, PARTITION_PATH: ""} for key, row in rows], schema
    ).append_column(ARRIVAL, pa.array(range(len(rows))))

    combined = {row[RECORD_KEY]: row for row in combine_input(batch, rules).to_pylist()}

    first, merged = merge_versions(pa.array(keys), versions(plain, rules), pair_merger(rules), Place.INPUT)
    assert sorted(combined) == sorted(set(keys))
    for at, version in zip(first, range(len(merged)), strict=True):
        found = combined[keys[at]]
        assert found[IS_DELETE] == merged.is_delete[version]
        if not merged.is_delete[version]:
            wanted = merged.rows.slice(version, 1).to_pylist()[0]
            assert {name: found[name] for name in SCHEMA.names} == {name: wanted[name] for name in SCHEMA.names}


@pytest.mark.thorough
def test_a_merger_that_sees_deletes_decides_them_but_not_deletes_by_key() -> None:
    rules = MergeRules("EVENT_TIME_ORDERING", ("seq",), merger=f"{__name__}:NothingAfterCancelled")
    row: dict[str, Any] = {"order_id": "o", "seq": 5, "state": "created", IS_DELETE: False}
    older = versions([{**row, IS_DELETE: True, "seq": 1}, {**row, IS_DELETE: True}, row, row], rules)
    newer = versions([row, row, {**row, "state": "cancelled"}, {**row, "seq": 6}], rules)
    by_key = pa.array([1, None, 5, 5], pa.int64())

    merged = pair_merger(rules).merge(Versions(older.rows, older.is_delete, (by_key,)), newer, Place.LOGS)

    assert merged.is_delete.tolist() == [True, False, True, False]


def merger_answering(answer: Any, **attributes: Any) -> MergeRules:
    """Rules whose merger returns what `answer(older, newer)` says."""
    name = f"Answering{next(_COUNTER)}"
    body = {"strategy_id": "x", "merge": lambda self, older, newer, context: answer(older, newer), **attributes}
    globals()[name] = type(name, (), body)
    return MergeRules("EVENT_TIME_ORDERING", ("seq",), merger=f"{__name__}:{name}", record_key_fields=("order_id",))


_COUNTER = itertools.count()


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (lambda older, newer: newer.slice(1), "1 rows for 2 pairs"),
        (lambda older, newer: newer.select(["order_id", "seq"]), "returned the columns"),
        (lambda older, newer: newer.to_pylist(), "returned list"),
        (lambda older, newer: newer.set_column(1, "seq", pa.nulls(2, pa.int64())), "without a value of the ordering"),
        (lambda older, newer: newer.set_column(1, "seq", pa.array(["x", "y"])), "table's types"),
        (lambda older, newer: newer.set_column(0, "order_id", pa.array(["x", "y"])), "changed the key column"),
        (lambda older, newer: Merged(newer, pa.array([True])), "is_delete has 1 values for 2 pairs"),
    ],
)
def test_an_answer_that_is_no_answer_is_refused(answer: Any, complaint: str) -> None:
    rules = merger_answering(answer)
    pair = versions([{"order_id": "o", "seq": 1, IS_DELETE: False}] * 2, rules)

    with pytest.raises(ConfigError, match=complaint):
        pair_merger(rules).merge(pair, pair, Place.LOGS)


@pytest.mark.thorough
def test_a_class_that_is_no_merger_is_refused_by_name() -> None:
    for path, complaint in (("os:path", "not a record merger"), ("nowhere_at_all:X", "can't be imported")):
        with pytest.raises(ConfigError, match=complaint):
            pair_merger(MergeRules(merger=path)).merge(
                versions([{"order_id": "o", "seq": 1, IS_DELETE: False}], MergeRules()),
                versions([{"order_id": "o", "seq": 1, IS_DELETE: False}], MergeRules()),
                Place.LOGS,
            )
