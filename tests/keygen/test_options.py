"""The generator that options select, and options that are refused."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyhudi import keygen
from pyhudi.errors import ConfigError, KeyGenError
from pyhudi.keygen.auto import AutoKey
from pyhudi.keygen.simple import SimpleKey
from pyhudi.model.new_table import NewTable, new_table_properties
from pyhudi.model.options import WriteOptions
from pyhudi.model.table_config import TableConfig

KEY = "hoodie.datasource.write.recordkey.field"
PARTITION = "hoodie.datasource.write.partitionpath.field"
CLASS = "hoodie.datasource.write.keygenerator.class"
TYPE = "hoodie.datasource.write.keygenerator.type"
TIME = "hoodie.keygen.timebased."

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("a", pa.struct([("b", pa.int32())]))])


def name(**options: str) -> str:
    return keygen.generator_name({f"hoodie.{key.replace('__', '.')}": value for key, value in options.items()})


@pytest.mark.parametrize(
    ("spelling", "registered"),
    [
        ("SIMPLE", "SIMPLE"),
        ("simple", "SIMPLE"),
        ("SIMPLE_AVRO", "SIMPLE"),
        ("COMPLEX_AVRO", "COMPLEX"),
        ("NON_PARTITION", "NON_PARTITION"),
        ("NON_PARTITIONED", "NON_PARTITION"),
        ("non_partitioned", "NON_PARTITION"),
        ("GLOBAL_DELETE_AVRO", "GLOBAL_DELETE"),
        ("CUSTOM", "CUSTOM"),
        ("TIMESTAMP_AVRO", "TIMESTAMP"),
        ("org.apache.hudi.keygen.SimpleAvroKeyGenerator", "SIMPLE"),
        ("org.apache.hudi.keygen.ComplexKeyGenerator", "COMPLEX"),
        ("org.apache.hudi.keygen.NonpartitionedAvroKeyGenerator", "NON_PARTITION"),
        ("org.apache.hudi.keygen.GlobalDeleteKeyGenerator", "GLOBAL_DELETE"),
        ("org.apache.hudi.keygen.GlobalAvroDeleteKeyGenerator", "GLOBAL_DELETE"),
        ("org.apache.hudi.keygen.CustomAvroKeyGenerator", "CUSTOM"),
        ("org.apache.hudi.keygen.TimestampBasedKeyGenerator", "TIMESTAMP"),
        ("org.apache.hudi.ComplexKeyGenerator", "COMPLEX"),
        ("my_package.keys:HashedKey", "my_package.keys:HashedKey"),
    ],
)
def test_every_spelling_means_its_generator(spelling: str, registered: str) -> None:
    assert keygen.KEY_GENERATORS.canonical(spelling) == registered


def test_every_registered_generator_can_be_loaded() -> None:
    for registered in keygen.KEY_GENERATORS.entries:
        assert callable(keygen.KEY_GENERATORS.load(registered).from_settings)


def test_class_beats_type_beats_inference() -> None:
    both = {CLASS: "org.apache.hudi.keygen.ComplexKeyGenerator", TYPE: "SIMPLE", KEY: "id", PARTITION: "city"}

    assert keygen.generator_name(both) == "COMPLEX"
    assert keygen.generator_name({**both, CLASS: ""}) == "SIMPLE"
    assert keygen.generator_name({KEY: "id", PARTITION: ""}) == "NON_PARTITION"


def test_the_tables_own_properties_count_when_the_writer_says_nothing() -> None:
    stored = {
        "hoodie.table.recordkey.fields": "id",
        "hoodie.table.partition.fields": "city",
        "hoodie.table.keygenerator.type": "COMPLEX_AVRO",
    }
    batch = pa.record_batch({"id": ["k"], "city": ["x"]})

    assert keygen.from_options(stored).columns(batch).record_key.to_pylist() == ["id:k"]
    assert keygen.from_options({**stored, TYPE: "SIMPLE"}).columns(batch).record_key.to_pylist() == ["k"]


def test_a_table_can_not_name_python_code_to_import() -> None:
    with pytest.raises(ConfigError, match="Name a Python class"):
        name(table__keygenerator__class="os:system")
    with pytest.raises(ConfigError, match=r"com\.acme\.Keys"):
        name(table__keygenerator__class="com.acme.Keys")
    # The writer hands the table's generator on as the type.
    with pytest.raises(ConfigError, match="Name a Python class"):
        name(datasource__write__keygenerator__type="os:system")
    with pytest.raises(ConfigError, match="USER_PROVIDED"):
        name(table__keygenerator__type="USER_PROVIDED")


@pytest.mark.parametrize(("stored", "handed_on"), [("os:system", None), ("com.acme.Keys", None), ("SIMPLE", "SIMPLE")])
def test_a_writer_takes_only_hudis_own_generators_from_a_table(stored: str, handed_on: str | None) -> None:
    new = NewTable("t", key_generator=stored, record_key_fields=("id",), partition_fields=("city",))
    options = WriteOptions.parse({}, table=TableConfig(new_table_properties(new)))

    assert options.key_generator == handed_on


def test_an_unknown_generator_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'SIMPLE'"):
        keygen.from_options({TYPE: "SIMPEL", KEY: "id", PARTITION: "city"})


def test_no_key_field_gives_automatic_keys_around_the_partition_part() -> None:
    generator = keygen.from_options({PARTITION: "city"}, instant_time="20260101000000000")

    assert isinstance(generator, AutoKey)
    assert isinstance(generator.partition_part, SimpleKey)
    assert generator.type_name == "SIMPLE"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({TYPE: "SIMPLE", KEY: "id,x", PARTITION: "city"}, "takes one key field"),
        ({TYPE: "SIMPLE", KEY: "id", PARTITION: "city,x"}, "takes one partition field"),
        ({TYPE: "SIMPLE", KEY: "id"}, "Use NON_PARTITION"),
        ({TYPE: "SIMPLE", KEY: "id", PARTITION: "city:SIMPLE"}, "Use key generator CUSTOM"),
        ({TYPE: "COMPLEX", KEY: "id", PARTITION: "x,city:SIMPLE"}, "Use key generator CUSTOM"),
        ({TYPE: "CUSTOM", KEY: "id", PARTITION: "city"}, "expected field:SIMPLE or"),
        ({TYPE: "CUSTOM", KEY: "id", PARTITION: "city:FOO"}, "expected field:SIMPLE or"),
        ({TYPE: "CUSTOM", KEY: "id", PARTITION: "t:TIMESTAMP"}, "timestamp.type is missing"),
        ({TYPE: "TIMESTAMP", KEY: "id", PARTITION: "t", TIME + "timestamp.type": "unix_timestamp"}, "in capitals"),
        ({TYPE: "TIMESTAMP", KEY: "id", PARTITION: "t", TIME + "timestamp.type": "SCALAR"}, "output.dateformat is"),
        (
            {
                TYPE: "TIMESTAMP",
                KEY: "id",
                PARTITION: "t",
                TIME + "timestamp.type": "DATE_STRING",
                TIME + "output.dateformat": "yyyy",
            },
            "input.dateformat is missing",
        ),
        (
            {
                TYPE: "TIMESTAMP",
                KEY: "id",
                PARTITION: "t",
                TIME + "timestamp.type": "DATE_STRING",
                TIME + "input.dateformat": "yyyy",
                TIME + "input.dateformat.list.delimiter.regex": "(",
                TIME + "output.dateformat": "yyyy",
            },
            "not a regular expression",
        ),
        ({KEY: "id", PARTITION: "city", "hoodie.datasource.write.hive_style_partitioning": "yes"}, "true or false"),
        ({KEY: "id", PARTITION: "city", "hoodie.write.table.version": "nine"}, "table version"),
        ({KEY: "id", "hoodie.table.complex.keygenerator.encoding": "BOTH"}, "FIELD_PREFIXED or VALUE_ONLY"),
    ],
)
def test_contradictions_are_refused_when_the_generator_is_made(options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        keygen.from_options(options)


def test_a_key_field_that_the_schema_lacks_is_refused_before_any_row() -> None:
    with pytest.raises(KeyGenError, match="Did you mean 'id'"):
        keygen.from_options({KEY: "ID", PARTITION: "city"}, schema=SCHEMA)
    with pytest.raises(KeyGenError, match=r"a\.c"):
        keygen.from_options({KEY: "a.c", PARTITION: "city"}, schema=SCHEMA)
    assert keygen.from_options({KEY: "a.b", PARTITION: "city"}, schema=SCHEMA).input_columns == ("a", "city")


def test_the_first_time_prefix_wins() -> None:
    options = {
        TYPE: "TIMESTAMP",
        KEY: "id",
        PARTITION: "t",
        "hoodie.deltastreamer.keygen.timebased.timestamp.type": "SCALAR",
        "hoodie.deltastreamer.keygen.timebased.output.dateformat": "yyyy",
        TIME + "timestamp.type": "EPOCHMILLISECONDS",
    }
    batch = pa.record_batch({"id": ["k"], "t": [1578283932000]})

    assert keygen.from_options(options).columns(batch).partition_path.to_pylist() == ["2020"]


def test_two_digit_years_turn_around_the_year_of_the_commit() -> None:
    options = {
        TYPE: "TIMESTAMP",
        KEY: "id",
        PARTITION: "t",
        TIME + "timestamp.type": "DATE_STRING",
        TIME + "input.dateformat": "dd/MM/yy",
        TIME + "output.dateformat": "yyyy",
    }
    batch = pa.record_batch({"id": ["k", "l"], "t": ["05/01/45", "05/01/46"]})

    def years(instant_time: str) -> list[str]:
        years: list[str] = (
            keygen.from_options(options, instant_time=instant_time).columns(batch).partition_path.to_pylist()
        )
        return years

    assert years("20260101000000000") == ["2045", "1946"]
    assert years("20990101000000000") == ["2045", "2046"]


@pytest.mark.parametrize(
    ("version", "options", "key"),
    [
        (9, {}, "id:k"),
        (8, {}, "id:k"),
        (6, {}, "id:k"),
        (6, {"hoodie.write.complex.keygen.new.encoding": "true"}, "k"),
        (9, {"hoodie.write.complex.keygen.new.encoding": "true"}, "id:k"),
        (9, {"hoodie.table.complex.keygenerator.encoding": "VALUE_ONLY"}, "k"),
        (6, {"hoodie.table.complex.keygenerator.encoding": "FIELD_PREFIXED"}, "id:k"),
    ],
)
def test_complex_key_of_one_field_by_table_version(version: int, options: dict[str, str], key: str) -> None:
    generator = keygen.from_options({TYPE: "COMPLEX", KEY: "id", PARTITION: "city", **options}, table_version=version)
    batch = pa.record_batch({"id": ["k"], "city": ["x"]})

    assert generator.columns(batch).record_key.to_pylist() == [key]
