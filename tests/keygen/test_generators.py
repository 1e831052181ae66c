"""The contract of every generator: purity, order, errors with row numbers, and safe paths."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi import keygen
from pyhudi.errors import ConfigError, KeyGenError
from pyhudi.keygen import KeyColumns, timestamp
from tests.support.sweeps import examples

WRITE = "hoodie.datasource.write."
KEY, PARTITION, TYPE = WRITE + "recordkey.field", WRITE + "partitionpath.field", WRITE + "keygenerator.type"
TIME = {
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd/HH",
    "hoodie.keygen.timebased.timezone": "America/St_Johns",
}
TEXT_TIME = {
    "hoodie.keygen.timebased.timestamp.type": "DATE_STRING",
    "hoodie.keygen.timebased.input.dateformat": "yyyy-MM-dd HH:mm:ss,MMM d yyyy",
    "hoodie.keygen.timebased.input.timezone": "America/St_Johns",
    "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd/HH",
    "hoodie.keygen.timebased.output.timezone": "Europe/Paris",
}

EVERY = {
    "simple": {KEY: "id", PARTITION: "p"},
    "simple hive url": {
        KEY: "id",
        PARTITION: "p",
        WRITE + "hive_style_partitioning": "true",
        WRITE + "partitionpath.urlencode": "true",
    },
    "complex": {KEY: "id,n", PARTITION: "p,f,d"},
    "complex one key": {TYPE: "COMPLEX", KEY: "id", PARTITION: "p"},
    "non partition": {KEY: "id,f"},
    "global delete": {TYPE: "GLOBAL_DELETE", KEY: "id"},
    "custom": {KEY: "id", PARTITION: "p:SIMPLE,ms:TIMESTAMP", **TIME},
    "timestamp": {TYPE: "TIMESTAMP", KEY: "id", PARTITION: "ms", **TIME},
    "timestamp text": {TYPE: "TIMESTAMP", KEY: "id", PARTITION: "text", **TEXT_TIME},
    "automatic": {PARTITION: "p"},
}

few = settings(max_examples=examples(25), deadline=None)

rows = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.text(st.characters(codec="utf-8"), min_size=1, max_size=5),
            "n": st.none() | st.integers(-(2**31), 2**31 - 1),
            "p": st.none() | st.text("ab-é %=:", max_size=3),
            "f": st.none() | st.floats(width=32),
            "d": st.none() | st.dates(),
            "ms": st.none() | st.integers(-(10**13), 10**14),
            "text": st.none() | st.sampled_from(["2024-03-10 01:59:59", "2006-04-02 01:02:00", "Jan 5 2024"]),
        }
    ),
    max_size=12,
)
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("n", pa.int32()),
        ("p", pa.string()),
        ("f", pa.float32()),
        ("d", pa.date32()),
        ("ms", pa.int64()),
        ("text", pa.string()),
    ]
)


def made(options: Mapping[str, str]) -> keygen.KeyGenerator:
    return keygen.from_options(options, instant_time="20260101000000000")


def pairs(columns: KeyColumns) -> list[tuple[str, str]]:
    return list(zip(columns.record_key.to_pylist(), columns.partition_path.to_pylist(), strict=True))


@pytest.mark.parametrize("options", EVERY.values(), ids=EVERY.keys())
@few
@given(rows=rows, cut=st.integers(0, 12))
def test_keys_do_not_depend_on_how_rows_are_cut_into_batches(
    options: dict[str, str], rows: list[dict[str, object]], cut: int
) -> None:
    generator = made(options)
    whole = pa.RecordBatch.from_pylist(rows, SCHEMA)
    head, tail = whole.slice(0, cut), whole.slice(cut)

    together = pairs(generator.columns(whole, partition_id=2, first_row=5))
    apart = pairs(generator.columns(head, partition_id=2, first_row=5))
    apart += pairs(generator.columns(tail, partition_id=2, first_row=5 + head.num_rows))

    assert together == apart
    assert all(key for key, _ in together)


@pytest.mark.parametrize("options", EVERY.values(), ids=EVERY.keys())
@few
@given(rows=rows)
def test_a_pickled_generator_gives_the_same_keys(options: dict[str, str], rows: list[dict[str, object]]) -> None:
    generator, batch = made(options), pa.RecordBatch.from_pylist(rows, SCHEMA)
    copy = pickle.loads(pickle.dumps(generator))

    assert copy == generator
    assert pairs(copy.columns(batch)) == pairs(generator.columns(batch))


@pytest.mark.parametrize("options", EVERY.values(), ids=EVERY.keys())
@few
@given(rows=rows)
def test_the_named_input_columns_are_enough(options: dict[str, str], rows: list[dict[str, object]]) -> None:
    generator, batch = made(options), pa.RecordBatch.from_pylist(rows, SCHEMA)

    assert pairs(generator.columns(batch.select(list(generator.input_columns)))) == pairs(generator.columns(batch))


@pytest.mark.parametrize("options", EVERY.values(), ids=EVERY.keys())
@few
@given(rows=rows)
def test_how_arrow_stores_text_does_not_matter(options: dict[str, str], rows: list[dict[str, object]]) -> None:
    generator, batch = made(options), pa.RecordBatch.from_pylist(rows, SCHEMA)
    for kind in (pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())):
        other = pa.schema([pa.field(f.name, kind) if f.type == pa.string() else f for f in SCHEMA])
        assert pairs(generator.columns(batch.cast(other))) == pairs(generator.columns(batch))
    assert pairs(generator.columns(pa.Table.from_batches([batch]))) == pairs(generator.columns(batch))


@few
@given(st.lists(st.integers(-(10**13), 10**14), min_size=1, max_size=8))
def test_cutting_instants_before_they_are_distinct_changes_no_path(instants: list[int]) -> None:
    """The same instants, formatted each on its own with a pattern that shows the zone, and so is never cut."""
    batch = pa.record_batch({"id": ["k"] * len(instants), "ms": instants})
    options = {TYPE: "TIMESTAMP", KEY: "id", PARTITION: "ms", **TIME}
    uncut = {**options, "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd/HH'|'Z"}

    found = made(options).columns(batch).partition_path.to_pylist()
    exact = [path.partition("|")[0] for path in made(uncut).columns(batch).partition_path.to_pylist()]

    assert found == exact


def test_every_registered_generator_is_under_this_contract() -> None:
    """A new generator needs a row in EVERY; its promises are then checked by all tests above."""
    assert {made(options).type_name for options in EVERY.values()} == set(keygen.KEY_GENERATORS.entries)


def test_an_empty_batch_has_no_keys() -> None:
    batch = pa.RecordBatch.from_pylist([], SCHEMA)
    for options in EVERY.values():
        assert pairs(made(options).columns(batch)) == []


def batch_of(**columns: object) -> pa.RecordBatch:
    return pa.record_batch(
        {name: column if isinstance(column, pa.Array) else pa.array(column) for name, column in columns.items()}
    )


@pytest.mark.parametrize(
    ("options", "batch", "message"),
    [
        ({KEY: "id", PARTITION: "p"}, batch_of(id=["a", None], p=["x", "x"]), "Row 11 .*'id' is null"),
        ({KEY: "id", PARTITION: "p"}, batch_of(id=["a", ""], p=["x", "x"]), "Row 11 .*'id' is empty"),
        ({KEY: "id,n"}, batch_of(id=["", ""], n=pa.array([1, None])), r"Row 11 .*every key field \(id, n\)"),
        ({KEY: "nope"}, batch_of(id=["a"]), "'nope' is not in the data"),
        ({KEY: "id", PARTITION: "p"}, batch_of(id=["a", "b"], p=["x", "a/../b"]), r"Row 11 .*'a/\.\./b'.*leaves"),
        ({KEY: "id", PARTITION: "p"}, batch_of(id=["a", "b"], p=["x", "/etc"]), "Row 11 .*'/etc'.*leaves"),
        ({KEY: "id", PARTITION: "p"}, batch_of(id=["a"], p=[".hoodie/timeline"]), "Row 10 .*own .hoodie folder"),
        ({KEY: "id", PARTITION: "p"}, batch_of(id=["a"], p=["./.hoodie"]), "Row 10 .*own .hoodie folder"),
        ({KEY: "id", PARTITION: "p"}, batch_of(id=["a"], p=["a\x00b"]), "Row 10 .*NUL"),
        ({KEY: "id", PARTITION: "n,p"}, batch_of(id=["a"], n=[1], p=[".."]), "Row 10 .*leaves its folder"),
        (
            {TYPE: "TIMESTAMP", KEY: "id", PARTITION: "t", **TEXT_TIME},
            batch_of(id=["a", "b"], t=["2024-01-15 10:00:00", "soon"]),
            "Row 11 .*'t' holds 'soon'",
        ),
        (
            {TYPE: "TIMESTAMP", KEY: "id", PARTITION: "t", **TIME},
            batch_of(id=["a"], t=[True]),
            "'t' has type bool",
        ),
        (
            {TYPE: "TIMESTAMP", KEY: "id", PARTITION: "t", **TEXT_TIME},
            batch_of(id=["a"], t=[5]),
            "reads text",
        ),
        ({KEY: "id"}, batch_of(id=pa.array([1], pa.time64("us"))), "'id' has type time64"),
        ({KEY: "id"}, batch_of(id=pa.array([[("a", 1), ("b", 2)]], pa.map_("string", "int32"))), "map with 2 entries"),
        ({KEY: "id"}, batch_of(id=pa.array([{"x": 1.5}])), "inside a struct"),
        (
            {KEY: "a.b,n"},
            batch_of(a=pa.array([{"b": 1}, None]), n=[1, 1]),
            "Row 11 .*struct 'a' around key field 'a.b' is null",
        ),
    ],
)
def test_a_row_without_a_usable_key_is_named(options: dict[str, str], batch: pa.RecordBatch, message: str) -> None:
    with pytest.raises(KeyGenError, match=message):
        made(options).columns(batch, first_row=10)


def test_automatic_keys_need_the_instant() -> None:
    generator = keygen.from_options({PARTITION: "p"})

    with pytest.raises(ConfigError, match="instant"):
        generator.columns(batch_of(p=["x"]))
    assert isinstance(generator, keygen.AutoKey)
    columns = generator.at("20260101000000000").columns(batch_of(p=["x", "y"]), partition_id=1)
    assert columns.record_key.to_pylist() == ["20260101000000000_1_0", "20260101000000000_1_1"]


@dataclass(frozen=True)
class HashedKey:
    """A user's own generator."""

    record_fields: tuple[str, ...]
    partition_fields: tuple[str, ...]

    def columns(self, batch: pa.RecordBatch) -> KeyColumns:
        keys = [f"{len(value)}#{value}" for value in batch.column(self.record_fields[0]).to_pylist()]
        return KeyColumns(pa.array(keys), batch.column(self.partition_fields[0]))


