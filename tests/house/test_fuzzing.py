"""The fuzzer lives: each target runs, its valid inputs are valid, and it finds what is planted."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fuzz.target import input_of
from fuzz.targets import TARGETS
from pyhudi.errors import CorruptFile
from tests.support.source import ROOT, modules

# Decoders that no target calls by name: why they need none.
CALLED_BY_OTHERS = {
    "decode_inner_index": "HFileReader", "decode_root_index": "HFileReader", "decode_entries": "HFileReader",
    "decode_together": "HFileReader",
    "decode_varints": "AvroDecoder", "decode_stat": "decode_commit", "parse_as_of": "a caller's own value",
    "parse_instant_time": "a caller's own value",
    "read_history_file": "LsmHistory", "parse_where": "the target where", "parse_json": "each decoder of JSON",
}  # fmt: skip


@pytest.mark.parametrize("name", TARGETS)
def test_a_targets_own_inputs_are_valid_or_refused_and_its_damage_is_the_same_each_time(name: str) -> None:
    target = TARGETS[name]
    seeds = target.seeds()

    assert seeds
    for data in seeds[:3]:
        try:
            target.run(data)
        except CorruptFile:
            assert name in (
                "locks",
                "manifests",
                "hash-rings",
                "internal-schemas",
                "protobuf",
                "positions",
                "history-files",
            )
    numbers = range(len(seeds), len(seeds) + 30)
    inputs = [input_of(target, seeds, 1, number) for number in numbers]
    assert inputs == [input_of(target, target.seeds(), 1, number) for number in numbers]
    assert len(set(inputs)) > 10


def _planted(data: bytes) -> None:
    if data.startswith(b"raise"):
        raise KeyError("planted")
    if data.startswith(b"loop"):
        while True:
            pass
    if data.startswith(b"memory"):
        bytearray(1 << 40)
    if data.startswith(b"long"):
        error = CorruptFile("")
        error.args = ("x" * 100_000,)  # a message is cut when the error is made
        raise error
    if data.startswith(b"family"):
        raise CorruptFile("an error of the family is none")
    if data.startswith(b"kill"):
        import ctypes

        ctypes.string_at(0)


PLANTED = {"raise": "KeyError", "memory": "MemoryError", "long": "long message", "kill": "SIGSEGV", "family": None}


def test_what_is_planted_is_found_with_its_input() -> None:
    code = """
from fuzz.run import fuzz
from fuzz.target import Target
from tests.house.test_fuzzing import PLANTED, _planted
for word in PLANTED:
    seeds = [b"good", word.encode() + b" with a tail"]
    outcome = fuzz(Target("planted", _planted, lambda: seeds), 1, None, 2)
    print(outcome.inputs, [(found.kind, found.data.decode()) for found in outcome.findings.values()])
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)

    expected = [[] if kind is None else [(kind, word)] for word, kind in PLANTED.items()]
    assert done.stdout.splitlines() == [f"2 {found}" for found in expected]


def test_the_command_runs_and_says_by_its_exit_code_that_nothing_was_found(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    done = subprocess.run(
        [sys.executable, "-m", "fuzz", "--inputs", "100", "--only", "file-names,protobuf", "--report", str(report)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr
    assert [line.split()[:2] for line in done.stdout.splitlines()[2:]] == [["file-names", "100"], ["protobuf", "100"]]
    assert not report.exists()


# Targets whose decoders still have findings: they run, and may find something.
BEING_MENDED: frozenset[str] = frozenset()


def test_no_target_finds_anything_in_forty_inputs(tmp_path: Path) -> None:
    names = ",".join(name for name in TARGETS if name not in BEING_MENDED)
    report = tmp_path / "report.json"
    done = subprocess.run(
        [sys.executable, "-m", "fuzz", "--inputs", "40", "--seed", "3", "--only", names, "--report", str(report)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr


def decoders() -> Iterator[str]:
    """Functions of the project that make values of what lies in files."""
    for path, tree in modules().items():
        if path.startswith(("pyhudi/formats/", "pyhudi/schema/", "pyhudi/model/filenames", "pyhudi/model/instant")):
            for node in tree.body:
                if isinstance(node, ast.FunctionDef) and node.name.startswith(("decode_", "parse_", "read_history")):
                    yield node.name


def test_every_decoder_has_a_target() -> None:
    text = "\n".join(path.read_text() for path in (ROOT / "fuzz").rglob("*.py"))
    without = [name for name in decoders() if name not in text and name not in CALLED_BY_OTHERS]

    assert without == [], "give them a target in fuzz/targets, or say in CALLED_BY_OTHERS who calls them"
