"""The Spark example of the README, run as it is but for the session and the folder."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import pyhudi

ROOT = Path(__file__).resolve().parents[2]


def test_the_example_with_spark_runs(spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    example = next(text for text in blocks if "SparkSession" in text)
    example = re.sub(r"^spark = .*$", "", example, flags=re.M)
    example = example.replace("/tmp/trips", str(tmp_path / "trips")).replace("1_000_000", "1_000")
    assert "enable(spark)" in example
    try:
        namespace: dict[str, Any] = {"spark": spark}
        exec(compile(example, "README.md", "exec"), namespace)
    finally:
        pyhudi.disable(spark)
    table = pyhudi.HudiTable.open(str(tmp_path / "trips"))
    assert table.scan().count() == 1_000
    assert table.scan(where="fare = 9.5").count() == 100
    assert table.scan(as_of=namespace["first"], where="fare = 9.5").count() == 0
    assert "avg(fare)" in capsys.readouterr().out