@dataclass(frozen=True)
class FromOptions:
    salt: str
    input_columns: tuple[str, ...] = ("id",)

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> FromOptions:
        return cls(options["my.salt"])

    def columns(self, batch: pa.RecordBatch) -> KeyColumns:
        keys = pa.array([self.salt + value for value in batch.column("id").to_pylist()])
        return KeyColumns(keys, pa.array(["all"] * batch.num_rows))


@dataclass(frozen=True)
class Broken:
    record_fields: tuple[str, ...]
    partition_fields: tuple[str, ...]

    def columns(self, batch: pa.RecordBatch) -> KeyColumns:
        answers = {
            "short": (pa.array(["k"]), pa.array(["p"])),
            "null": (pa.array(["k", None]), pa.array(["p", "p"])),
            "empty": (pa.array(["k", ""]), pa.array(["p", "p"])),
            "number": (pa.array([1, 2]), pa.array(["p", "p"])),
            "path": (pa.array(["k", "l"]), pa.array(["p", "../p"])),
        }
        return KeyColumns(*answers[self.record_fields[0]])


def own(name: str, **options: str) -> dict[str, str]:
    return {WRITE + "keygenerator.class": f"{__name__}:{name}", KEY: "id", PARTITION: "p", **options}


def test_a_users_own_class_makes_the_keys() -> None:
    generator = made(own("HashedKey"))
    batch = batch_of(id=["a", "bc"], p=["x", "y"])

    assert pairs(pickle.loads(pickle.dumps(generator)).columns(batch)) == [("1#a", "x"), ("2#bc", "y")]
    assert generator.type_name.endswith(":HashedKey")
    assert generator.input_columns == ()


