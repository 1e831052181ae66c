"""Names are Hudi's and the field's: private words do not come back, and no name means two things."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.source import ROOT, modules

# Private word → what it is called. Whole identifiers: `whole_body` or `sort_order` are nobody's private words.
PRIVATE = {
    "CarriedKeys": "ReusedFooter",
    "CleanDraft": "PlannedClean",
    "Coming": "LogRows",
    "Door": "OptionScope",
    "Folding": "CompactionService",
    "Leaving": "ReplacedBaseRows",
    "Order": "PreparedWrite",
    "Quieted": "RolledBackAndCompacted",
    "Retention": "ReadableHistory, RetentionRules",
    "StoredRows": "StoredKeyBatch, SliceReader",
    "asked": "what it holds: requested, query, read_options",
    "beside": "what it holds",
    "beside_base": "split_merge",
    "blaming": "as_corrupt_file",
    "busy_groups": "groups_in_pending_plans",
    "carried_keys": "reused_footer",
    "check_files_stayed": "check_no_files_removed",
    "coming": "log_rows",
    "deserted": "emptied",
    "door": "scope",
    "doors": "scopes",
    "draft_clean": "plan_clean",
    "drafting": "planner",
    "files_there": "stale_read_if_missing",
    "fold": "merge, merge_versions",
    "folded": "merged, compacted",
    "forget_completed": "delete_leftovers",
    "going": "to_delete",
    "gone": "what happened: deleted, replaced, rolled_back",
    "gone_files": "missing_files",
    "groups_to_keep_off": "groups_closed_to_inserts",
    "is_deserted": "is_emptied",
    "is_gone": "is_partition_deleted",
    "keyed": "with_record_keys",
    "leaving": "replaced",
    "leaving_nothing": "table_removed_on_error",
    "let_go": "close_quietly",
    "lets": "allows_updates",
    "load_history": "load_archived_timeline, load_schema_history",
    "looking_up": "index_lookup",
    "minds_plans": "yields_to_plans",
    "naming_rows": "delete_keys",
    "quiet_table": "rollback_and_compact",
    "quieten": "rollback_and_compact",
    "read_plan": "column_mapping",
    "read_steadily": "read_consistently",
    "replaced_groups": "groups_replaced_by, load_replaced_groups",
    "rivals": "duplicate_key_rows",
    "row_marks": "keys_and_deletes",
    "said": "what it holds: fields, given, message",
    "seen": "what it holds: names, known, outcomes",
    "stacked": "concat_rows",
    "steady_read": "consistent_read",
    "told": "parsed",
    "told_values": "parsed_path_values",
    "unminded": "ignored_instants",
}
# Variables too, but for these, which are plain English there.
WHOLE = {"whole": "single_array"}

LINES_MAX = 14

# What the prose of code, tests and pages says in plainer words: the pattern of a word → what to say.
PLAINER = {
    r"besides?": "next to, with, as well as, while",
    r"fold(s|ed|ing)?": "merge, compact",
    r"st(and|ands|ood|anding)(?!-in| in for| for| still)": "is",
}
PROSE = ("pyhudi", "pyspark_hudi", "tests", "docs", "changes", "bench", "fuzz", "mutants")


def identifiers(path: str, tree: ast.Module) -> Iterator[str]:
    """Every name that a module uses or gives: modules, functions, classes, parameters, variables, attributes."""
    yield from path.removesuffix(".py").split("/")
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, (ast.arg, ast.keyword)):
            yield node.arg or "**"
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr


def found_in(path: str, tree: ast.Module) -> list[str]:
    """The private words of a module, each with the word to take instead."""
    return [f"{path}: {name}, say {PRIVATE[name]}" for name in sorted({*identifiers(path, tree)} & PRIVATE.keys())]


def test_no_identifier_is_a_private_word():
    assert [found for path, tree in modules().items() for found in found_in(path, tree)] == []


def test_no_function_is_called_by_a_word_that_is_plain_english_for_a_variable_only():
    functions = [
        f"{path}: {node.name}, say {WHOLE[node.name]}"
        for path, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name in WHOLE
    ]

    assert functions == []


@pytest.mark.parametrize(
    "source",
    [
        "class Door: ...",
        "def f(told): ...",
        "gone = 1",
        "f(lets=True)",
        "x.minds_plans",
        "async def quieten(): ...",
    ],
)
def test_a_private_word_is_found_wherever_a_name_may_be(source: str):
    assert len(found_in("pyhudi/some.py", ast.parse(source))) == 1


def test_no_two_public_classes_have_one_name():
    homes = defaultdict(list)
    for path, tree in modules().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(path)

    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}


@pytest.mark.parametrize("word", ["gone", "asked"])
def test_prose_says_what_happened_instead_of_gone_and_who_called_instead_of_asked(word: str):
    lines = [
        f"{path}:{number}"
        for path in modules()
        for number, line in enumerate((ROOT / path).read_text().splitlines(), 1)
        if re.search(rf"\b{word}\b", line, re.IGNORECASE)
    ]

    assert len(lines) <= LINES_MAX, lines


def prose() -> Iterator[tuple[str, int, str]]:
    """Every line of code, tests and pages, with its file and number; the words of this test are its own."""
    files = [file for folder in PROSE for kind in ("*.py", "*.md", "*.java") for file in (ROOT / folder).rglob(kind)]
    for file in sorted([*ROOT.glob("*.md"), *files]):
        if file != Path(__file__):
            for number, line in enumerate(file.read_text().splitlines(), 1):
                yield file.relative_to(ROOT).as_posix(), number, line


def plainer(line: str) -> list[str]:
    """What to say instead of the words of a line that have a plainer one."""
    return [say for word, say in PLAINER.items() if re.search(rf"\b{word}\b", line, re.IGNORECASE)]


def test_prose_of_code_tests_and_pages_takes_the_plainer_word():
    assert [f"{path}:{number}: say {say}" for path, number, line in prose() for say in plainer(line)] == []


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("Besides this, the marker stands in the folder.", 2),
        ("Log files are folded.", 1),
        ("A star stands for any text; a stand-in stands still.", 0),
        ("folders", 0),
    ],
)
def test_a_word_that_has_a_plainer_one_is_found(line: str, count: int):
    assert len(plainer(line)) == count


def test_no_identifier_of_the_tests_is_called_by_what_somebody_did():
    found = [
        f"{file.relative_to(ROOT)}: {name}"
        for folder in ("tests", "bench", "fuzz", "mutants")
        for file in sorted((ROOT / folder).rglob("*.py"))
        for name in sorted({"said", "seen", "told"} & {*identifiers(file.name, ast.parse(file.read_text()))})
    ]

    assert found == []
