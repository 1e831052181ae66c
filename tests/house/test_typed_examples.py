"""The examples of README and the pages pass mypy --strict and pyright, as a user's script does."""

from __future__ import annotations

import ast
import builtins
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.pages import examples
from tests.support.source import ROOT

# Pages whose examples are no scripts: classes without annotations, as people write their first one; a call of dbt.
FRAGMENTS = {"merging.md", "dbt.md"}
PAGES = [p for p in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))) if p.name not in FRAGMENTS]
# Names that a page takes as known, and what they are.
KNOWN = {
    "HudiTable": "from pyhudi import HudiTable",
    "batch": "batch = cast(pa.RecordBatch, None)",
    "changes": "changes = cast(pa.Table, None)",
    "df": "df = cast(DataFrame, None)",
    "events": "events = cast(DataFrame, None)",
    "hudi_options": "hudi_options = cast(dict[str, str], None)",
    "key": "key = cast(str, None)",
    "path": "path = cast(str, None)",
    "pyhudi": "import pyhudi",
    "schema": "schema = cast(pa.Schema, None)",
    "secret": "secret = cast(str, None)",
    "spark": "spark = cast(SparkSession, None)",
    "table": "table = cast(HudiTable, None)",
    "write_hudi": "from pyhudi import write_hudi",
}
HEAD = """# mypy: allow-redefinition
from typing import cast
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyhudi import HudiTable
"""
OF_DUCKDB = "fetchall"  # duckdb.sql() says that it may return None


def scripts(folder: Path) -> list[str]:
    """Each page's examples, one after the other as one script in the folder. Needs no name that KNOWN lacks."""
    written = []
    for page in PAGES:
        text = "\n\n".join(examples(page.relative_to(ROOT).with_suffix("").as_posix()))
        if text:
            lines = [KNOWN[name] for name in sorted(_unbound(ast.parse(text)))]
            path = folder / f"page_{page.stem.replace('-', '_').lower()}.py"
            path.write_text(HEAD + "\n".join(lines) + f"\n# {page.name}\n" + text)
            written.append(str(path))
    assert len(written) > 15
    return written


def _unbound(tree: ast.AST, outer: frozenset[str] = frozenset(dir(builtins))) -> set[str]:
    """Names that are used and come from nowhere; arguments of a function are names inside it."""
    bound, used, inner = set(outer), set[str](), list[tuple[ast.AST, set[str]]]()
    queue = list(ast.iter_child_nodes(tree))
    while queue:
        node = queue.pop()
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            bound |= {(name.asname or name.name).partition(".")[0] for name in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            bound.add(node.name)
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            inner.append((node, {argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)}))
        else:
            queue.extend(ast.iter_child_nodes(node))
    for function, arguments in inner:
        used |= _unbound(function, frozenset(bound | arguments))
    return used - bound


WRONG = """from pyhudi import HudiTable, write_hudi
table = HudiTable.open("/tmp/t")
table.clean(commits_retained="few")
table.clean(record_key="id")
table.upsert([], recordkey="id")
table.upsert([], schema_mode=7)
write_hudi("/tmp/t", [], primary_key="id")
table.maintenance.archive(max_commits=3)
"""
WRONG_LINES = [3, 4, 5, 6, 7]


def test_mypy_strict_accepts_the_examples_and_refuses_wrong_arguments(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    wrong = tmp_path / "wrong.py"
    wrong.write_text(WRONG)
    command = [sys.executable, "-m", "mypy", "--no-error-summary", *scripts(tmp_path), str(wrong)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    errors = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert [line for line in errors if "/wrong.py:" not in line and OF_DUCKDB not in line] == [], done.stderr
    refused = {int(line.partition("/wrong.py:")[2].partition(":")[0]) for line in errors if "/wrong.py:" in line}
    assert sorted(refused) == WRONG_LINES


def test_pyright_accepts_the_examples_and_refuses_wrong_arguments(tmp_path: Path) -> None:
    pytest.importorskip("pyright")
    pyright = [sys.executable, "-m", "pyright"]
    try:
        subprocess.run([*pyright, "--version"], capture_output=True, check=True, timeout=120)
    except (subprocess.SubprocessError, OSError) as error:
        pytest.skip(f"pyright can't run here: it needs Node.js and fetches itself by npm once ({error})")
    (tmp_path / "wrong.py").write_text(WRONG)
    scripts(tmp_path)
    settings = {"include": ["."], "extraPaths": [str(ROOT)], "stubPath": str(ROOT / "typings")}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [*pyright, "--outputjson", "--project", str(tmp_path), "--pythonpath", sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    found = json.loads(done.stdout)
    assert found["summary"]["filesAnalyzed"] > 15
    errors = [each for each in found["generalDiagnostics"] if each["severity"] == "error"]
    pages = [f"{Path(e['file']).name}: {e['message']}" for e in errors if not e["file"].endswith("wrong.py")]
    assert [page for page in pages if OF_DUCKDB not in page] == []
    refused = {each["range"]["start"]["line"] + 1 for each in errors if each["file"].endswith("wrong.py")}
    assert sorted(refused) == WRONG_LINES
