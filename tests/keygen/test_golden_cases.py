"""Every case that real Hudi's key generators answered, path `write` of 1.2.0."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pyhudi import keygen
from pyhudi.errors import ConfigError, KeyGenError
from tests.conftest import SHARED
from tests.keygen.ddl import batch_of, schema_from_ddl

# Where PyHudi answers otherwise, on purpose. Everything else must be equal.
DIFFERENT = {
    371: "partition value '/lead' leaves the table's folder",
    406: "partition value '..' leaves the table's folder",
    407: "partition value '../x' leaves the table's folder",
    450: "partition value '..' leaves the table's folder, URL encoding or not",
}

# Hudi's generators don't know the prefix of the key generation document; there the document wins. Cases without a twin
# under the prefix hoodie.keygen.timebased. (which Hudi does answer) have Joda-Time's answer here; None is an error.
STREAMER = "hoodie.streamer.keygen.timebased."
WITHOUT_TWIN = {
    5: None,
    10: None,
    11: "2020040111",
    12: None,
    13: "1970010100",
    16: "2020040118",
    17: "2020040111",
    18: None,
    19: "1970010100",
    20: None,
    21: None,
    22: None,
    25: "04/01/2020",
    26: "04/01/2020",
    27: "04/01/2020",
    28: None,
    29: "01/01/1970",
}

INSTANT = "20260101000000000"


def _cases() -> list[dict[str, Any]]:
    path = SHARED / "golden" / "keygen-cases.json"
    return json.loads(path.read_text())["cases"] if path.is_file() else []


CASES = _cases()


def _answer(case: dict[str, Any]) -> dict[str, Any]:
    (answer,) = [e for e in case["expected"] if "1.2.0" in e["versions"] and "write" in e["paths"]]
    return answer


def _twin(case: dict[str, Any]) -> dict[str, Any] | None:
    """The answer to the same options under the prefix that Hudi knows."""
    options = {k.replace(STREAMER, "hoodie.keygen.timebased."): v for k, v in case["options"].items()}
    same = [c for c in CASES if c["options"] == options and c["row"].get("ts") == case["row"].get("ts")]
    return _answer(same[0]) if same else None


def _expected(case: dict[str, Any]) -> dict[str, Any]:
    if not any(key.startswith(STREAMER) for key in case["options"]):
        return _answer(case)
    twin = _twin(case)
    if twin is not None:
        return {k: v for k, v in twin.items() if k != "record_key"} | {"record_key": case["row"]["id"]}
    path = WITHOUT_TWIN[case["id"]]
    return {"record_key": case["row"]["id"], **({"partition_path": path} if path else {"partition_path_error": "x"})}


def test_all_cases_are_here(shared: Any) -> None:
    assert len(CASES) == 655


@pytest.mark.filterwarnings("ignore:Time zone .* is not a name")
@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["id"]))
def test_key_and_path_are_those_of_real_hudi(case: dict[str, Any]) -> None:
    expected = _expected(case)
    batch = batch_of(schema_from_ddl(case["schema"]), case["row"])
    automatic = "Auto" in expected.get("key_generator", "")

    if case["id"] in DIFFERENT:
        generator = keygen.from_options(case["options"])
        with pytest.raises(KeyGenError, match="folder"):
            generator.columns(batch)
        return
    if not automatic and any(key.endswith("_error") for key in expected):
        with pytest.raises(ConfigError):
            keygen.from_options(case["options"], current_year=2026).columns(batch)
        return

    generator = keygen.from_options(case["options"], instant_time=INSTANT)
    found = generator.columns(batch, partition_id=3, first_row=7)
    assert found.partition_path.to_pylist() == [expected["partition_path"]]
    assert found.record_key.to_pylist() == [f"{INSTANT}_3_7" if automatic else expected["record_key"]]
    if "key_generator" in expected and not automatic:
        name = expected["key_generator"].rpartition(".")[2]
        assert keygen.KEY_GENERATORS.canonical(name) == keygen.infer(case["options"])


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["id"]))
def test_a_failing_half_of_the_key_does_not_hide_the_other(case: dict[str, Any]) -> None:
    """Where Hudi answers one half and refuses the other, the answered half is still equal."""
    expected = _expected(case)
    halves = {"record_key", "partition_path"} & set(expected)
    if case["id"] in DIFFERENT or "create_error" in expected or len(halves) == 2:
        assert halves <= {"record_key", "partition_path"}
        return
    batch = batch_of(schema_from_ddl(case["schema"]), case["row"])
    try:
        generator = keygen.from_options(case["options"], instant_time=INSTANT)
    except ConfigError:
        assert "partition_path_error" in expected  # a wrong format is found when the generator is made
        return
    half = halves.pop()
    assert getattr(generator, half)(batch).to_pylist() == [expected[half]]
