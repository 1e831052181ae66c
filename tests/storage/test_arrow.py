"""ArrowStorage: what it needs for exclusive creation, and how it reads Hadoop's options."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pyarrow.fs as pafs
import pytest

from pyhudi.errors import ConfigError, PathExists, StorageError
from pyhudi.storage import open_storage
from pyhudi.storage.arrow import ArrowStorage
from pyhudi.storage.stores.azure import AzurePlace, azure_arguments, azure_store_arguments
from pyhudi.storage.stores.gcs import gcs_arguments, gcs_store_arguments
from pyhudi.storage.stores.s3 import s3_arguments, s3_store_arguments

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

    marks: dict[tuple[str, str], dict[str, str] | None] = {}

    def put(store: str, path: str, data: bytes, *, mode: str, attributes: dict[str, str] | None) -> None:
        assert mode == "create"
        if (store, path) in objects:
            raise AlreadyExistsError(path)
        if path == "late":  # the answer is lost, and the client asks again
            objects[store, path], marks[store, path] = data, attributes
            raise AlreadyExistsError(path)
        if path == "refused":
            raise BaseError("403")
        objects[store, path] = data

    def module(name: str, **attributes: Any) -> None:
        made = ModuleType(name)
        made.__dict__.update(attributes)
        monkeypatch.setitem(sys.modules, name, made)

    def read(self: Any, path: str) -> bytes:
        return objects[self.root.partition("://")[2], path]

    monkeypatch.setattr(ArrowStorage, "read", read)

    def get(store: str, path: str) -> Any:
        return SimpleNamespace(attributes=marks.get((store, path)) or {})

    module("obstore", put=put, get=get)
    module("obstore.store", S3Store=lambda bucket, *, prefix, **options: f"{bucket}/{prefix}")
    module("obstore.exceptions", AlreadyExistsError=AlreadyExistsError, BaseError=BaseError)
    storage = open_storage("s3a://bucket/table/", OFFLINE)

    storage.create_new(".hoodie/lock", b"mine")

    with pytest.raises(PathExists, match="lock"):
        storage.create_new(".hoodie/lock", b"yours")
    storage.create_new(".hoodie/lock", b"mine")  # the answer was lost, and the client has asked again
    with pytest.raises(StorageError, match="403"):
        storage.create_new("refused", b"")
    storage.create_new("late", b"")  # ours, though it has no bytes to tell it by
    with pytest.raises(PathExists, match="late"):
        storage.create_new("late", b"")
    assert objects == {("bucket/table", ".hoodie/lock"): b"mine", ("bucket/table", "late"): b""}


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
    assert s3_store_arguments(options) == {
        "access_key_id": "k",
        "secret_access_key": "s",
        "session_token": "t",
        "region": "eu-central-1",
        "endpoint": "http://127.0.0.1:9000",
        "virtual_hosted_style_request": False,
        "client_options": {"allow_http": True},
    }


HOST = "account.dfs.core.windows.net"
KEYED = {f"fs.azure.account.key.{HOST}": "k"}
SAS = {"fs.azure.sas.fixed.token": "t", "fs.azure.account.auth.type": "SAS"}
PRINCIPAL = {
    "fs.azure.account.auth.type": "OAuth",
    f"fs.azure.account.oauth2.client.id.{HOST}": "id",
    "fs.azure.account.oauth2.client.secret": "s",
    "fs.azure.account.oauth2.client.endpoint": "https://login.microsoftonline.com/tenant/oauth2/token",
}


@pytest.mark.parametrize(
    ("options", "arrow", "store"),
    [
        (KEYED, {"account_key": "k"}, {"account_key": "k"}),
        (
            {"fs.azure.account.key": "k", "fs.azure.account.key.other.dfs.core.windows.net": "x"},
            {"account_key": "k"},
            {},
        ),
        ({"fs.azure.sas.fixed.token": "?sv=1"}, {"sas_token": "?sv=1"}, {"sas_key": "sv=1"}),
        (
            KEYED | SAS,
            {"sas_token": "?t"},
            {"sas_key": "t"},
        ),
        (PRINCIPAL, {"client_id": "id", "client_secret": "s", "tenant_id": "tenant"}, {}),
        ({"fs.azure.account.oauth2.client.id": "identity"}, {"client_id": "identity"}, {}),
        ({}, {}, {}),
    ],
)
def test_hadoops_credentials_for_azure_reach_both_clients(
    options: dict[str, str], arrow: dict[str, str], store: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_KEY", raising=False)
    place = AzurePlace.of(f"abfss://lake@{HOST}/a/b")

    assert azure_arguments(options, place) == {"account_name": "account", **arrow}
    assert azure_store_arguments(options, place) == {"account_name": "account", **(store or arrow)}


def test_azures_variables_count_when_no_key_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "of the environment")
    place = AzurePlace.of(f"abfss://lake@{HOST}/a/b")

    assert azure_arguments({}, place)["account_key"] == "of the environment"
    assert azure_arguments(KEYED, place)["account_key"] == "k"


def test_an_emulator_and_other_clouds_of_azure_are_places_too() -> None:
    emulator = {"fs.azure.abfs.endpoint": "127.0.0.1:10000", "fs.azure.always.use.https": "false"}
    place = AzurePlace.of(f"abfs://lake@{HOST}")
    assert azure_store_arguments({**KEYED, **emulator}, place)["endpoint"] == "http://127.0.0.1:10000/account"
    assert azure_arguments({**KEYED, **emulator}, place)["dfs_storage_authority"] == "127.0.0.1:10000"

    china = AzurePlace.of("abfss://lake@account.dfs.core.chinacloudapi.cn/t")
    assert azure_store_arguments(KEYED, china)["endpoint"] == "https://account.blob.core.chinacloudapi.cn"
    assert azure_arguments(KEYED, china)["blob_storage_authority"] == ".blob.core.chinacloudapi.cn"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"fs.azure.account.auth.type": "Custom"}, "class of Hadoop"),
        (PRINCIPAL | {"fs.azure.account.oauth2.client.endpoint": "nowhere"}, "expected https://login"),
    ],
)
def test_ways_to_log_in_to_azure_that_are_not_ours_are_named(options: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        open_storage(f"abfss://lake@{HOST}/t", options)


def test_hadoops_options_for_google_reach_both_clients() -> None:
    options = {"fs.gs.storage.root.url": "https://private.example.com/", "fs.gs.project.id": "p"}

    assert gcs_arguments(options) == {
        "endpoint_override": "private.example.com",
        "scheme": "https",
        "project_id": "p",
    }
    assert gcs_store_arguments(options) == {"base_url": "https://private.example.com"}
    assert gcs_arguments({"google.cloud.auth.null.enable": "true"}) == {"anonymous": True}


def test_a_key_file_for_google_is_taken_from_its_variable_only(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"fs.gs.auth.service.account.json.keyfile": "/keys/mine.json"}
    with pytest.raises(ConfigError, match="GOOGLE_APPLICATION_CREDENTIALS"):
        gcs_arguments(options)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/keys/mine.json")
    assert gcs_arguments(options) == {}


def test_an_azure_uri_needs_its_container() -> None:
    with pytest.raises(ConfigError, match="container@account"):
        open_storage("abfss://account.dfs.core.windows.net/table")
