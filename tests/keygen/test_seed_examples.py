"""Every example of Hudi's key generation document, a test each."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pyhudi import keygen

WRITE = "hoodie.datasource.write."
PREFIXES = ("hoodie.keygen.timebased.", "hoodie.streamer.keygen.timebased.", "hoodie.deltastreamer.keygen.timebased.")

ISO_MS = "yyyy-MM-dd'T'HH:mm:ss.SSSZ"
ISO = "yyyy-MM-dd'T'HH:mm:ssZ"


def paths(prefix: str, value: Any, **settings: str) -> str:
    """The partition path of one value, which is in a column `ts`."""
    options = {
        WRITE + "recordkey.field": "id",
        WRITE + "partitionpath.field": "ts",
        WRITE + "keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
        **{prefix + name.replace("_", "."): text for name, text in settings.items()},
    }
    kind = pa.string() if settings["timestamp_type"] == "DATE_STRING" else pa.int64()
    batch = pa.record_batch({"id": ["k"], "ts": pa.array([value], kind)})
    path: str = keygen.from_options(options).columns(batch).partition_path[0].as_py()
    return path


every_prefix = pytest.mark.parametrize("prefix", PREFIXES)


@every_prefix
@pytest.mark.parametrize(("value", "path"), [(1578283932000, "2020-01-06 12"), (None, "1970-01-01 08")])
def test_timestamp_is_gmt(prefix: str, value: int | None, path: str) -> None:
    settings = {"timestamp_type": "EPOCHMILLISECONDS", "output_dateformat": "yyyy-MM-dd hh", "timezone": "GMT+8:00"}

    assert paths(prefix, value, **settings) == path


@every_prefix
@pytest.mark.parametrize(
    ("value", "path"),
    [
        ("2020-01-06 12:12:12", "2020-01-06 12"),
        # The document says `1970-01-01 12:00:00`, which its own output format can't give; Hudi gives this.
        (None, "1970-01-01 08"),
    ],
)
def test_timestamp_is_date_string(prefix: str, value: str | None, path: str) -> None:
    settings = {
        "timestamp_type": "DATE_STRING",
        "output_dateformat": "yyyy-MM-dd hh",
        "input_dateformat": "yyyy-MM-dd hh:mm:ss",
        "timezone": "GMT+8:00",
    }

    assert paths(prefix, value, **settings) == path


@every_prefix
@pytest.mark.parametrize(("value", "path"), [(20000, "2024-10-04 12"), (None, "1970-01-02 12")])
def test_scalar(prefix: str, value: int | None, path: str) -> None:
    settings = {
        "timestamp_type": "SCALAR",
        "output_dateformat": "yyyy-MM-dd hh",
        "timezone": "GMT",
        "timestamp_scalar_time_unit": "days",
    }

    assert paths(prefix, value, **settings) == path


ISO_SETTINGS = {
    "timestamp_type": "DATE_STRING",
    "input_dateformat_list_delimiter_regex": "",
    "input_timezone": "",
    "output_dateformat": "yyyyMMddHH",
}


@every_prefix
def test_iso8601_with_milliseconds_single_input_format(prefix: str) -> None:
    settings = {**ISO_SETTINGS, "input_dateformat": ISO_MS, "output_timezone": "GMT"}

    assert paths(prefix, "2020-04-01T13:01:33.428Z", **settings) == "2020040113"


@every_prefix
def test_iso8601_with_milliseconds_multiple_input_formats(prefix: str) -> None:
    settings = {**ISO_SETTINGS, "input_dateformat": f"{ISO},{ISO_MS}", "output_timezone": "UTC"}

    assert paths(prefix, "2020-04-01T13:01:33.428Z", **settings) == "2020040113"


@every_prefix
def test_iso8601_without_milliseconds_with_offset_multiple_input_formats(prefix: str) -> None:
    settings = {**ISO_SETTINGS, "input_dateformat": f"{ISO},{ISO_MS}", "output_timezone": "UTC"}

    assert paths(prefix, "2020-04-01T13:01:33-05:00", **settings) == "2020040118"


@every_prefix
def test_short_date_string_and_date_format_out(prefix: str) -> None:
    settings = {
        **ISO_SETTINGS,
        "input_dateformat": f"{ISO},{ISO_MS},yyyyMMdd",
        "input_timezone": "UTC",
        "output_dateformat": "MM/dd/yyyy",
        "output_timezone": "UTC",
    }

    assert paths(prefix, "20200401", **settings) == "04/01/2020"


ROW = pa.record_batch(
    {
        "field1": ["value1"],
        "field2": ["value2"],
        "field_3": ["v3"],
        "field_5": pa.array([1578283932000]),
        "country": ["nl"],
        "date": pa.array([1578283932000]),
    }
)
TIME = {PREFIXES[0] + "timestamp.type": "EPOCHMILLISECONDS", PREFIXES[0] + "output.dateformat": "yyyy-MM-dd"}


def keys(**options: str) -> tuple[str, str]:
    given = {WRITE + name.replace("__", "."): value for name, value in options.items()}
    columns = keygen.from_options({**TIME, **given}).columns(ROW)
    return columns.record_key[0].as_py(), columns.partition_path[0].as_py()


def test_simple_interprets_values_as_they_are() -> None:
    assert keys(keygenerator__type="SIMPLE", recordkey__field="field1", partitionpath__field="field2") == (
        "value1",
        "value2",
    )


def test_complex_joins_fields_by_name() -> None:
    found = keys(keygenerator__type="COMPLEX", recordkey__field="field1,field2", partitionpath__field="country,field_3")

    assert found == ("field1:value1,field2:value2", "nl/v3")


def test_non_partition_returns_an_empty_partition_for_all_records() -> None:
    assert keys(keygenerator__type="NON_PARTITION", recordkey__field="field1") == ("value1", "")


def test_custom_record_key_of_two_fields() -> None:
    found = keys(
        keygenerator__class="org.apache.hudi.keygen.CustomKeyGenerator",
        recordkey__field="field1,field2",
        partitionpath__field="field_3:simple,field_5:timestamp",
    )

    assert found == ("field1:value1,field2:value2", "v3/2020-01-06")


@pytest.mark.parametrize(("hive", "path"), [("false", "nl/2020-01-06"), ("true", "country=nl/date=2020-01-06")])
def test_custom_country_and_date(hive: str, path: str) -> None:
    found = keys(
        keygenerator__class="org.apache.hudi.keygen.CustomKeyGenerator",
        recordkey__field="field1",
        partitionpath__field="country:SIMPLE,date:TIMESTAMP",
        hive_style_partitioning=hive,
    )

    assert found == ("value1", path)


def test_keys_are_made_automatically_when_no_key_field_is_configured() -> None:
    options = {WRITE + "partitionpath.field": "country"}
    columns = keygen.from_options(options, instant_time="20260101000000000").columns(ROW, partition_id=4, first_row=9)

    assert (columns.record_key.to_pylist(), columns.partition_path.to_pylist()) == (["20260101000000000_4_9"], ["nl"])
