"""How a run of `pyhudi` ends, and what it says then. Source: docs/cli.md."""

from __future__ import annotations

import inspect
import os
import re
import shlex
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from operator import attrgetter
from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import HudiTable, write_hudi
from pyhudi.cli.command import Command, load
from pyhudi.cli.commands import COMMANDS, GROUPS, command_of
from pyhudi.cli.main import main
from pyhudi.cli.options import COMMON_ARGUMENTS
from pyhudi.cli.parsing import help_of, parsed
from tests.support.commands import run_cli
from tests.support.servers.process import free_port
from tests.support.source import ROOT

ROWS = pa.table({"id": ["a", "b"], "city": ["rome", "oslo"], "fare": [1.0, 2.0]})


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lake") / "sales" / "rides"
    write_hudi(path, ROWS, record_key="id", partition_by="city")
    return path


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.words)
def test_a_row_names_a_method_that_takes_its_arguments(command: Command, table: Path) -> None:
    own = [load(command.own)] if command.own else []
    callables = [one for one in (*own, method_of(command, table)) if callable(one)]
    names = {name for one in callables for name in inspect.signature(one).parameters}

    assert {one.keyword for one in command.arguments} - names <= {"table", "yes"}
    assert command.group in GROUPS


def method_of(command: Command, table: Path) -> object:
    """The method that the row names, None without one."""
    if not command.method or command.method.startswith("pyhudi."):
        return getattr(pyhudi, command.method.removeprefix("pyhudi."), None)
    return attrgetter(command.method)(HudiTable.open(table))


@pytest.mark.thorough
def test_help_lists_every_command_and_imports_no_table() -> None:
    help_text = run_cli("--help").out
    imported = run_cli("--help", PYTHONPROFILEIMPORTTIME="1").err

    assert [command.words for command in COMMANDS if f"  {command.words} " not in help_text] == []
    assert "pyhudi.cli.main" in imported
    assert [name for name in ("pyarrow", "rich", "pyhudi.table", "pyhudi.storage") if f"| {name}\n" in imported] == []


@pytest.mark.thorough
def test_help_of_a_command_names_its_arguments() -> None:
    help_text = run_cli("table", "history", "--help").out

    assert "--since" in help_text
    assert "--storage-option" in help_text


def test_help_of_every_command_says_what_it_takes_and_means() -> None:
    for command in COMMANDS:
        text = "".join((help_of(command, ["x", "-h"]) or "").split())
        arguments = (*command.arguments, *COMMON_ARGUMENTS)
        said = [f"usage: pyhudi {command.usage} [OPTIONS] {command.summary}", *(one.meaning for one in arguments)]
        assert [one for one in said if "".join(one.split()) not in text] == []
        assert [name for one in arguments for name in one.typed if name not in text] == []
        assert help_of(command, ["--", "--help"]) is None


def test_a_command_that_is_not_there_ends_with_2_and_names_the_nearest() -> None:
    ran = run_cli("table", "heath", code=2)

    assert ran.out == ""
    assert ran.err.startswith("pyhudi: there is no command 'table heath'. Did you mean `pyhudi table health`")


@pytest.mark.thorough
def test_a_group_is_asked_for_by_its_words() -> None:
    for words in (["locks"], ["locks", "audit"]):
        assert "locks audit validate" in run_cli(*words, "--help").out
        assert "table describe" not in run_cli(*words, code=2).out


@pytest.mark.thorough
def test_an_argument_that_is_not_there_ends_with_2(table: Path) -> None:
    assert "--jsonn" in run_cli("table", "describe", table, "--jsonn", code=2).err


@pytest.mark.thorough
def test_a_refusal_ends_with_1_and_is_one_line_on_standard_error(tmp_path: Path) -> None:
    ran = run_cli("table", "files", tmp_path / "none", code=1)

    assert ran.out == ""
    assert ran.err.startswith("pyhudi: TableNotFound: No Hudi table at ")
    assert ran.err.count("\n") == 1


@pytest.mark.thorough
def test_debug_shows_where_an_error_comes_from(tmp_path: Path) -> None:
    assert "Traceback" in run_cli("table", "files", tmp_path / "none", "--debug", code=1).err


@pytest.mark.thorough
def test_a_catalog_is_a_folder_that_a_name_is_found_in(table: Path) -> None:
    ran = run_cli("table", "describe", "sales.rides", "--catalog", table.parents[1], "--json")

    assert ran.value["path"] == str(table)
    assert "--catalog takes a name" in run_cli("table", "describe", table, "--catalog", "x", code=1).err


