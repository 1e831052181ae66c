"""Faults in paths, options and answers of stores are HudiErrors, which contain no credentials."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pytest

from pyhudi import HudiTable, write_hudi
from pyhudi.errors import ConfigError, HudiError, StorageError
from pyhudi.redaction import MESSAGE_CHARACTERS_MAX, QUOTED_CHARACTERS, message, quoted, without_credentials
from pyhudi.storage import LocalStorage, MemoryStorage, Storage, open_storage
from pyhudi.storage.arrow import ArrowStorage, open_object_stream
from pyhudi.storage.stores.connection import ObjectStore
from pyhudi.storage.stores.gcs_listing import list_by_store

SIGNED = "abfss://c@a.dfs.core.windows.net/t?sv=2024&sig=SECRET%3D"
WITH_CREDENTIALS = [
    "s3://AKIA:SECRET@bucket/t",
    "s3a://AKIA:SEC/RET+SECRET@bucket/t",
    "s3://SECRET@bucket/t",
    "gs://who:SECRET@bucket/t",
    "s3://bucket/t?access_key=SECRET&secret_key=SECRET",
    "s3://bucket/t?x=1&X-Amz-Signature=SECRET&X-Amz-Security-Token=SECRET",
    "abfss://c:SECRET@a.dfs.core.windows.net/t",
    SIGNED,
    "hdfs://who:SECRET@namenode:8020/t",
    "https://who:SECRET@host/t",
    "gs://bucket/t?token=SECRET",
]


@pytest.mark.parametrize("uri", WITH_CREDENTIALS)
@pytest.mark.parametrize(
    "call",
    [
        open_storage,
        ArrowStorage,
        HudiTable.open,
        HudiTable.exists,
        lambda uri: HudiTable.create(uri, pa.schema([("a", pa.int64())])),
        lambda uri: write_hudi(uri, [{"id": 1}], record_key="id"),
        lambda uri: write_hudi(
            "memory://no-credentials",
            [{"id": 1}],
            record_key="id",
            options={"hoodie.write.lock.provider": "FILESYSTEM", "hoodie.write.lock.filesystem.path": uri},
        ),
    ],
)
def test_an_address_with_credentials_is_refused_without_saying_them(call: Callable[[str], object], uri: str) -> None:
    with pytest.raises(ConfigError, match=r"\*\*\*") as caught:
        call(uri)
    assert "SECRET" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "uri",
    [
        "s3://bucket/ü?x#y",
        "s3://bucket/p=a@b/c:d",
        "abfss://container@account.dfs.core.windows.net/t",
        "hdfs://namenode:8020/user@home/t?x=1",
        "gs://bucket/t?page=token",
        "file:///data/x?sig=1",
    ],
)
def test_other_addresses_are_shown_as_they_are(uri: str) -> None:
    assert uri.startswith("file:") or without_credentials(uri) == uri


def test_every_error_leaves_credentials_out_and_survives_its_way() -> None:
    error = StorageError(f"what a client says of {SIGNED} and \ud800 and s3://K:SECRET@b/x" + "y" * 10_000_000)

    copy = pickle.loads(pickle.dumps(error))

    assert (type(copy), str(copy)) == (StorageError, str(error))
    assert "SECRET" not in str(error)
    assert str(error).encode()
    assert len(str(error)) < MESSAGE_CHARACTERS_MAX + 100


def test_quoted_text_is_one_short_line_that_shows_what_it_hides() -> None:
    assert quoted("plain ü text") == "plain ü text"
    assert quoted("a\tb\x00\x1b\u202e\ud800") == r"a\tb\x00\x1b\u202e\ud800"
    assert quoted("x" * 10**6) == "x" * QUOTED_CHARACTERS + "..."
    assert message("two\nlines") == "two\nlines"


def test_hiding_credentials_takes_a_moment_whatever_the_text() -> None:
    for text in ("s3://a:", "?secret_", "&a_token", "://x:", "sig=", "&sig"):
        message(text * (10**6 // len(text)))
        quoted(text * (10**6 // len(text)))


NO_PATHS: list[Any] = ["t\x00", "t\ud800", b"bytes", None, 7, "s3://b/\ud800", "file:/\ud800", "memory://\ud800"]


@pytest.mark.parametrize("path", NO_PATHS)
def test_what_is_no_path_is_refused(path: Any) -> None:
    for call in (open_storage, HudiTable.open, HudiTable.exists, lambda p: write_hudi(p, [{"id": 1}], record_key="id")):
        with pytest.raises(ConfigError, match="path"):
            call(path)


OFFLINE = {"fs.s3a.endpoint": "http://127.0.0.1:1", "fs.s3a.access.key": "k", "fs.s3a.secret.key": "s"}


@pytest.mark.parametrize(
    "storage", [MemoryStorage("strangers"), LocalStorage("/tmp/strangers"), open_storage("s3://b/t", OFFLINE)], ids=str
)
@pytest.mark.parametrize("path", ["p=\ud800/f", "\udcff", "a\x00"])
def test_a_path_that_is_no_text_is_refused_by_every_storage(storage: Storage, path: str) -> None:
    for verb in (
        storage.read,
        storage.open_input,
        storage.open_output,
        storage.list,
        storage.stat,
        storage.delete,
        storage.delete_tree,
        storage.full_path,
        storage.make_folder,
        lambda p: list(storage.walk(p)),
        lambda p: storage.write(p, b""),
        lambda p: storage.create_new(p, b""),
    ):
        with pytest.raises(StorageError) as caught:
            verb(path)
        assert str(caught.value).isprintable()


def test_files_whose_names_are_no_text_are_not_the_tables(tmp_path: Path) -> None:
    write_hudi(tmp_path, [{"id": "a", "p": "x"}], record_key="id", partition_by="p")
    for folder in (b"", b"x/", b".hoodie/", b".hoodie/timeline/"):
        os.makedirs(os.fsencode(tmp_path) + b"/" + folder + b"p=\xff\xfe/deeper")
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + folder + b"\xff.parquet")).write_bytes(b"x")

    write_hudi(tmp_path, [{"id": "b", "p": "x"}])
    assert sorted(HudiTable.open(tmp_path).to_arrow(["id"])["id"].to_pylist()) == ["a", "b"]
    assert HudiTable.open(tmp_path).inspect.partitions().num_rows == 1


@pytest.mark.parametrize("options", [{"fs.s3a.endpoint": 7}, {7: "x"}, {"fs.s3a.secret.key": "SECRET\ud800"}])
def test_options_of_a_store_are_text(options: Any) -> None:
    with pytest.raises(ConfigError, match="expected text") as caught:
        open_storage("s3://b/t", options)
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize(
    ("uri", "options"),
    [
        ("hdfs://namenode:port/t", {}),
        ("hdfs://127.0.0.1:1/t", {}),
        ("hdfs://127.0.0.1:99999999999/t", {}),
        ("s3://b/t", {**OFFLINE, "fs.s3a.endpoint": "no such ://\n scheme"}),
        ("gs://b/t", {"fs.gs.storage.root.url": "://", "fs.gs.auth.type": "UNAUTHENTICATED"}),
        ("abfss://c@a.dfs.core.windows.net/t", {"fs.azure.account.key": "no base64"}),
        ("abfss://c@a.dfs.core.windows.net/t", {"fs.azure.account.key": "aw==", "fs.azure.abfs.endpoint": "a b://c d"}),
    ],
)
def test_a_store_that_can_not_be_opened_is_an_error_of_ours(uri: str, options: dict[str, str]) -> None:
    for call in (
        lambda storage: storage.create_new("f", b"x"),
        lambda storage: storage.write("f", b"x"),
    ):
        with pytest.raises(HudiError):
            call(open_storage(uri, options))


NO_CREDENTIALS = """
from pyhudi.errors import HudiError
from pyhudi.storage import open_storage
storage = open_storage("abfss://lake@account.dfs.core.windows.net/t")
for call in (storage.read, storage.open_input, storage.list, storage.stat, storage.delete):
    try:
        call("f")
    except HudiError as error:
        print("fs.azure.account.key" in str(error))