def test_a_users_own_class_may_read_the_options() -> None:
    generator = made({**own("FromOptions"), "my.salt": "s-"})

    assert pairs(generator.columns(batch_of(id=["a"]))) == [("s-a", "all")]
    assert generator.input_columns == ("id",)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("short", "with 2 values"),
        ("null", "no record_key .* row 1"),
        ("empty", "empty record key for row 1"),
        ("number", "has type int64"),
        ("path", "leaves its folder"),
    ],
)
def test_what_a_users_own_class_answers_is_checked(answer: str, message: str) -> None:
    generator = made({**own("Broken"), KEY: answer})

    with pytest.raises(KeyGenError, match=message):
        generator.columns(batch_of(id=["a", "b"], p=["x", "y"]))


def test_a_class_that_can_not_be_imported_or_made_says_why() -> None:
    with pytest.raises(ConfigError, match="can't be imported"):
        made(own("Missing"))
    with pytest.raises(KeyGenError, match="from_options"):
        made({WRITE + "keygenerator.class": "collections:UserString", KEY: "id"})
    with pytest.raises(KeyGenError, match="no method columns"):
        made({WRITE + "keygenerator.class": "builtins:dict", KEY: "id"})


def test_timestamps_have_one_text_whatever_their_unit_up_to_microseconds() -> None:
    micros = pa.array([1705311000123456], pa.timestamp("us", tz="UTC"))
    nanos = micros.cast(pa.timestamp("ns", tz="UTC"))
    consistent = {KEY: "t", WRITE + "keygenerator.consistent.logical.timestamp.enabled": "true"}

    for column in (micros, nanos):
        assert made({KEY: "t"}).columns(batch_of(t=column)).record_key.to_pylist() == ["1705311000123456"]
        assert made(consistent).columns(batch_of(t=column)).record_key.to_pylist() == ["2024-01-15 09:30:00.123"]


