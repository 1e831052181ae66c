"""Text that is not UTF-8 is refused before anything is written, by every door."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.errors import ConfigError
from pyhudi.keygen import KeyColumns
from tests.support.tables.small import TestTable, rows_of
from tests.support.values.not_text import WRONG, as_text, nested

MERGE_ON_READ = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.compact.inline": "false"}
KINDS = pytest.mark.parametrize("kind", [{}, MERGE_ON_READ], ids=["cow", "mor"])
START = rows_of(("a", "x", 1, 1), ("b", "x", 1, 2))


def with_column(name: str, column: Any) -> pa.Table:
    return START.set_column(START.schema.get_field_index(name), name, column)


@KINDS
@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert", "insert_overwrite", "insert_overwrite_table"])
@pytest.mark.parametrize("column", ["id", "p", "note"])
def test_no_write_takes_it_for_a_key_a_partition_or_a_value(operation: str, column: str, kind: dict[str, str]) -> None:
    table = TestTable(options=kind)
    wrong = as_text([b"a", WRONG])
    data = with_column(column, wrong) if column in START.column_names else START.append_column(column, wrong)

    with pytest.raises(ConfigError, match=f"Column '{column}', row 1 .*not UTF-8"):
        table.write(operation, data)
    assert table.memory.paths() == (), "a first write leaves no table"

    table.upsert(("a", "x", 1, 1))
    before = table.memory.paths()
    with pytest.raises(ConfigError, match="not UTF-8"):
        table.write(operation, data)
    assert table.memory.paths() == before


@pytest.mark.parametrize("name", nested(as_text([b"a"])))
def test_text_inside_of_other_types_is_refused_too(name: str) -> None:
    table = TestTable(options=MERGE_ON_READ)
    good, wrong = nested(as_text([b"a", b"b"])), nested(as_text([b"a", WRONG]))
    table.write("upsert", START.append_column("c", good[name]))
    before = table.memory.paths()

    with pytest.raises(ConfigError, match="Column 'c"):
        table.write("upsert", START.append_column("c", wrong[name]))

    assert table.memory.paths() == before


@pytest.mark.parametrize("operation", ["upsert", "bulk_insert"])
def test_a_stream_that_turns_out_not_to_be_text_is_undone(operation: str) -> None:
    table = TestTable()
    table.upsert(("a", "x", 1, 1))
    batches = [*rows_of(("k", "x", 1, 1)).to_batches(), *with_column("id", as_text([b"l", WRONG])).to_batches()]

    with pytest.raises(ConfigError, match="Column 'id', row 2"):
        table.write(operation, pa.RecordBatchReader.from_batches(batches[0].schema, batches))

    assert table.rows() == [("a", "x", 1, 1)]
    assert not table.meta.timeline.pending().instants


def test_a_delete_and_a_merge_refuse_it_in_their_rows() -> None:
    table = TestTable()
    table.write("upsert", START)
    before = table.memory.paths()

    with pytest.raises(ConfigError, match="Column 'id'"):
        table.write("delete", with_column("id", as_text([b"a", WRONG])))
    with pytest.raises(ConfigError, match="Column 'id'"):
        table.write("delete_partition", with_column("id", as_text([b"a", WRONG])))
    merge = HudiTable(table.meta).merge(with_column("p", as_text([b"x", WRONG])))
    with pytest.raises(ConfigError, match="Column 'p'"):
        merge.when_matched_update_all().execute()

    assert table.memory.paths() == before


@KINDS
def test_a_function_of_the_caller_s_can_not_bring_it_into_an_update(kind: dict[str, str]) -> None:
    table = TestTable(options=kind)
    table.write("upsert", START.append_column("note", pa.array(["n", "m"])))

    with pytest.raises(ConfigError, match="Column 'note'"):
        HudiTable(table.meta).update(set={"note": lambda rows: as_text([WRONG] * len(rows))})

    assert table.rows(["note"]) == [("m",), ("n",)]


class WrongKey:
    """A generator whose keys are no text."""

    def __init__(self, record_fields: tuple[str, ...], partition_fields: tuple[str, ...]) -> None:
        pass

    def columns(self, batch: pa.RecordBatch) -> KeyColumns:
        return KeyColumns(as_text([WRONG] * len(batch)), pa.array(["x"] * len(batch), pa.string()))


def test_a_generator_of_one_s_own_can_not_make_such_keys() -> None:
    own = {"hoodie.datasource.write.keygenerator.class": "tests.actions.test_not_text:WrongKey"}
    with pytest.raises(ConfigError, match=r"'record_key', row 0 .*not UTF-8"):
        TestTable(options=own).write("upsert", START)
