"""The package root: its names, what importing it costs, and the docstrings behind public names."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

import pyhudi
import pyhudi.results
import pyhudi.schema
from tests.support.source import ROOT, modules


def test_public_names_are_sorted_and_within_their_budget():
    assert pyhudi.__all__ == sorted(pyhudi.__all__)
    assert len(pyhudi.__all__) <= 40, "results are in pyhudi.results, changes of columns in pyhudi.schema"
    assert len([name for name in dir(pyhudi.HudiTable) if not name.startswith("_")]) <= 45, "one in, one out"


@pytest.mark.parametrize("module", [pyhudi.results, pyhudi.schema])
def test_every_result_and_change_can_be_imported_and_says_what_it_is(module):
    assert module.__all__ == sorted(module.__all__)
    for name in module.__all__:
        assert (getattr(module, name).__doc__ or "").strip(), name
        if name not in pyhudi.__all__:
            with pytest.raises(AttributeError, match=f"It is {module.__name__}.{name} now"):
                getattr(pyhudi, name)


@pytest.mark.parametrize("name", [name for name in pyhudi.__all__ if name not in ("enable", "disable")])
def test_every_public_name_can_be_imported_and_says_what_it_is(name):
    value = getattr(pyhudi, name)
    assert name == "__version__" or (value.__doc__ or "").strip()


@pytest.mark.parametrize("name", ["enable", "disable"])
def test_the_spark_names_can_be_imported_where_pyspark_is(name):
    pytest.importorskip("pyspark", reason="PySpark is not installed")
    assert getattr(pyhudi, name).__doc__


def test_results_and_changes_of_columns_are_there_once_pyhudi_is_imported():
    code = "import pyhudi; print(pyhudi.results.CleanResult.__name__, pyhudi.schema.AddColumn.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.split() == ["CleanResult", "AddColumn"]


def test_another_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        pyhudi.nonsense  # noqa: B018


def test_importing_the_root_loads_neither_pyspark_nor_pyarrow_nor_pandas():
    heavy = "import sys, pyhudi; print([m for m in ('pyspark', 'pyarrow', 'pandas', 'numpy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", heavy], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "[]"


def test_the_front_desk_works_where_pyspark_is_not():
    code = "import sys; sys.modules['pyspark'] = None; from pyhudi import HudiTable, write_hudi; print('ok')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.strip() == "ok", done.stderr


def test_reading_a_table_loads_no_write_and_no_service(tmp_path):
    pyhudi.write_hudi(tmp_path / "t", [{"id": 1}], record_key="id")
    look = "t = pyhudi.HudiTable.open(sys.argv[1]); t.inspect.files(), t.scan().to_arrow()"
    code = f"import sys, pyhudi; {look}; print(*sys.modules)"
    command = [sys.executable, "-c", code, tmp_path / "t"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    loaded = set(done.stdout.split())

    assert "pyhudi.table.scan" in loaded
    assert (
        not {f"pyhudi.services.{name}" for name in ("compact.compaction", "cluster.calls", "clean.cleaning")} & loaded
    )
    assert (
        not {
            "pyhudi.table.write",
            "pyhudi.table.save",
            "pyhudi.table.imports.bootstrap",
            "pyhudi.services.versions.upgrade",
        }
        & loaded
    )


def test_listing_the_files_of_a_table_on_the_command_line_loads_no_arrow(tmp_path):
    pyhudi.write_hudi(tmp_path / "t", [{"id": 1}], record_key="id")
    code = "import sys; from pyhudi.cli.main import main; main(['table', 'files', sys.argv[1]]); print(*sys.modules)"
    command = [sys.executable, "-c", code, tmp_path / "t"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)

    assert done.stdout.startswith("partition_path")
    assert "pyhudi.view.file_system_view" in done.stdout.split()
    assert not {"pyarrow", "numpy", "pandas"} & set(done.stdout.split())


def test_the_health_and_the_page_of_a_table_load_no_pandas(tmp_path):
    # PyArrow imports pandas, where there is one, with the first array that is made of Python's values.
    options = {"hoodie.metadata.enable": "false"}
    pyhudi.write_hudi(tmp_path / "t", [{"id": 1}], record_key="id", options=options)
    look = "t = pyhudi.HudiTable.open(sys.argv[1]); t.inspect.health(), t.inspect.report()"
    code = f"import sys, pyhudi; {look}; print(*sys.modules)"
    command = [sys.executable, "-c", code, tmp_path / "t"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)

    assert "pyarrow" in done.stdout.split()
    assert "pandas" not in done.stdout.split()


LOOKED_AT = """
import sys
for name in sys.argv[1:]:
    sys.modules[name] = None  # as if it were not installed