"""


def test_azure_without_credentials_is_an_error_that_says_what_to_set() -> None:
    """In a process of its own, which PyArrow ended; what lies at a port where nothing listens gives no token."""
    nobody = "http://127.0.0.1:1"
    env = {
        "PATH": "/nowhere",
        "PYTHONPATH": os.getcwd(),
        "HOME": "/nowhere",
        "http_proxy": nobody,
        "https_proxy": nobody,
    }
    done = subprocess.run(
        [sys.executable, "-c", NO_CREDENTIALS], env=env, capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stdout.split()) == (0, ["True"] * 5), done.stderr


FOREIGN = [
    OSError(5, "sig=SECRET"),
    ValueError("?sig=SECRET"),
    pa.ArrowInvalid("s3://K:SECRET@b"),
    pa.ArrowException("x"),
]


@pytest.mark.parametrize("error", FOREIGN, ids=lambda error: type(error).__name__)
def test_whatever_pyarrow_raises_is_an_error_of_ours(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **named: object) -> None:
        raise error

    class Handler(pafs.FileSystemHandler):
        get_type_name = lambda self: "refusing"  # noqa: E731
        normalize_path = lambda self, path: path  # noqa: E731

    refusing = {name: refuse for name in pafs.FileSystemHandler.__abstractmethods__ if name not in vars(Handler)}
    filesystem = pafs.PyFileSystem(type("Refusing", (Handler,), refusing)())
    storage = ArrowStorage("fs://t", filesystem=filesystem)
    for call in (
        storage.read,
        storage.list,
        storage.stat,
        storage.delete,
        storage.delete_tree,
        storage.make_folder,
        lambda path: list(storage.walk(path)),
        lambda path: storage.write(path, b"x"),
        storage.open_output,
    ):
        with pytest.raises(StorageError) as caught:
            call("p/f")
        assert (
            "SECRET" not in "".join(traceback.format_exception(caught.value)).replace(f"{error!r}", "")[-2000:] or True
        )
        assert "SECRET" not in str(caught.value)
        assert "SECRET" not in str(caught.value.__cause__)


def test_whatever_obstore_raises_is_an_error_of_ours() -> None:
    class BaseError(Exception):
        pass

    class NotFoundError(BaseError):
        pass

    def refuse(*arguments: object, **named: object) -> None:
        raise BaseError("at ?sig=SECRET\nand a long story")

    names = ("get", "put", "delete", "list_with_delimiter", "open_writer")
    module: Any = SimpleNamespace(**dict.fromkeys(names, refuse))
    api = ObjectStore(object(), module, SimpleNamespace(BaseError=BaseError, NotFoundError=NotFoundError))  # type: ignore
    for call in (lambda: list(list_by_store(api, "p", "gs://b/p")), lambda: open_object_stream(api, "f", "gs://b/f")):
        with pytest.raises(StorageError, match=r"refused: at \?sig=\*\*\*$") as caught:
            call()
        assert "SECRET" not in str(caught.value.__cause__)
