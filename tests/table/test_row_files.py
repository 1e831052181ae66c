"""Rows of files come into a table as the files have them, or are refused. Source: docs/cli.md, "Files"."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable, write_hudi
from pyhudi.cli.main import main
from pyhudi.errors import ConfigError, HudiError, SchemaMismatch
from pyhudi.table.row_files import RowFiles

MOMENT = datetime(2024, 1, 5, 1, 4, 5, tzinfo=timezone.utc)
VALUES = pa.schema(
    {
        "id": pa.int64(),
        "price": pa.decimal128(20, 2),
        "day": pa.date32(),
        "at": pa.timestamp("us", "UTC"),
        "local": pa.timestamp("us"),
        "raw": pa.binary(),
        "ratio": pa.float64(),
        "text": pa.string(),
        "tags": pa.list_(pa.string()),
        "marks": pa.map_(pa.string(), pa.decimal128(10, 2)),
        "addr": pa.struct({"zip": pa.string(), "since": pa.date32()}),
    }
)
ROWS = [
    {
        "id": 1,
        "price": Decimal("123456789012345678.25"),
        "day": date(2024, 1, 5),
        "at": MOMENT,
        "local": datetime(2024, 1, 5, 3, 4, 5, 123456),
        "raw": b"\x00\xff",
        "ratio": float("inf"),
        "text": 'a "b",\nc',
        "tags": ["x", None],
        "marks": [("m", Decimal("1.10"))],
        "addr": {"zip": "00123", "since": date(2023, 1, 1)},
    },
    dict.fromkeys(VALUES.names) | {"id": 2, "text": ""},
]
Rows = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def rows(tmp_path: Path) -> Rows:
    """`rows("a.csv", content, schema)`: the rows of a file with this content."""

    def read(name: str, content: str | bytes, schema: pa.Schema | None = None, **more: str) -> list[dict[str, Any]]:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return RowFiles.of([path], **more).read(schema).read_all().to_pylist()

    return read


def refused(rows: Rows, kind: type[HudiError], words: str, *arguments: Any) -> None:
    with pytest.raises(kind, match=words):
        rows(*arguments)


def test_a_column_that_first_comes_in_the_last_of_many_lines_is_read(rows: Rows) -> None:
    lines = [json.dumps({"id": number}) for number in range(70_000)] + ['{"id": 70000, "late": "x"}']
    schema = pa.schema({"id": pa.int64(), "late": pa.string(), "absent": pa.string()})

    for known in (None, schema):
        read = rows("a.jsonl", "\n".join(lines), known)
        assert len(read) == 70_001
        assert read[0] == {"id": 0, "late": None}
        assert read[-1] == {"id": 70_000, "late": "x"}


def test_all_rows_of_an_array_decide_which_columns_there_are_and_their_types(rows: Rows) -> None:
    content = '[{"id": 1}, {"id": 2, "v": null}, {"id": 3, "v": 1, "w": {"a": 1}}, {"id": 4.5, "w": {"b": "x"}}]'

    assert rows("a.json", content) == [
        {"id": 1.0, "v": None, "w": None},
        {"id": 2.0, "v": None, "w": None},
        {"id": 3.0, "v": 1, "w": {"a": 1, "b": None}},
        {"id": 4.5, "v": None, "w": {"a": None, "b": "x"}},
    ]


def test_types_of_json_are_those_of_all_blocks_of_lines(rows: Rows) -> None:
    lines = [json.dumps({"id": number, "v": {"a": 1}}) for number in range(65_536)] + ['{"id": 0.5, "v": {"b": []}}']

    read = rows("a.jsonl", "\n".join(lines))

    assert read[65_535] == {"id": 65_535.0, "v": {"a": 1, "b": None}}
    assert read[-1] == {"id": 0.5, "v": {"a": None, "b": []}}


@pytest.mark.parametrize("form", ["json", "csv"])
def test_what_the_command_line_prints_can_be_written_again(
    tmp_path: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table = HudiTable.create(tmp_path / "t", VALUES, record_key="id")
    table.upsert(pa.Table.from_pylist(ROWS, VALUES))
    other = HudiTable.create(tmp_path / "other", table.schema(), record_key="id")

    assert main(["head", str(table.path), f"--{form}"]) == 0
    file = tmp_path / f"rows.{form}"
    file.write_text(capsys.readouterr().out)
    assert main(["write", str(other.path), str(file)]) == 0

    read = sorted(HudiTable.open(other.path).head().to_pylist(), key=lambda row: row["id"])
    assert read == sorted(table.head().to_pylist(), key=lambda row: row["id"])
    assert read[0] == ROWS[0]
    assert read[1] == ROWS[1]


def test_an_exported_csv_file_can_be_written_again(tmp_path: Path) -> None:
    table = HudiTable.create(tmp_path / "t", VALUES, record_key="id")
    table.upsert(pa.Table.from_pylist(ROWS, VALUES))
    table.export(tmp_path / "rows.csv")

    read = RowFiles.of([tmp_path / "rows.csv"]).read(table.schema()).read_all()

    assert sorted(read.to_pylist(), key=lambda row: row["id"]) == ROWS


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("at", '"2024-01-05T03:04:05"'),
        ("at", "1704423845000"),
        ("local", '"2024-01-05T03:04:05+02:00"'),
        ("day", '"2024-01-05T03:04:05"'),
        ("price", "1.555"),
        ("price", '"x"'),
        ("raw", '"zz"'),
        ("ratio", '"one"'),
        ("ratio", "true"),
        ("ratio", "1e400"),
        ("tags", "[-1e999]"),
        ("id", "1.5"),
        ("tags", '"x"'),
        ("addr", '{"since": 3}'),
    ],
)
def test_a_value_of_json_that_is_no_value_of_the_column_is_refused_by_the_columns_name(
    rows: Rows, column: str, value: str
) -> None:
    content = '{"id": 1, "%s": %s}' % (column, value)  # noqa: UP031

    refused(rows, SchemaMismatch, f"Column '{column}'", "a.json", content.replace('"id": 1, "id"', '"id"'), VALUES)


def test_numbers_beyond_all_floats_are_refused_and_infinity_by_name_is_not(rows: Rows) -> None:
    assert rows("a.json", '{"a": Infinity, "c": 1.5}') == [{"a": math.inf, "c": 1.5}]
    for number in ("1e400", "[-1e400]", '{"x": 1e999}'):
        refused(rows, SchemaMismatch, "is beyond all numbers of the type", "b.json", f'{{"a": {number}}}')


def test_a_field_that_a_struct_of_the_table_does_not_have_comes_as_a_new_one(rows: Rows) -> None:
    schema = pa.schema({"id": pa.int64(), "addr": pa.struct({"zip": pa.string()})})
    lines = ['{"id": 1, "addr": {"zip": "1"}}'] * 65_536 + ['{"id": 2, "addr": {"zip": "2", "town": "x"}}']

    assert rows("a.jsonl", "\n".join(lines), schema)[-1]["addr"] == {"zip": "2", "town": "x"}


def test_a_zone_in_a_timestamp_of_json_counts(rows: Rows) -> None:
    schema = pa.schema({"at": pa.timestamp("us", "UTC"), "all": pa.list_(pa.timestamp("us", "UTC"))})
    content = '{"at": "2024-01-05T03:04:05+02:00", "all": ["2024-01-05T03:04:05+02:00", "2024-01-05T01:04:05Z"]}'

    assert rows("a.json", content, schema) == [{"at": MOMENT, "all": [MOMENT, MOMENT]}]
    assert rows("b.json", content)[0]["at"] == "2024-01-05T03:04:05+02:00"
    assert rows("a.csv", "at\n2024-01-05T03:04:05+02:00\n") == [{"at": MOMENT}]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"id": 1}\n{"id": \n', "line 2: no JSON"),
        ('{"id": 1}\n5\n', "line 2: a row is an object"),
        ('[{"id": 1}, 5]', "element 2: a row is an object"),
        ('[{"id": 1}', "no JSON"),
        ('{"id": 1, "id": 2}', "the name 'id' twice"),
        ("[" * 100_000, "nested too deeply|no JSON"),
        ('{"id": "Zürich"}'.encode("latin-1"), "not in the encoding utf-8"),
    ],
)
def test_what_is_no_json_is_refused_with_its_place(rows: Rows, content: str, words: str) -> None:
    refused(rows, ConfigError, words, "a.json", content)


def test_a_column_of_several_types_is_refused_by_its_name(rows: Rows) -> None:
    refused(rows, SchemaMismatch, "'v'", "a.json", '[{"v": 1}, {"v": "x"}]')
    lines = ['{"v": 1}'] * 65_536 + ['{"v": "x"}']
    refused(rows, SchemaMismatch, "v has incompatible types", "a.jsonl", "\n".join(lines))


def test_texts_of_another_encoding_are_refused_until_it_is_named(rows: Rows) -> None:
    for name, text in (("a.csv", "id,city\n1,Zürich\n"), ("a.json", '{"id": 1, "city": "Zürich"}')):
        latin = text.encode("latin-1")
        refused(rows, ConfigError, "encoding='latin-1'", name, latin)
        assert rows(name, latin, encoding="latin-1") == [{"id": 1, "city": "Zürich"}]
        assert rows(name, b"\xef\xbb\xbf" + text.encode()) == [{"id": 1, "city": "Zürich"}]
    refused(rows, ConfigError, "encoding='latin-1'", "a.csv", "id,größe\n1,2\n".encode("latin-1"))


def test_an_encoding_that_is_not_known_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id\n1\n")

    with pytest.raises(ConfigError, match="encoding takes"):
        RowFiles.of([tmp_path / "a.csv"], encoding="klingon")


def test_in_csv_a_quoted_empty_field_is_a_text_and_no_word_is_null(rows: Rows) -> None:
    content = 'id,code,n\n1,"",""\n2,,\n3,NA,3\n4,"null",4\n'
    expected = [("", None), (None, None), ("NA", 3), ("null", 4)]

    for schema in (None, pa.schema({"id": pa.int64(), "code": pa.string(), "n": pa.int64()})):
        assert [(row["code"], row["n"]) for row in rows("a.csv", content, schema)] == expected
    assert rows("b.csv", 'id,v\n1,""\n') == [{"id": 1, "v": ""}]


@pytest.mark.parametrize(
    ("fields", "values"),
    [
        (["00123", "5"], ["00123", "5"]),
        (["5", "00123"], ["5", "00123"]),
        (["0", "10"], [0, 10]),
        (["0.5", "-1"], [0.5, -1.0]),
        (["12345678901234567890", "1"], ["12345678901234567890", "1"]),
        (["1234567890123456", "1.5"], ["1234567890123456", "1.5"]),
        (["0x1F", "0x2A"], ["0x1F", "0x2A"]),
        (["+4930123", "5"], ["+4930123", "5"]),
        ([" 00123", "5"], [" 00123", "5"]),
        (["1e400", "5"], ["1e400", "5"]),
        (["true", "False"], [True, False]),
        (["1", "true"], ["1", "true"]),
        (["2024-01-05", "2024-01-06"], [date(2024, 1, 5), date(2024, 1, 6)]),
        (["2024-01-05", "later"], ["2024-01-05", "later"]),
        (["2024-01-05T03:04:05"], [datetime(2024, 1, 5, 3, 4, 5)]),
        (["2024-01-05T03:04:05+02:00", "2024-01-05T01:04:05Z"], [MOMENT, MOMENT]),
        (["2024-01-05T03:04:05Z", "2024-01-05T03:04:05"], ["2024-01-05T03:04:05Z", "2024-01-05T03:04:05"]),
    ],
)
def test_a_column_of_csv_has_the_narrowest_type_that_keeps_all_its_fields(
    rows: Rows, fields: list[str], values: list[object]
) -> None:
    assert [row["v"] for row in rows("a.csv", "\n".join(["v,w", *(f"{one}," for one in fields)]))] == values


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        (pa.int64(), "0x1F"),
        (pa.int32(), " 0X1"),
        (pa.float64(), "9007199254740993"),
        (pa.float32(), "16777217"),
        (pa.float64(), "-1e400"),
    ],
)
def test_a_field_of_csv_that_its_column_would_change_is_refused(rows: Rows, kind: pa.DataType, field: str) -> None:
    schema = pa.schema({"id": pa.int64(), "n": kind})
    refused(rows, SchemaMismatch, "Column 'n'.*would become another number", "a.csv", f"id,n\n1,{field}\n", schema)
    kept = rows("b.csv", "id,n\n1,\n2,7\n3,+007\n", schema) if pa.types.is_floating(kind) else []
    assert [row["n"] for row in kept] in ([], [None, 7.0, 7.0])


@pytest.mark.parametrize("keys", [["1.1", "1.10"], ["1e2", "100"], ["true", "TRUE"], ["1", "+1"], ["1", " 1"]])
def test_keys_of_csv_that_are_different_texts_stay_different_rows(tmp_path: Path, keys: list[str]) -> None:
    (tmp_path / "a.csv").write_text("\n".join(["id,price", *(f"{key},1.5" for key in keys)]))
    assert main(["write", str(tmp_path / "t"), str(tmp_path / "a.csv"), "--record-key", "id"]) == 0

    rows = HudiTable.open(tmp_path / "t").scan(["id", "price"]).to_arrow()
    assert sorted(rows.column("id").to_pylist()) == sorted(keys)
    assert rows.column("price").to_pylist() == [1.5, 1.5]


def test_keys_of_csv_that_are_integers_or_dates_are_such_columns(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,day\n1,2024-01-05\n-20,2024-01-06\n")
    write_hudi(tmp_path / "t", RowFiles.of([tmp_path / "a.csv"]), record_key=["id", "day"])

    assert HudiTable.open(tmp_path / "t").schema().types == [pa.int64(), pa.date32()]


def test_rows_beyond_the_first_block_of_csv_decide_too(rows: Rows) -> None:
    lines = [f"{number},5," for number in range(200_000)] + ["200000,00123,x"]

    read = rows("a.csv", "\n".join(["id,code,late", *lines]))

    assert read[0] == {"id": 0, "code": "5", "late": None}
    assert read[-1] == {"id": 200_000, "code": "00123", "late": "x"}


def test_files_of_one_write_decide_their_types_together(tmp_path: Path) -> None:
    for name, content in (("a.csv", "id,v\n1,5\n"), ("b.csv", "v,id\n1.50,2\n00123,3\n"), ("c.json", '{"id": 1}')):
        (tmp_path / name).write_text(content)

    both = RowFiles.of([tmp_path / "a.csv", tmp_path / "b.csv"]).read(None).read_all()

    assert both.to_pylist() == [{"id": 1, "v": "5"}, {"id": 2, "v": "1.50"}, {"id": 3, "v": "00123"}]
    with pytest.raises(SchemaMismatch, match=r"c\.json: its columns id differ from those of the first file"):
        RowFiles.of([tmp_path / "a.csv", tmp_path / "c.json"]).read(None)


def test_csv_that_can_not_be_read_is_refused_with_the_files_name(rows: Rows) -> None:
    refused(rows, SchemaMismatch, "a.csv has several columns called 'v'", "a.csv", "id,v,v\n1,2,3\n")
    refused(rows, ConfigError, "a.csv can't be read as CSV", "a.csv", "id,v\n1,2,3\n")
    refused(rows, ConfigError, "a.csv can't be read as CSV", "a.csv", "")
    refused(rows, SchemaMismatch, "Column 'id'.*'x'", "a.csv", "id\nx\n", VALUES)
    refused(rows, SchemaMismatch, "Column 'addr' is nested", "a.csv", "id,addr\n1,x\n", VALUES)


def test_a_table_that_is_replaced_gives_no_types(tmp_path: Path) -> None:
    write_hudi(tmp_path / "t", {"id": [1], "v": [1]}, record_key="id")
    (tmp_path / "a.csv").write_text("id,v\na,x\n")

    words = ["write", str(tmp_path / "t"), str(tmp_path / "a.csv"), "--mode", "replace", "--record-key", "id"]
    assert main(words) == 0

    assert HudiTable.open(tmp_path / "t").head().to_pylist() == [{"id": "a", "v": "x"}]


def test_nothing_is_written_where_a_row_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"id": 1}\n{"id": 1, "at": "today"}\n')))

    assert main(["write", str(tmp_path / "t"), "-", "--format", "json", "--record-key", "id"]) == 0
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"id": 1}\n{"id": 2\n')))
    assert main(["write", str(tmp_path / "t"), "-", "--format", "json"]) == 1

    assert HudiTable.open(tmp_path / "t").head().to_pylist() == [{"id": 1, "at": "today"}]


def test_columns_of_one_name_are_refused_as_json_and_stand_side_by_side_as_csv(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("duckdb")

    assert main(["query", "SELECT 1 AS a, 2 AS a", "--json"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "Several columns are called 'a'" in err
    assert main(["query", "SELECT 1 AS a, 2 AS a", "--csv"]) == 0
    assert capsys.readouterr().out == "a,a\n1,2\n"


PARTS = pa.schema({"id": pa.int64(), "addr": pa.struct({"zip": pa.string(), "since": pa.date32()})})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", '{"id": 1, "addr": null}\n{"id": 2, "addr": {"zip": "9"}}\n{"id": 3, "addr": null}\n'),
        ("a.csv", 'id,addr\n1,\n2,"{""zip"": ""9""}"\n3,\n'),
    ],
)
def test_a_field_that_no_row_of_a_file_names_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    monkeypatch.setattr("pyhudi.table.row_files.json_rows._BLOCK_ROWS", 2)
    file = tmp_path / name
    file.write_text(text)
    table = HudiTable.create(tmp_path / "t", PARTS, record_key="id")
    with pytest.raises(SchemaMismatch, match=r"column 'addr\.since' \(date32\[day\]\): missing in the data"):
        table.upsert(RowFiles.of([file]))
    other = tmp_path / f"other.{name}"
    other.write_text(text.replace("2,", "4,").replace("zip", "since").replace("9", "2024-01-05").replace("2}", "4}"))
    rows = RowFiles.of([file, other]).read(PARTS).read_all()
    assert rows.schema.field("addr").type == PARTS.field("addr").type


def test_files_are_the_data_of_a_write_in_python_and_get_the_types_of_the_table(tmp_path: Path) -> None:
    table = HudiTable.create(tmp_path / "t", VALUES, record_key="id")
    (tmp_path / "a.csv").write_text("id,text\n1,00123\n")

    result = table.upsert(RowFiles.of([tmp_path / "a.csv", io.BytesIO(b"text,id\n5,2\n")], "csv"), schema_mode="merge")

    assert result.inserted == 2
    assert [row["text"] for row in sorted(table.head().to_pylist(), key=lambda row: row["id"])] == ["00123", "5"]


def test_a_partition_column_that_the_tables_files_leave_out_is_text(tmp_path: Path) -> None:
    options = {"hoodie.datasource.write.drop.partition.columns": "true"}
    write_hudi(tmp_path / "t", {"id": [1], "city": ["5"]}, record_key="id", partition_by="city", options=options)
    (tmp_path / "a.csv").write_text("id,city\n2,1.50\n3,2\n")

    assert main(["write", str(tmp_path / "t"), str(tmp_path / "a.csv")]) == 0

    assert sorted(row["city"] for row in HudiTable.open(tmp_path / "t").head().to_pylist()) == ["1.50", "2", "5"]


def test_the_command_line_names_its_own_options_where_a_file_can_not_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.csv").write_bytes("id,city\n1,Zürich\n".encode("latin-1"))
    (tmp_path / "rows").write_text("id\n1\n")

    for name, way in (("a.csv", "such as --encoding latin-1."), ("rows", "add --format csv, or parquet, json, arrow.")):
        assert main(["write", str(tmp_path / "t"), str(tmp_path / name), "--record-key", "id"]) == 1
        assert way in capsys.readouterr().err
