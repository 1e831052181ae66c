"""docs/key-generators.md says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import keygen

PAGE = (Path(__file__).parent.parent.parent / "docs" / "key-generators.md").read_text()
ROW = pa.record_batch({"id": ["a"], "line": [1], "city": ["Den Haag"], "at": [1705311000000], "day": ["2024-01-15"]})
EXAMPLES = re.findall(r"^\| (\w+) \| (`[\w,]+`)? ?\| (`[\w,:]+`)? ?\| `([^`]+)`.*?\| (.+?) \|$", PAGE, re.M)


def test_the_page_has_an_example_of_every_generator() -> None:
    assert {example[0] for example in EXAMPLES} == {*keygen.KEY_GENERATORS.entries, "automatic"}


@pytest.mark.parametrize(("name", "keys", "partitions", "record_key", "path"), EXAMPLES)
def test_the_examples_are_what_the_generators_answer(
    name: str, keys: str, partitions: str, record_key: str, path: str
) -> None:
    options = {
        "hoodie.datasource.write.recordkey.field": keys.strip("`"),
        "hoodie.datasource.write.partitionpath.field": partitions.strip("`"),
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
    }
    if name != "automatic":
        options["hoodie.datasource.write.keygenerator.type"] = name
    columns = keygen.from_options(options, instant_time="20260101093000000").columns(ROW, first_row=17)

    assert columns.record_key.to_pylist() == [record_key]
    assert columns.partition_path.to_pylist() == ["" if path == "the empty path" else path.strip("`")]


def test_the_generator_of_ones_own_works_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = re.findall(r"```python\n# my_package/keys.py\n(.*?)```", PAGE, re.S)
    (tmp_path / "my_own_keys.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    options = {
        "hoodie.datasource.write.keygenerator.class": "my_own_keys:CountryKey",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "city",
    }
    columns = keygen.from_options(options).columns(ROW)

    assert (columns.record_key.to_pylist(), columns.partition_path.to_pylist()) == (["Den Haag-a"], ["Den Haag"])