@pytest.mark.thorough
def test_a_catalog_that_is_not_known_is_refused_with_those_that_are(table: Path) -> None:
    assert "no such folder" in run_cli("table", "describe", "rides", "--catalog", "glue", code=1).err
    assert "add --spark" in run_cli("table", "describe", "rides", "--catalog", "spark_catalog", code=1).err
    for catalog in ("spark_catalog", "thrift://localhost:1"):
        ran = run_cli("query", "SELECT 1", "--catalog", catalog, code=1)
        assert "--table NAME=PATH" in ran.err


@pytest.mark.thorough
def test_a_hive_metastore_says_where_a_table_is(table: Path) -> None:
    """Its Thrift interface is the real one; only its tables are not in a database."""
    with metastore({("sales", "rides"): str(table), ("default", "a_view"): None}) as uri:
        described = run_cli("table", "describe", "sales.rides", "--catalog", uri, "--json").value
        assert described["path"] == str(table)
        assert run_cli("head", "sales.rides", "--catalog", uri, "--csv").out.count("\n") == 3
        assert "no table default.rides" in run_cli("head", "rides", "--catalog", uri, code=1).err
        assert "it is a view" in run_cli("head", "a_view", "--catalog", uri, code=1).err
    nobody = f"thrift://127.0.0.1:{free_port()}"
    assert "No Hive metastore answers" in run_cli("head", "sales.rides", "--catalog", nobody, code=1).err


@contextmanager
def metastore(tables: dict[tuple[str, str], str | None]) -> Iterator[str]:
    """A server of the metastore's interface with these tables: database and name → location."""
    service = pytest.importorskip("pymetastore.hive_metastore.ThriftHiveMetastore")
    types = pytest.importorskip("pymetastore.hive_metastore.ttypes")
    from thrift.protocol.TBinaryProtocol import TBinaryProtocol
    from thrift.transport.TSocket import TServerSocket
    from thrift.transport.TTransport import TBufferedTransport, TTransportException

    class Handler:
        def get_table(self, dbname: str, tbl_name: str) -> object:
            if (dbname, tbl_name) not in tables:
                raise types.NoSuchObjectException(message=tbl_name)
            descriptor = types.StorageDescriptor(location=tables[dbname, tbl_name])
            return types.Table(tableName=tbl_name, dbName=dbname, sd=descriptor)

    port = free_port()
    listening = TServerSocket("127.0.0.1", port)
    listening.listen()
    processor = service.Processor(Handler())

    def serve() -> None:
        while True:
            try:
                protocol = TBinaryProtocol(TBufferedTransport(listening.accept()))
            except (OSError, AttributeError):
                return  # closed
            with suppress(TTransportException):
                while True:
                    processor.process(protocol, protocol)

    threading.Thread(target=serve, daemon=True).start()
    yield f"thrift://127.0.0.1:{port}"
    listening.close()


@pytest.mark.thorough
def test_json_and_csv_hold_the_same_rows(table: Path) -> None:
    as_json = run_cli("table", "partitions", table, "--json").value
    as_csv = run_cli("table", "partitions", table, "--csv").out

    assert as_csv.splitlines()[0] == ",".join(as_json[0])
    assert as_csv.splitlines()[1:] == [",".join(str(value) for value in row.values()) for row in as_json]
    assert run_cli("table", "partitions", table, "--csv", "--json", code=1).err.startswith("pyhudi: ConfigError")


@pytest.mark.thorough
def test_rows_have_their_names_above_them_where_there_is_none(table: Path) -> None:
    for words, names in {
        ("timeline", "--pending"): ["requested_time", "action", "state", "completion_time"],
        ("metadata", "validate"): ["partition", "where", "expected", "found"],
        ("index", "build"): ["name", "kind", "columns", "function", "is_built"],
    }.items():
        assert run_cli(*words, table, "--csv").out == ",".join(names) + "\n"
    assert run_cli("timeline", table, "--pending").out.split()[:4] == run_cli(
        "timeline", table, "--pending", "--csv"
    ).out.strip().split(",")


@pytest.mark.thorough
def test_truth_is_a_word_of_json_at_the_left_of_its_column(table: Path) -> None:
    lines = run_cli("table", "schema", table).out.splitlines()

    assert lines[0].split() == ["name", "type", "nullable"]
    assert {line[lines[0].index("nullable") :] for line in lines[2:]} == {"true"}


