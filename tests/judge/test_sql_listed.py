"""What is recorded of real Hudi's answers to the lists of statements is what it answers."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.judge.real_hudi import Judge
from tests.support.sql.recorded import TOPICS, ask_real_hudi, recorded
from tests.support.sql.statements import cases

pytestmark = pytest.mark.slow

_TASK = re.compile(r"<instant>_\d+_\d+")  # numbers of the task and of its row are others in each run

# Real Hudi tells comments of columns in a session of their own, and not where tables of the name were there before.
_COMMENTS = ("DESCRIBE EXTENDED t id", "DESCRIBE QUERY SELECT id, name FROM t")


def _shown(row: object) -> str:
    return _TASK.sub("<instant>_<task>_<row>", json.dumps(row))


def test_real_hudi_answers_as_it_is_recorded(judge: Judge, tmp_path: Path) -> None:
    """`judge`: it is set up."""
    listed = {topic: cases(f"{topic}.sql") for topic in TOPICS}
    answers = ask_real_hudi([case for found in listed.values() for case in found], tmp_path)
    differing = []
    for topic, found in listed.items():
        kept = recorded(topic)
        for case in found:
            for was, now in zip(kept[case.name], answers[case.name], strict=True):
                if was["sql"] in _COMMENTS or ("refused" in was and "refused" in now):
                    continue
                rows = [sorted(map(_shown, answer.get("rows", []))) for answer in (was, now)]
                if was.get("columns") != now.get("columns") or rows[0] != rows[1]:
                    differing.append(f"{case.name}\nrecorded: {json.dumps(was)}\nnow: {json.dumps(now)}")
    assert not differing, "\n\n".join(differing)