def test_a_simple_string_key_is_the_column_itself_without_a_copy() -> None:
    column = pa.array([f"k{number}" for number in range(1000)])
    key = made({KEY: "id"}).columns(batch_of(id=column)).record_key

    assert [buffer and buffer.address for buffer in key.buffers()] == [
        buffer and buffer.address for buffer in column.buffers()
    ]


def test_dates_that_differ_in_hours_only_are_formatted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    formatted = []
    real = timestamp.format_instant
    monkeypatch.setattr(timestamp, "format_instant", lambda *args: formatted.append(args) or real(*args))
    instants = pa.array(range(1_700_000_000_000, 1_700_000_000_000 + 3 * 86_400_000, 60_000))
    options = {TYPE: "TIMESTAMP", KEY: "id", PARTITION: "ms", **TIME}
    options["hoodie.keygen.timebased.output.dateformat"] = "yyyy/MM/dd"
    batch = batch_of(id=pa.array(range(len(instants))).cast(pa.string()), ms=instants)

    assert len(set(made(options).columns(batch).partition_path.to_pylist())) == 4
    assert len(formatted) == 4


@pytest.mark.parametrize("kind", ["UNIX_TIMESTAMP", "EPOCHMILLISECONDS", "EPOCHMICROSECONDS", "SCALAR"])
@pytest.mark.parametrize("generator", ["TIMESTAMP", "CUSTOM"])
@pytest.mark.parametrize("text", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())])
def test_text_under_a_type_of_numbers_is_refused_with_an_input_format_too(
    kind: str, generator: str, text: pa.DataType
) -> None:
    options = {**TEXT_TIME, "hoodie.keygen.timebased.timestamp.type": kind, TYPE: generator, KEY: "id"}
    options[PARTITION] = "t" if generator == "TIMESTAMP" else "t:TIMESTAMP"
    rows = batch_of(id=["a", "b"], t=pa.array(["2024-01-15 10:00:00", None], pa.string()).cast(text))

    with pytest.raises(KeyGenError, match=f"'t' is text, but timestamp type {kind} reads numbers.*DATE_STRING"):
        made(options).columns(rows)


