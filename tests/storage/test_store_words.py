"""Options of a store under other libraries' names, against a real S3 server."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from obstore.store import AzureStore

import pyhudi
from pyhudi import HudiTable, write_hudi
from pyhudi.errors import ConfigError, StorageError
from pyhudi.storage import open_storage
from pyhudi.storage.stores.azure import AzurePlace, azure_arguments, azure_store_arguments, with_account
from pyhudi.storage.stores.gcs import gcs_arguments
from pyhudi.storage.stores.options import named_options
from pyhudi.storage.stores.s3 import s3_arguments, s3_store_arguments
from tests.support.servers.object_stores import StartServer

ROWS = [{"id": "a", "v": 1}]
Spelled = Callable[[str, str, str], Mapping[str, object]]
SPELLINGS: Mapping[str, Spelled] = {
    "deltalake": lambda url, key, secret: {
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": key,
        "AWS_SECRET_ACCESS_KEY": secret,
        "AWS_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",
    },
    "obstore": lambda url, key, secret: {
        "aws_endpoint": url,
        "aws_access_key_id": key,
        "aws_secret_access_key": secret,
        "region": "us-east-1",
        "client_options": {"allow_http": True},
        "virtual_hosted_style_request": False,
    },
    "s3fs": lambda url, key, secret: {
        "key": key,
        "secret": secret,
        "token": None,
        "client_kwargs": {"endpoint_url": url, "region_name": "us-east-1"},
        "config_kwargs": {"s3": {"addressing_style": "path"}},
    },
    "pyarrow": lambda url, key, secret: {
        "endpoint_override": url.partition("://")[2],
        "scheme": "http",
        "access_key": key,
        "secret_key": secret,
        "region": "us-east-1",
        "force_virtual_addressing": False,
    },
    "Hadoop": lambda url, key, secret: {
        "fs.s3a.endpoint": url,
        "fs.s3a.access.key": key,
        "fs.s3a.secret.key": secret,
        "fs.s3a.endpoint.region": "us-east-1",
    },
}


@pytest.fixture
def server(start_server: StartServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[str, str, str]:
    """Address, access key and secret of a server; nothing of it in the environment, and no ~/.aws."""
    options = start_server("s3").options
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("HOME", str(tmp_path))
    url = options["fs.s3a.endpoint"]
    return url if "://" in url else f"http://{url}", options["fs.s3a.access.key"], options["fs.s3a.secret.key"]


@pytest.mark.parametrize("library", SPELLINGS)
def test_a_table_is_written_and_read_with_the_words_of_each_library(server: tuple[str, str, str], library: str) -> None:
    place, options = f"s3://lake/words-{library.lower()}", SPELLINGS[library](*server)
    has_metadata_table = library == "s3fs"  # which takes most of the requests
    write_hudi(
        place, ROWS, record_key="id", storage_options=options, options={"hoodie.metadata.enable": has_metadata_table}
    )
    write_hudi(place, [{"id": "b", "v": 2}], storage_options=options)
    assert HudiTable.exists(place, storage_options=options)
    table = HudiTable.open(place, storage_options=options)
    assert sorted(table.to_arrow()["v"].to_pylist()) == [1, 2]
    assert server[2] not in repr(table) + repr(table.state().storage)
    pytest.importorskip("duckdb")
    assert pyhudi.sql("SELECT sum(v) AS v FROM t", {"t": table}).to_arrow().to_pylist() == [{"v": 3}]
    merge = table.merge([{"w": 2}], on="target.v = source.w").when_matched_update({"v": "target.v + 5"})
    assert (merge.execute().updated, sorted(table.to_arrow()["v"].to_pylist())) == (1, [1, 7])


def test_a_profile_gives_keys_and_region_to_both_clients(
    server: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    url, key, secret = server
    folder = tmp_path / ".aws"
    folder.mkdir()
    keys = f"aws_access_key_id = {key}\naws_secret_access_key = {secret}\n"
    (folder / "credentials").write_text(f"[default]\n{keys}[work]\naws_access_key_id = other\n")
    (folder / "config").write_text(f"[profile lake]\n{keys}region = eu-west-3\n")
    write_hudi("s3://lake/profile", ROWS, record_key="id", storage_options={"endpoint_url": url, "region": "us-east-1"})
    for options in ({}, {"profile": "lake"}):
        settings = s3_store_arguments(named_options("s3", options))
        assert (settings["access_key_id"], settings["secret_access_key"]) == (key, secret)
    assert s3_arguments(named_options("s3", {"AWS_PROFILE": "lake"}))["region"] == "eu-west-3"
    monkeypatch.setenv("AWS_PROFILE", "lake")
    assert s3_arguments({})["region"] == "eu-west-3"
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of the environment")
    assert "access_key" not in s3_arguments({})
    with pytest.raises(ConfigError, match="no profile 'nobody'"):
        s3_arguments(named_options("s3", {"profile": "nobody"}))


@pytest.mark.parametrize("name", ["anon", "skip_signature", "aws_skip_signature", "anonymous"])
def test_requests_without_a_signature_are_asked_for_in_every_word(server: tuple[str, str, str], name: str) -> None:
    options = {name: True, "endpoint_url": server[0], "region": "us-east-1"}
    named = named_options("s3", options)
    assert s3_arguments(named)["anonymous"] is True
    assert s3_store_arguments(named)["skip_signature"] is True
    write_hudi(f"s3://lake/private-{name}", ROWS, record_key="id", storage_options=SPELLINGS["s3fs"](*server))
    with pytest.raises(StorageError, match=r"(?i)access.denied"):  # the table is not for everybody
        HudiTable.open(f"s3://lake/private-{name}", storage_options=options)
    assert "anonymous" not in s3_arguments(named_options("s3", {name: False}))


def test_options_that_contradict_each_other_are_refused() -> None:
    secret = "very-secret-0815"
    for options, says in (
        ({"endpoint": "http://x", "allow_http": False}, "asks for TLS"),
        ({"endpoint": "http://x", "use_ssl": True}, "asks for TLS"),
        ({"key": secret, "AWS_ACCESS_KEY_ID": "b"}, "given twice"),
        ({"anon": secret}, "expected true or false"),
        ({"addressing_style": secret}, "expected one of path, virtual, auto"),
        ({"secret": 7}, "expected text, found int"),
        ({"secrett": secret}, "Did you mean 'secret'"),
        ({"AWS_S3_ALLOW_UNSAFE_RENAME": secret}, "no file is renamed"),
        ({"AWS_S3_LOCKING_PROVIDER": "dynamodb"}, "hoodie.write.lock.provider"),
    ):
        with pytest.raises(ConfigError, match=says) as refused:
            open_storage("s3://lake/t", options)
        assert secret not in str(refused.value)
    with pytest.raises(ConfigError, match="access key"):
        s3_arguments(named_options("s3", {"anon": True, "key": "k", "secret": "s"}))


def test_a_wrong_secret_is_in_no_error(server: tuple[str, str, str]) -> None:
    options = {"endpoint_url": "http://127.0.0.1:9", "key": "KEY-4711", "secret": "SECRET-4711", "region": "r"}
    with pytest.raises(StorageError) as refused:
        open_storage("s3://lake/t", options).list("")
    assert "4711" not in str(refused.value)


AZURE_WORDS: Mapping[str, tuple[str, Callable[[str, str], Mapping[str, object]]]] = {
    "deltalake": (
        "az://lake",
        lambda url, key: {
            "AZURE_STORAGE_ACCOUNT_NAME": "devstoreaccount1",
            "AZURE_STORAGE_ACCOUNT_KEY": key,
            "AZURE_STORAGE_ENDPOINT": f"{url}/devstoreaccount1",
            "AZURE_STORAGE_ALLOW_HTTP": "true",
        },
    ),
    "obstore": (
        "abfss://lake@devstoreaccount1.dfs.core.windows.net",
        lambda url, key: {"access_key": key, "endpoint": url, "client_options": {"allow_http": True}},
    ),
    "adlfs": (
        "abfs://lake",
        lambda url, key: {
            "connection_string": f"DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey={key};"
            f"BlobEndpoint={url}/devstoreaccount1;QueueEndpoint={url}/other;"
        },
    ),
}


@pytest.mark.servers
@pytest.mark.parametrize("library", AZURE_WORDS)
def test_a_table_on_azure_is_written_and_read_with_the_words_of_each_library(
    start_server: StartServer, library: str
) -> None:
    server = start_server("azure")
    assert server.secret is not None
    place, words = AZURE_WORDS[library]
    _lives(f"{place}/words-{library}", words(server.options["fs.azure.abfs.endpoint"], server.secret), server.secret)


GOOGLE_WORDS: Mapping[str, Callable[[str], Mapping[str, object]]] = {
    "deltalake": lambda url: {"GOOGLE_BASE_URL": url, "GOOGLE_SKIP_SIGNATURE": "true", "allow_http": "true"},
    "obstore": lambda url: {"base_url": url, "skip_signature": True, "client_options": {"allow_http": True}},
    "gcsfs": lambda url: {"endpoint_url": url, "token": "anon", "project": "p"},
    "pyarrow": lambda url: {"endpoint_override": url, "anonymous": True},
}


@pytest.mark.servers
@pytest.mark.parametrize("library", GOOGLE_WORDS)
def test_a_table_on_google_is_written_and_read_with_the_words_of_each_library(
    start_server: StartServer, library: str
) -> None:
    url = start_server("gcs").options["fs.gs.storage.root.url"]
    _lives(f"gs://lake/words-{library}", GOOGLE_WORDS[library](url))


def _lives(place: str, options: Mapping[str, object], secret: str | None = None) -> None:
    """A table is made, changed, read and dropped."""
    write_hudi(place, ROWS, record_key="id", table_type="MERGE_ON_READ", storage_options=options)
    write_hudi(place, [{"id": "a", "v": 5}, {"id": "b", "v": 2}], storage_options=options)
    assert HudiTable.exists(place, storage_options=options)
    table = HudiTable.open(place, storage_options=options)
    table.compact()
    assert sorted(table.to_arrow()["v"].to_pylist()) == [2, 5]
    assert secret is None or secret not in repr(table) + repr(table.state().storage)
    table.drop()
    assert not HudiTable.exists(place, storage_options=options)


def test_an_account_of_azure_is_named_by_the_path_an_option_or_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME", raising=False)
    whole = "abfss://lake@acc.dfs.core.windows.net/t"
    assert with_account("az://lake/t", named_options("az", {"account_name": "acc"})) == (whole, {})
    assert with_account(whole, named_options("abfss", {"AZURE_STORAGE_ACCOUNT_NAME": "acc"})) == (whole, {})
    text = "AccountName=acc;AccountKey=k==;EndpointSuffix=core.chinacloudapi.cn"
    assert with_account("abfs://lake/t", named_options("abfs", {"connection_string": text})) == (
        "abfs://lake@acc.dfs.core.chinacloudapi.cn/t",
        {"fs.azure.account.key": "k=="},
    )
    text = "BlobEndpoint=https://acc.blob.core.windows.net/;SharedAccessSignature=sv=1&sig=x%3D"
    assert with_account("az://lake/t", named_options("az", {"connection_string": text})) == (
        whole,
        {"fs.azure.sas.fixed.token": "sv=1&sig=x%3D"},
    )
    place, options = with_account("az://lake/t", named_options("az", {"use_emulator": True}))
    assert azure_store_arguments(options, AzurePlace.of(place))["endpoint"] == "http://127.0.0.1:10000/devstoreaccount1"

    with pytest.raises(ConfigError, match="names no account"):
        open_storage("az://lake/t", {})
    with pytest.raises(ConfigError, match="names another account"):
        open_storage(whole, {"account_name": "other"})
    with pytest.raises(ConfigError, match="expected AccountName=") as refused:
        open_storage("az://lake/t", {"connection_string": "AccountKey=very-secret"})
    assert "very-secret" not in str(refused.value)
    with pytest.raises(ConfigError, match="asks for TLS"):
        open_storage(whole, {"endpoint": "http://127.0.0.1:1", "allow_http": False})
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "acc")
    assert with_account("abfss://lake/t", {}) == (whole, {})


def test_azure_and_google_have_words_of_their_own() -> None:
    place = AzurePlace.of("abfss://lake@acc.dfs.core.windows.net/t")
    options = {"AZURE_CLIENT_ID": "c", "azure_client_secret": "s", "azure_storage_tenant_id": "t"}
    assert azure_arguments(named_options("abfss", options), place) == {
        "account_name": "acc",
        "client_id": "c",
        "client_secret": "s",
        "tenant_id": "t",
    }
    assert azure_arguments(named_options("abfs", {"AZURE_STORAGE_SAS_KEY": "x"}), place)["sas_token"] == "?x"
    for anybody in ({"anon": True}, {"token": "anon"}, {"google_skip_signature": "true"}):
        assert gcs_arguments(named_options("gs", anybody)) == {"anonymous": True}
    assert gcs_arguments(named_options("gs", {"project": "p", "base_url": "http://x:1"})) == {
        "project_id": "p",
        "endpoint_override": "x:1",
        "scheme": "http",
    }
    for key_file in ({"GOOGLE_SERVICE_ACCOUNT": "/k.json"}, {"token": "/k.json"}):
        assert json.dumps(named_options("gs", key_file)).count("keyfile") == 1


def test_the_login_of_az_is_the_credential_of_requests_that_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """obstore asks `az` for a token and sends it: here a server and an `az` of the test's own."""
    logins: list[str | None] = []

    class Blobs(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            logins.append(self.headers["Authorization"])
            self.send_response(201)
            self.send_header("ETag", '"1"')
            self.send_header("Content-Length", "0")
            self.end_headers()

    answer = {"accessToken": "from-az", "expiresOn": "2999-01-01 00:00:00.000000", "expires_on": 32472144000}
    answer |= {"subscription": "s", "tenant": "t", "tokenType": "Bearer"}
    (tmp_path / "az").write_text(f"#!/bin/sh\ncat <<'END'\n{json.dumps(answer)}\nEND\n")
    (tmp_path / "az").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with HTTPServer(("127.0.0.1", 0), Blobs) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        options = {"azure_use_azure_cli": "true", "endpoint": f"http://127.0.0.1:{server.server_port}"}
        place = AzurePlace.of("abfss://lake@acc.dfs.core.windows.net/t")
        store = AzureStore(place.container, **azure_store_arguments(named_options("abfss", options), place))
        store.put("a", b"1")
        server.shutdown()
    assert logins == ["Bearer from-az"]
    assert "use_azure_cli" not in str(azure_arguments(named_options("abfss", options), place))  # PyArrow looks for it
