"""Who may import and call what; the import directions themselves are import-linter's (`make check`)."""

from __future__ import annotations

import ast
from collections import defaultdict

from tests.support.source import attribute_chains, imported_names, modules

_CLOCK = (
    "time.time",
    "time.time_ns",
    "time.sleep",
    "time.perf_counter",
    "time.monotonic",
    "datetime.now",
    "datetime.datetime.now",
    "datetime.utcnow",
    "datetime.today",
    "date.today",
    "uuid.uuid1",
    "uuid.uuid4",
    "os.urandom",
    "secrets.token_hex",
)


def _imports(prefix: str) -> list[str]:
    return [
        f"{path}:{line}"
        for path, tree in modules().items()
        for name, line in imported_names(tree)
        if name == prefix or name.startswith(prefix + ".")
    ]


def test_pyspark_is_imported_in_the_spark_folders_only():
    allowed = ("pyhudi/spark/", "pyhudi/session/", "pyspark_hudi/")
    elsewhere = [at for at in _imports("pyspark") if not at.startswith(allowed)]
    assert elsewhere == []


def test_no_attribute_is_computed_under_the_lock_of_all_objects_of_its_class():
    """`functools.cached_property` has one until Python 3.11; `lazy_property` has none."""
    elsewhere = [at for at in _imports("functools.cached_property") if not at.startswith("pyhudi/lazy_property.py")]
    assert elsewhere == []


def test_one_module_asks_which_spark_this_is():
    """Elsewhere nothing compares versions, or looks whether PySpark has something."""
    others = {path: tree for path, tree in modules().items() if path != "pyhudi/spark/capabilities.py"}
    asked = [
        f"{path}:{line} {name}"
        for path, tree in others.items()
        for name, line in [*attribute_chains(tree), *imported_names(tree)]
        if name.startswith(("pyspark.__version__", "pyspark.version")) or name.endswith("spark.version")
    ]
    of_spark = ("pyhudi/spark/", "pyhudi/session/", "pyspark_hudi/")
    looked = [
        f"{path}:{node.lineno}"
        for path, tree in others.items()
        if path.startswith(of_spark)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("hasattr", "find_spec")
    ]
    assert asked + looked == []


def test_pyarrow_fs_is_imported_in_storage_only():
    assert [at for at in _imports("pyarrow.fs") if not at.startswith("pyhudi/storage/")] == []


def test_the_clock_and_random_ids_are_asked_for_in_one_file():
    used = [
        f"{path}:{line} {name}"
        for path, tree in modules().items()
        if path != "pyhudi/storage/clock.py"
        for name, line in attribute_chains(tree)
        if name in _CLOCK
    ]
    imported = [
        f"{path}:{line} {name}"
        for path, tree in modules().items()
        if path != "pyhudi/storage/clock.py"
        for name, line in imported_names(tree)
        if name in _CLOCK
    ]
    assert used + imported == []


def test_no_modules_of_a_package_import_each_other_in_a_circle_not_even_for_types():
    names = {path.removesuffix(".py").replace("/", ".").removesuffix(".__init__"): path for path in modules()}
    imports = {
        name: {
            found
            for node in ast.walk(modules()[path])
            if isinstance(node, ast.ImportFrom) and node.module
            for alias in node.names
            for found in (f"{node.module}.{alias.name}", node.module)
            if found in names and found != name and found.split(".")[:2] == name.split(".")[:2]
        }
        for name, path in names.items()
    }
    left = dict(imports)
    while free := [name for name, needed in left.items() if not needed & left.keys()]:
        left = {name: needed for name, needed in left.items() if name not in free}
    assert sorted(left) == []


def test_no_module_unpickles():
    # Tasks travel to executors as Spark itself sends them; table files never.
    allowed = ("pyhudi/spark/", "pyhudi/session/")
    found = [at for name in ("pickle", "cloudpickle", "marshal", "shelve") for at in _imports(name)]
    assert [at for at in found if not at.startswith(allowed)] == []


_OF_THE_JVM = {"_jvm", "_jsc", "_jdf", "_jc", "_jconf", "_jreader", "_jwrite", "_jsparkSession", "sparkContext", "rdd"}


def test_no_module_reaches_into_the_jvm():
    reached = [
        f"{path}:{line} {name}"
        for path, tree in modules().items()
        for name, line in attribute_chains(tree)
        if {*name.split(".")[1:]} & _OF_THE_JVM
    ]
    assert reached == []


def test_no_module_has_a_name_that_says_nothing():
    names = [
        path for path in modules() if path.rpartition("/")[2] in ("utils.py", "helpers.py", "common.py", "misc.py")
    ]
    assert names == []


def _attributes(*names: str) -> list[str]:
    return [
        f"{path}:{node.lineno}"
        for path, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in names
    ]


def test_nothing_but_commit_completes_an_instant():
    """All instants end in one transaction, so that none forgets a check, or the metadata table; its own do, too."""
    calls = _attributes("complete")
    assert [at.partition(":")[0] for at in calls] == ["pyhudi/transaction/commit.py"], calls


def test_files_of_instants_are_written_and_deleted_in_transaction_alone():
    """The data table's actions, its services and the metadata table change states by the same few functions."""
    used = [
        *_imports("pyhudi.transaction.instants.TimelineWriter"),
        *(
            f"{path}:{line}"
            for path, tree in modules().items()
            for name, line in attribute_chains(tree)
            if "TimelineWriter" in name.split(".")
        ),
    ]
    assert [at for at in used if not at.startswith("pyhudi/transaction/")] == []
    assert used  # it has this name


def test_plans_on_the_timeline_are_decoded_in_one_place():
    plans = tuple(f"decode_{kind}_plan" for kind in ("clean", "clustering", "compaction", "restore", "rollback"))
    decoding = {
        path
        for path, tree in modules().items()
        for name, _ in imported_names(tree)
        if name.endswith(plans) and not path.startswith("pyhudi/formats/")
    }
    assert decoding == {"pyhudi/timeline/read.py"}


def test_no_two_public_classes_have_one_name():
    homes = defaultdict(list)
    for path, tree in modules().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(path)

    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}
