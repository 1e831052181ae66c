"""What real Hudi 1.2.0 did with the statements of the lists, and whether an answer is the same.

    python -m tests.support.sql.recorded [topic ...]      has real Hudi answer what the files in `recorded/` lack

A topic that is named goes there as a whole. `waiting.sql` has cases without a record: moved into the file of their
topic they are recorded by the next call. The judge of the shared folder has to be set up (`make judge` does it). Spark
3.5 runs there with ANSI mode on.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.golden.folder import shared_folder
from tests.support.sql.statements import Case, cases

__all__ = ["TOPICS", "Answer", "ask_real_hudi", "is_recorded", "masked", "problem", "recorded"]

TOPICS = ("create", "insert", "merge", "queries", "alter", "show", "calls")
Answer = dict[str, Any]

_RECORDED = Path(__file__).parent / "recorded"
_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_MASKS = (
    (re.compile(r"\.?" + _UUID + r"(?:-\d+)?(?:_\d+-\d+-\d+)?"), "<file>"),
    (re.compile(r"(?<!\d)20\d{15}(?!\d)"), "<instant>"),
    (re.compile(r"^\d\d-\d\d \d\d:\d\d:\d\d$"), "<time>"),
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d\.\d{1,6}(?=$)"), "<time>"),
)
_NOT_COMPARED = re.compile(r"bytes|size|millis|duration|_time_|time_cost|storage|start_clean_time|write_amplification")


def recorded(topic: str) -> Mapping[str, list[Answer]]:
    """By case what real Hudi answered, statement by statement; `sql` is the statement."""
    place = _RECORDED / f"{topic}.json"
    answers: dict[str, list[Answer]] = json.loads(place.read_text()) if place.exists() else {}
    return answers


def is_recorded(case: Case, answers: Mapping[str, list[Answer]]) -> bool:
    """Whether a record has just the statements of a case."""
    return [answer["sql"] for answer in answers.get(case.name, ())] == [text for text, _ in case.statements]


def ask_real_hudi(asked: Sequence[Case], folder: Path) -> dict[str, list[Answer]]:
    """Run cases in one session with real Hudi; answers as they are recorded."""
    judge = shared_folder() / "judge"
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pyhudi-judge"
    python = next(cache.glob("venv-*/bin/python"))
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK", "PYSPARK", "PYTHON"))}
    env = {**kept, "TZ": "UTC", "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": str(python)}
    folder.mkdir(parents=True, exist_ok=True)
    answers = folder / "answers.json"
    given = json.dumps([{"name": case.name, "statements": [text for text, _ in case.statements]} for case in asked])
    with (folder / "log").open("w") as log:
        program = Path(__file__).with_name("in_session.py")
        subprocess.run(
            [python, program, judge, folder / "tables", answers], input=given, text=True, check=True, env=env,
            cwd=folder, stdout=log, stderr=log,
        )  # fmt: skip
    found = [json.loads(line) for line in answers.read_text().splitlines()]
    tables = str(folder / "tables")
    return {
        case.name: [
            {"sql": text, **masked(answer, f"{tables}/{number}")}
            for (text, _), answer in zip(case.statements, one["answers"], strict=True)
        ]
        for number, (case, one) in enumerate(zip(asked, found, strict=True))
    }


def masked(answer: Answer, folder: str) -> Answer:
    """An answer without folders, instants, names of files, sizes and durations."""
    if not answer.get("columns"):
        return answer
    hidden = [_NOT_COMPARED.search(name) is not None for name, _ in answer["columns"]]
    rows = [
        ["<n>" if hide else _masked(value, folder) for hide, value in zip(hidden, row, strict=True)]
        for row in answer["rows"]
    ]
    return {**answer, "rows": rows}


def _masked(value: Any, folder: str) -> Any:
    if isinstance(value, list):
        return [_masked(part, folder) for part in value]
    if isinstance(value, dict):
        return {key: _masked(part, folder) for key, part in value.items()}
    if not isinstance(value, str):
        return value
    text = value.replace(f"file://{folder}", "<folder>").replace(f"file:{folder}", "<folder>")
    text = text.replace(folder, "<folder>")
    for pattern, word in _MASKS:
        text = pattern.sub(word, text)
    return text


def problem(case: Case, number: int, ours: Answer, theirs: Answer) -> str | None:
    """What is wrong with our answer to a statement; None when it is what the list and the record say."""
    statement, expected = case.statements[number]
    same = _same(statement, ours, theirs)
    if number not in case.differing:
        return None if same else f"{statement}\n  here: {_short(ours)}\n  Hudi: {_short(theirs)}"
    if same:
        return f"{statement}\n  is said to differ, and does not: {_short(ours)}"
    if ("refused" in ours) != (number in case.refused):
        return f"{statement}\n  here: {_short(ours)}"
    if expected is not None:
        names = [name for name, _ in ours["columns"]]
        found = [dict(zip(names, row, strict=True)) for row in ours["rows"]]
        if found != expected:
            return f"{statement}\n  here: {json.dumps(found)}\n  list: {json.dumps(expected)}"
    return None


def _same(statement: str, ours: Answer, theirs: Answer) -> bool:
    if "refused" in ours or "refused" in theirs:
        return ("refused" in ours) == ("refused" in theirs)
    if ours.get("columns") != theirs.get("columns"):
        return False
    is_ordered = "ORDER BY" in statement or statement.split(maxsplit=1)[0] in ("DESC", "DESCRIBE", "SHOW", "CALL")
    mine, other = ([json.dumps(row, sort_keys=True) for row in answer.get("rows", [])] for answer in (ours, theirs))
    return mine == other if is_ordered else sorted(mine) == sorted(other)


def _short(answer: Answer) -> str:
    if "refused" in answer:
        return f"refused: {answer['refused']}"
    return json.dumps(answer.get("columns")) + " " + json.dumps(answer.get("rows"))


def write(topic: str, answers: Mapping[str, list[Answer]]) -> None:
    """Keep answers: a statement's on a line of its own."""
    parts = []
    for name, found in answers.items():
        lines = ",\n  ".join(json.dumps(answer, ensure_ascii=False) for answer in found)
        parts.append(f"{json.dumps(name, ensure_ascii=False)}: [\n  {lines}\n]")
    _RECORDED.mkdir(exist_ok=True)
    (_RECORDED / f"{topic}.json").write_text("{\n" + ",\n".join(parts) + "\n}\n")


def main(topics: Sequence[str]) -> None:
    """Record what is not recorded yet; topics that are named as a whole."""
    kept = {topic: {} if topic in topics else recorded(topic) for topic in TOPICS}
    lists = {topic: cases(f"{topic}.sql") for topic in TOPICS}
    asked = [case for topic, listed in lists.items() for case in listed if not is_recorded(case, kept[topic])]
    with tempfile.TemporaryDirectory() as folder:
        answers = ask_real_hudi(asked, Path(folder))
    for topic, listed in lists.items():
        write(topic, {case.name: answers.get(case.name) or kept[topic][case.name] for case in listed})


if __name__ == "__main__":
    main(sys.argv[1:])
