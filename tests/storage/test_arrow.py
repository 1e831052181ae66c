"""ArrowStorage: what it needs for exclusive creation, and how it reads Hadoop's options."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow.fs as pafs
import pytest

from pyhudi.errors import ConfigError, PathExists, StorageError
from pyhudi.storage import open_storage
from pyhudi.storage.arrow import ArrowStorage
from pyhudi.storage.arrow_store import obstore_arguments, s3_arguments

# An endpoint where nothing listens: these tests never send anything.
OFFLINE = {"fs.s3a.endpoint": "http://127.0.0.1:1", "fs.s3a.access.key": "k", "fs.s3a.secret.key": "s"}


def test_a_file_system_without_exclusive_creation_is_read_only(tmp_path: Path) -> None:
    storage = ArrowStorage("fs://t", filesystem=pafs.SubTreeFileSystem(str(tmp_path), pafs.LocalFileSystem()))

    with pytest.raises(ConfigError, match="exclusively"):
        storage.create_new("f", b"x")


def test_writing_to_s3_without_obstore_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    storage = open_storage("s3://bucket/table", OFFLINE)

    with pytest.raises(ConfigError, match=r"pyhudi\[aws\]"):
        storage.create_new("f", b"x")


def test_creation_on_s3_is_a_conditional_put(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in for obstore that keeps objects in a dict: the second put must be told apart from the first."""
    objects: dict[tuple[str, str], bytes] = {}

    class BaseError(Exception):
        pass

    class AlreadyExistsError(BaseError):
        pass

    def put(store: str, path: str, data: bytes, *, mode: str) -> None:
        assert mode == "create"
        if (store, path) in objects:
            raise AlreadyExistsError(path)
        if path == "refused":
            raise BaseError("403")
        objects[store, path] = data

    def module(name: str, **attributes: Any) -> None:
        made = ModuleType(name)
        made.__dict__.update(attributes)
        monkeypatch.setitem(sys.modules, name, made)

    def read(self: Any, path: str) -> bytes:
        return objects[self.root, path]

    monkeypatch.setattr(ArrowStorage, "read", read)
    module("obstore", put=put)
    module("obstore.store", from_url=lambda url, **options: url)
    module("obstore.exceptions", AlreadyExistsError=AlreadyExistsError, BaseError=BaseError)
    storage = open_storage("s3a://bucket/table/", OFFLINE)

    storage.create_new(".hoodie/lock", b"mine")

    with pytest.raises(PathExists, match="lock"):
        storage.create_new(".hoodie/lock", b"yours")
    storage.create_new(".hoodie/lock", b"mine")  # the answer was lost, and the client has asked again
    with pytest.raises(StorageError, match="403"):
        storage.create_new("refused", b"")
    assert objects == {("s3a://bucket/table", ".hoodie/lock"): b"mine"}


def test_spark_reads_s3_paths_by_the_scheme_it_knows() -> None:
    storage = open_storage("s3://bucket/table", OFFLINE)

    assert storage.root == "s3://bucket/table"
    assert storage.full_path("p/f.parquet") == "s3a://bucket/table/p/f.parquet"


def test_hadoops_options_become_those_of_the_clients() -> None:
    options = {
        "fs.s3a.access.key": "k",
        "fs.s3a.secret.key": "s",
        "fs.s3a.session.token": "t",
        "fs.s3a.endpoint": "http://127.0.0.1:9000",
        "fs.s3a.endpoint.region": "eu-central-1",
        "fs.s3a.path.style.access": "true",
    }

    assert s3_arguments(options) == {
        "access_key": "k",
        "secret_key": "s",
        "session_token": "t",
        "region": "eu-central-1",
        "endpoint_override": "127.0.0.1:9000",
        "scheme": "http",
        "force_virtual_addressing": False,
    }
    assert obstore_arguments(options) == {
        "access_key_id": "k",
        "secret_access_key": "s",
        "session_token": "t",
        "region": "eu-central-1",
        "endpoint": "http://127.0.0.1:9000",
        "virtual_hosted_style_request": False,
        "client_options": {"allow_http": True},
    }


def test_an_azure_uri_needs_its_container() -> None:
    with pytest.raises(ConfigError, match="container@account"):
        open_storage("abfss://account.dfs.core.windows.net/table")
