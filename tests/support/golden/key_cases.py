"""The cases that real Hudi's key generators answered, and the answers that are expected here."""

from __future__ import annotations

import json
from typing import Any

from tests.support.golden.folder import SHARED

# Where PyHudi answers otherwise, on purpose. Everything else must be equal.
DIFFERENT = {
    118: "the year of 253402300800000 is not within 1 to 9999",
    163: "the year of 12024-01-15 is not within 1 to 9999",
    167: "the year of -0044-03-15 is not within 1 to 9999",
    216: "the year of a timestamp's microseconds, taken for milliseconds, is not within 1 to 9999",
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


def all_cases() -> list[dict[str, Any]]:
    path = SHARED / "golden" / "keygen-cases.json"
    return json.loads(path.read_text())["cases"] if path.is_file() else []


CASES = all_cases()


def refusal_of(case: dict[str, Any]) -> str:
    """Words that the error of a case in DIFFERENT has."""
    return "9999" if "9999" in DIFFERENT[case["id"]] else "folder"


def answer_of(case: dict[str, Any]) -> dict[str, Any]:
    (answer,) = [e for e in case["expected"] if "1.2.0" in e["versions"] and "write" in e["paths"]]
    return answer


def twin_of(case: dict[str, Any]) -> dict[str, Any] | None:
    """The answer to the same options under the prefix that Hudi knows."""
    options = {k.replace(STREAMER, "hoodie.keygen.timebased."): v for k, v in case["options"].items()}
    same = [c for c in CASES if c["options"] == options and c["row"].get("ts") == case["row"].get("ts")]
    return answer_of(same[0]) if same else None


def expected_of(case: dict[str, Any]) -> dict[str, Any]:
    if not any(key.startswith(STREAMER) for key in case["options"]):
        return answer_of(case)
    twin = twin_of(case)
    if twin is not None:
        return {k: v for k, v in twin.items() if k != "record_key"} | {"record_key": case["row"]["id"]}
    path = WITHOUT_TWIN[case["id"]]
    return {"record_key": case["row"]["id"], **({"partition_path": path} if path else {"partition_path_error": "x"})}
