"""The examples of README and of the pages for contributors do what they say."""

from __future__ import annotations

import pickle
import re
import sys
import types

import pyarrow as pa
import pytest

from pyhudi import keygen
from pyhudi.keygen.settings import parse_settings
from pyhudi.model.options import spec_of
from pyhudi.model.options.declare import Values, parse, topic
from pyhudi.registry import Registry
from tests.support.source import ROOT

KEY_GENERATOR = "docs/contributing/add-a-key-generator.md"


def examples(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S)


def test_the_option_worked_through_is_read_and_has_its_row(monkeypatch: pytest.MonkeyPatch):
    page = "docs/contributing/add-an-option.md"
    declared, heading, _ = examples(page)
    module = types.ModuleType("pyhudi.model.options.rollback")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(declared, page, "exec"), module.__dict__)
    (row,) = eval(f"({heading})", {"topic": topic}, module.__dict__)
    assert (row.group, row.key, row.default, row.minimum) == ("Rollback", "hoodie.rollback.parallelism", "100", 1)
    made = parse(module.RollbackOptions, Values({row.key: "8"}))
    assert made == module.RollbackOptions(files_at_once=8)
    assert row.default == spec_of(row.key).default, "the default is Hudi's, as on the list of the known"


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """The worked example of the page as the module that it tells one to write."""
    code = next(text for text in examples(KEY_GENERATOR) if "class HashedKey" in text)
    module = types.ModuleType("pyhudi.keygen.hashed")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(code, KEY_GENERATOR, "exec"), module.__dict__)
    return module


def test_the_key_generator_worked_through_makes_keys(hashed: types.ModuleType):
    row = next(text for text in examples(KEY_GENERATOR) if text.startswith("_ENTRIES"))
    namespace: dict[str, dict[str, str]] = {}
    exec(row, {}, namespace)
    registry = Registry("key generator", namespace["_ENTRIES"])
    settings = parse_settings(
        {
            "hoodie.datasource.write.recordkey.field": "name,number",
            "hoodie.datasource.write.partitionpath.field": "city",
        }
    )
    generator = pickle.loads(pickle.dumps(registry.load("HASHED").from_settings(settings)))
    batch = pa.record_batch({"name": ["a", "b", "a"], "number": [1, 1, 1], "city": ["rome", "oslo", "rome"]})
    made = generator.columns(batch)
    assert made.record_key[0] == made.record_key[2] != made.record_key[1]
    assert {len(key) for key in made.record_key.to_pylist()} == {16}
    assert made.partition_path.to_pylist() == ["rome", "oslo", "rome"]
    assert generator.columns(batch.slice(1)).record_key == made.record_key.slice(1)
    assert isinstance(generator, keygen.KeyGenerator)
