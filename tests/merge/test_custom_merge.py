"""Users' mergers: their input, and the checks of their answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from pyhudi.errors import ConfigError, UnsupportedTable
from pyhudi.merge.base import Place
from pyhudi.merge.custom import MergeContext, Merged, RowMerger
from pyhudi.merge.pairs import pair_merger
from pyhudi.merge.rules import MergeRules
from pyhudi.merge.versions import Versions
from pyhudi.model.keys import RECORD_KEY

SCHEMA = pa.schema([(RECORD_KEY, pa.string()), ("seq", pa.int64())])


class Unfinished(RowMerger):
    """Has no method of its own."""

    strategy_id = "99999999-0000-2222-3333-444444444444"


class SumOfRows(RowMerger):
    """Adds `seq` up."""

    strategy_id = "99999999-1111-2222-3333-444444444444"

    def merge(
        self, older: dict[str, object] | None, newer: dict[str, object] | None, context: MergeContext
    ) -> dict[str, object] | None:
        assert older is not None
        assert newer is not None
        return {**newer, "seq": int(str(older["seq"])) + int(str(newer["seq"]))}


class Odd:
    """Returns the answer that its property names."""

    strategy_id = "99999999-2222-2222-3333-444444444444"

    def merge(self, older: pa.RecordBatch, newer: pa.RecordBatch, context: MergeContext) -> object:
        answers = {
            "no rows": None,
            "fewer": newer.slice(1),
            "more": pa.concat_batches([older, newer]),
            "other columns": newer.rename_columns(["other"]),
            "other types": newer.set_column(0, "seq", pa.array(["x"] * len(newer))),
            "no ordering value": newer.set_column(0, "seq", pa.nulls(len(newer), pa.int64())),
            "deletes of fewer": Merged(newer, pa.array([False])),
        }
        return answers[context.properties["answer"]]


def versions(*numbers: int, deleted: int = -1) -> Versions:
    rows = [{RECORD_KEY: f"k{place}", "seq": number} for place, number in enumerate(numbers)]
    table = pa.Table.from_pylist(rows, SCHEMA)
    return Versions(table, np.arange(len(rows)) == deleted, (table.column("seq").combine_chunks(),))


def rules(name: str) -> MergeRules:
    return MergeRules("EVENT_TIME_ORDERING", ("seq",), merger=f"{__name__}:{name}")


def test_a_merger_without_a_method_merge_is_an_error_and_deletes_nothing() -> None:
    with pytest.raises(TypeError, match="Unfinished has no method merge"):
        pair_merger(rules("Unfinished")).merge(versions(1), versions(2), Place.FILE)


def test_pairs_with_a_delete_are_decided_without_the_merger_and_all_others_by_it() -> None:
    merged = pair_merger(rules("SumOfRows")).merge(versions(1, 2, 3), versions(10, 20, 30, deleted=1), Place.FILE)

    assert merged.is_delete.tolist() == [False, True, False]
    assert [merged.rows.column("seq").to_pylist()[place] for place in (0, 2)] == [11, 33]
    assert [merged.ordering[0].to_pylist()[place] for place in (0, 2)] == [11, 33]


@pytest.mark.parametrize("newer_lacks", [True, False])
def test_versions_that_lack_columns_are_not_shown_to_a_merger_of_whole_rows(newer_lacks: bool) -> None:
    whole, part = versions(1), replace(versions(2), absent={"seq": np.array([True])})
    pair = (whole, part) if newer_lacks else (part, whole)
    with pytest.raises(UnsupportedTable, match=r"partial updates.*SumOfRows can't merge"):
        pair_merger(rules("SumOfRows")).merge(*pair, Place.SLICE)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("no rows", "it returned NoneType, expected"),
        ("fewer", "it returned 1 rows for 2 pairs"),
        ("more", "it returned 4 rows for 2 pairs"),
        ("other columns", r"it returned the columns \['other'\], expected \['seq'\]"),
        ("other types", "its rows don't have the table's types"),
        ("no ordering value", "it returned rows without a value of the ordering field 'seq'"),
        ("deletes of fewer", "is_delete has 1 values for 2 pairs"),
    ],
)
def test_an_answer_that_does_not_fit_the_pairs_is_refused_with_what_is_wrong(answer: str, message: str) -> None:
    asked = replace(rules("Odd"), properties=(("answer", answer),))
    with pytest.raises(ConfigError, match=rf"The merger {__name__}:Odd can't be used: {message}"):
        pair_merger(asked).merge(versions(1, 2), versions(10, 20), Place.FILE)