def on_terminal(columns: int, *words: object) -> str:
    """What a command writes on a terminal of this width."""
    import fcntl
    import pty
    import struct
    import subprocess
    import sys
    import termios

    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    command = [sys.executable, "-m", "pyhudi.cli", *map(str, words)]
    # The variables would count more than the terminal; a test's process may have them.
    environment = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES"}}
    process = subprocess.Popen(
        command, stdin=its, stdout=its, stderr=its, env={**environment, "TERM": "xterm"}, cwd=ROOT
    )
    os.close(its)
    written = b""
    with suppress(OSError):  # its end is closed
        while part := os.read(ours, 4096):
            written += part
    os.close(ours)
    assert process.wait() == 0
    return re.sub(r"\x1b\[[0-9;]*m|\r", "", written.decode())


@pytest.mark.thorough
def test_an_instant_time_is_never_folded_on_a_terminal(table: Path) -> None:
    (commit,) = run_cli("table", "history", table, "--json").value
    (file, *_) = run_cli("table", "files", table, "--json").value

    wide, narrow = (on_terminal(columns, "table", "history", table) for columns in (160, 80))
    files = on_terminal(100, "table", "files", table)

    for shown in (wide, narrow):
        assert commit["instant_time"] in shown.split()
        assert commit["completion_time"] in shown.split()
    assert next(line for line in narrow.splitlines() if line.strip()).split()[:2] == ["instant", "completed"]
    assert sum(commit["instant_time"] in line for line in narrow.splitlines()) == 1
    assert "not shown: " in narrow
    assert "timeline (--json, --csv, a wider terminal)" in " ".join(narrow.split())
    assert max(map(len, narrow.splitlines()[:4])) <= 80
    assert file["instant_time"] in files.split()
    assert file["path"] not in files.split()
    assert max(map(len, files.splitlines())) <= 100


@pytest.mark.thorough
def test_an_error_has_the_name_that_the_library_exports(table: Path) -> None:
    refused = run_cli("cluster", table, "--run", "20200101000000000", code=1).err

    assert refused.startswith("pyhudi: TableError: ")
    assert "there is no pending clustering 20200101000000000" in refused


@pytest.mark.thorough
def test_a_closed_pipe_ends_the_run_quietly_and_changes_no_exit_code(table: Path) -> None:
    import subprocess
    import sys

    command = f"{sys.executable} -m pyhudi.cli {{}} | (exec <&-; sleep 0.1); echo ${{{{PIPESTATUS[0]}}}}"
    for words in (f"table history {table}", "--help", f"table history {table} --json"):
        ended = subprocess.run(["bash", "-c", command.format(words)], capture_output=True, text=True, check=True)

        assert ended.stdout.strip() == "0"
        assert ended.stderr == ""


@pytest.mark.parametrize(
    ("line", "arguments"),
    [
        ("rollback T --yes I", {"table": "T", "instant_time": "I", "yes": True, "dry_run": False}),
        ("write T --mode append a.csv --format csv -", {"files": ["a.csv", "-"], "mode": "append", "format": "csv"}),
        ("head --rows=3 -- T", {"table": "T", "rows": 3}),
        ("head T -n5 --columns 'id, v'", {"rows": 5, "columns": ["id", "v"]}),
        ("head T --where '-1 < v'", {"where": "-1 < v"}),
        ("query '-- all of it\nSELECT 1' --table a=/b=c", {"sql": "-- all of it\nSELECT 1", "tables": {"a": "/b=c"}}),
        ("savepoint create T --comment '' I", {"comment": "", "instant_time": "I"}),
        ("config set T a=1 --yes b=2", {"properties": {"a": "1", "b": "2"}}),
        ("table history T --active", {"archived": False}),
    ],
)
def test_options_come_before_between_and_after_what_goes_by_place(line: str, arguments: dict[str, object]) -> None:
    command, tokens = command_of(shlex.split(line)) or (COMMANDS[0], [])

    _, values = parsed(command, tokens)

    assert {name: values.get(name) for name in arguments} == arguments


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("head T --colums id", "pyhudi head: there is no argument '--colums'. Did you mean --columns? (`pyhudi head -"),
        ("head T U", "pyhudi head: there is no argument 'U'."),
        ("head", "pyhudi head: the following arguments are required: TABLE"),
        ("restore T", "the following arguments are required: --to"),
        ("head T --rows many", "invalid int value: 'many'"),
        ("head T --column id", "Did you mean --columns?"),
        ("query 'SELECT 1' --dialect mysql", "invalid choice: 'mysql'"),
    ],
)
def test_what_a_command_does_not_take_ends_with_2_and_says_what_it_takes(
    line: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(shlex.split(line)) == 2
    assert words in capsys.readouterr().err
