"""Every case that real Hudi's key generators answered, path `write` of 1.2.0."""

from __future__ import annotations

from typing import Any

import pytest

from pyhudi import keygen
from pyhudi.errors import ConfigError, KeyGenError
from tests.support.golden.key_cases import (
    CASES,
    DIFFERENT,
    INSTANT,
    expected_of,
    refusal_of,
)
from tests.support.values.ddl import batch_of, schema_from_ddl


def test_all_cases_are_here(shared: Any) -> None:
    assert len(CASES) == 655


@pytest.mark.filterwarnings("ignore:Time zone .* is not a name")
@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["id"]))
def test_key_and_path_are_those_of_real_hudi(case: dict[str, Any]) -> None:
    expected = expected_of(case)
    batch = batch_of(schema_from_ddl(case["schema"]), case["row"])
    automatic = "Auto" in expected.get("key_generator", "")

    if case["id"] in DIFFERENT:
        generator = keygen.from_options(case["options"])
        with pytest.raises(KeyGenError, match=refusal_of(case)):
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
    expected = expected_of(case)
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