import pydoc, rlcompleter, pyhudi
completer = rlcompleter.Completer({"pyhudi": pyhudi})
found = []
while (text := completer.complete("pyhudi.", len(found))) is not None:
    found.append(text.removeprefix("pyhudi.").rstrip("()"))
text = pydoc.plain(pydoc.render_doc(pyhudi))
shown = [name for name in pyhudi.__all__ if name in text or name == "__version__"]  # pydoc says VERSION
print(sorted(found), sorted(dir(pyhudi)), shown)
"""


@pytest.mark.parametrize("lacking", [(), ("pyspark",), ("pyspark", "duckdb", "pandas", "grpc")], ids="-".join)
def test_help_and_completion_show_the_public_names_and_nothing_else_whatever_is_installed(lacking):
    command = [sys.executable, "-c", LOOKED_AT, *lacking]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    names = sorted(pyhudi.__all__)
    assert done.stdout.strip() == f"{[name for name in names if not name.startswith('_')]} {names} {names}"


@pytest.mark.parametrize("name", ["disable", "enable", "write_batches_to"])
def test_what_needs_pyspark_says_so_when_it_is_called_without(name):
    code = f"import sys; sys.modules['pyspark'] = None; from pyhudi import ConfigError, {name}\ntry: {name}(None)\n"
    code += "except ConfigError as error: print(error)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    expected = f"pyhudi.{name} needs PySpark, which is not installed: pip install 'pyhudi[spark]'."
    assert done.stdout.strip() == expected, done.stderr


@pytest.mark.parametrize("name", ["HudiTable", "write_hudi", "enable"])
def test_a_pyarrow_that_refuses_the_numpy_that_is_there_says_what_to_install(name, tmp_path):
    refuses = "raise ImportError('pyarrow requires NumPy 2.0 or newer, found 1.26.4')"
    (tmp_path / "pyarrow").mkdir()
    (tmp_path / "pyarrow" / "__init__.py").write_text(refuses)
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\ntry: from pyhudi import {name}\n"
    code += "except ImportError as error: print(error)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert "found 1.26.4" in done.stdout, done.stderr
    assert "pip install 'pyhudi[spark35]'" in done.stdout


def test_the_version_is_the_one_of_the_project_file():
    text = (ROOT / "pyproject.toml").read_text()
    assert f'version = "{pyhudi.__version__}"' in text


def test_every_module_says_what_it_is():
    silent = [path for path, tree in modules().items() if tree.body and not ast.get_docstring(tree)]
    assert silent == []


def test_every_public_class_and_function_has_a_docstring():
    silent = []
    for path, tree in modules().items():
        exported = _exported(tree)
        silent += [
            f"{path}: {node.name}"
            for node in tree.body
            if isinstance(node, (ast.FunctionDef, ast.ClassDef))
            and node.name in exported
            and not ast.get_docstring(node)
            and not any(isinstance(each, ast.Name) and each.id == "overload" for each in node.decorator_list)
        ]
    assert silent == []


def _exported(tree: ast.Module) -> set[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            return set(ast.literal_eval(node.value))
    return set()