FAR_MS = 253_402_300_800_000  # year 10000 begins
NUMBERS = {TYPE: "TIMESTAMP", PARTITION: "t", KEY: "id", **TIME, "hoodie.keygen.timebased.timezone": "UTC"}
TEXTS = {TYPE: "TIMESTAMP", PARTITION: "t", KEY: "id", **TEXT_TIME, "hoodie.keygen.timebased.timezone": "UTC"}
CUSTOM = {TYPE: "CUSTOM", PARTITION: "t:TIMESTAMP"}
KIND, UNIT = "hoodie.keygen.timebased.timestamp.type", "hoodie.keygen.timebased.timestamp.scalar.time.unit"
ZONE, PATTERN = "hoodie.keygen.timebased.timezone", "hoodie.keygen.timebased.output.dateformat"


@pytest.mark.parametrize("generator", [{}, CUSTOM], ids=["TIMESTAMP", "CUSTOM"])
@pytest.mark.parametrize("pattern", ["yyyy/MM/dd", "yyyy/MM/dd/ZZ", "HH"])
@pytest.mark.parametrize(
    ("options", "column", "value"),
    [
        ({}, pa.array([0, FAR_MS]), str(FAR_MS)),
        ({}, pa.array([None, -62_135_596_800_001]), "-62135596800001"),
        ({}, pa.array([0, 2**63 - 1]), "9223372036854775807"),
        ({ZONE: "Asia/Tokyo"}, pa.array([0, FAR_MS - 1]), str(FAR_MS - 1)),
        ({KIND: "UNIX_TIMESTAMP"}, pa.array([1, 1_705_311_000_000]), "1705311000000"),
        ({KIND: "UNIX_TIMESTAMP"}, pa.array([1, 1e300]), "1e[+]300"),
        ({KIND: "SCALAR", UNIT: "DAYS"}, pa.array([0, 2_932_897], pa.int32()).cast(pa.date32()), "10000-01-01"),
        ({}, pa.array([0, FAR_MS], pa.timestamp("us")), "1978-01-11 .*"),
    ],
)
def test_numbers_past_year_9999_and_before_year_1_are_refused_by_name(
    generator: dict[str, str], pattern: str, options: dict[str, str], column: pa.Array, value: str
) -> None:
    options = {**NUMBERS, **generator, **options, PATTERN: pattern}
    kind = options[KIND]

    message = f"Row 11 .*'t' holds {value}, which timestamp type {kind} .*years 1 to 9999; format '{pattern}'.*Correct"
    with pytest.raises(KeyGenError, match=message):
        made(options).columns(batch_of(id=["a", "b"], t=column), first_row=10)


@pytest.mark.parametrize("generator", [{}, CUSTOM], ids=["TIMESTAMP", "CUSTOM"])
@pytest.mark.parametrize(
    ("options", "text", "reason"),
    [
        ({}, "10000-01-01 00:00:00", r"value 10000 for year must be in \[1,9999\] \(format 'yyyy-MM-dd HH:mm:ss'\)"),
        ({}, "0000-12-31 23:00:00", r"value 0 for year must be in \[1,9999\] \(format 'yyyy-MM-dd HH:mm:ss'\)"),
        ({}, "Jan 5 -44", r"value -44 for year must be in \[1,9999\] \(format 'MMM d yyyy'\)"),
        ({ZONE: "", "hoodie.keygen.timebased.output.timezone": "Asia/Tokyo"}, "9999-12-31 22:00:00", "can't print it"),
    ],
)
def test_text_of_years_past_9999_and_before_1_is_refused_by_name(
    generator: dict[str, str], options: dict[str, str], text: str, reason: str
) -> None:
    column = pa.array(["2024-01-15 10:00:00", text])

    with pytest.raises(KeyGenError, match=f"Row 11 .*'t' holds '{text}': .*{reason}.*Correct the value"):
        made({**TEXTS, **generator, **options}).columns(batch_of(id=["a", "b"], t=column), first_row=10)


def test_the_year_that_counts_is_that_of_the_zone_in_which_the_path_is_printed() -> None:
    column = pa.array([FAR_MS + 3_600_000, -62_135_596_800_000 - 3_600_000])
    for zone, row, path in (("America/New_York", 0, "9999/12/31/20"), ("Asia/Tokyo", 1, "0001/01/01/08")):
        batch = batch_of(id=["a"], t=column.slice(row, 1))
        assert made({**NUMBERS, ZONE: zone}).columns(batch).partition_path.to_pylist() == [path]
