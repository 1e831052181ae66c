"""Private stores: their address as an option, and unknown options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pyhudi import HudiTable, StorageError, import_table, repair_properties, write_hudi
from pyhudi.errors import ConfigError, TableNotFound
from pyhudi.storage import MemoryStorage, open_storage
from pyhudi.storage.stores.options import known_options, likely_misspelled, named_options
from pyhudi.storage.versioned import versioned_files
from tests.support.servers.object_stores import StartServer

ROWS = [{"id": "a", "v": 1}]


@pytest.fixture
def private(start_server: StartServer, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Options of moto's server; keys for it in the environment."""
    options = dict(start_server("s3").options)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", options["fs.s3a.access.key"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", options["fs.s3a.secret.key"])
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    return options


def url_of(options: dict[str, str]) -> str:
    endpoint = options["fs.s3a.endpoint"]
    return endpoint if "://" in endpoint else f"http://{endpoint}"


@pytest.mark.parametrize("name", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"])
def test_an_endpoint_of_the_environment_is_asked_by_both_clients_and_by_the_lock(
    private: dict[str, str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, url_of(private))
    place = f"s3://lake/{name.lower()}"

    write_hudi(place, ROWS, record_key="id", options={"hoodie.write.lock.provider": "STORAGE"})

    assert HudiTable.open(place).scan().count() == 1
    assert HudiTable.open(place, storage_options=private).scan().count() == 1
    assert versioned_files(open_storage(place)).replace("lock", b"x", None) is not None


def test_the_endpoint_of_the_service_comes_before_the_common_one_and_an_option_before_both(
    private: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", url_of(private))
    write_hudi("s3://lake/before", ROWS, record_key="id")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9")

    assert HudiTable.open("s3://lake/before", storage_options=private).scan().count() == 1
    with pytest.raises(StorageError):
        open_storage("s3://lake/before").list("")
    monkeypatch.setenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true")
    assert ("fs.s3a.endpoint", "http://127.0.0.1:9") not in open_storage("s3://lake/before")._options  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["endpoint_url", "AWS_ENDPOINT_URL", "aws_endpoint", "endpoint_override"])
def test_an_endpoint_by_the_name_that_other_libraries_have_for_it_is_asked(
    private: dict[str, str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    given = {
        name: url_of(private),
        "aws_access_key_id": private["fs.s3a.access.key"],
        "AWS_SECRET_ACCESS_KEY": private["fs.s3a.secret.key"],
        "region": "us-east-1",
    }
    place = f"s3://lake/named-{name.lower()}"
    write_hudi(place, ROWS, record_key="id", storage_options=given)
    assert HudiTable.open(place, storage_options=private).scan().count() == 1


@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("endpont_url", "endpoint_url"),
        ("fs.s3a.endpont", "fs.s3a.endpoint"),
        ("AWS_ENDPOINTS", "endpoint"),
        ("secret_acces_key", "secret_access_key"),
        ("color", ""),
    ],
)
@pytest.mark.parametrize("place", ["s3://lake/t", "memory://unknown-options", "{folder}"])
def test_an_option_of_a_store_that_is_not_known_is_refused_by_name(
    key: str, near: str, place: str, tmp_path: Path
) -> None:
    place = place.format(folder=tmp_path / "t")
    says = rf"option '{key}' of the store is not known\.{f' Did you mean .{near}' if near else ''}"
    calls: tuple[Any, ...] = (
        lambda: HudiTable.open(place, storage_options={key: "x"}),
        lambda: HudiTable.exists(place, storage_options={key: "x"}),
        lambda: write_hudi(place, ROWS, record_key="id", storage_options={key: "x"}),
        lambda: open_storage(place, {key: "x"}),
    )
    for call in calls:
        with pytest.raises(ConfigError, match=says):
            call()
    assert not (tmp_path / "t").exists()


def test_names_mean_the_store_of_the_path_and_two_that_differ_are_refused() -> None:
    assert named_options("gs", {"endpoint_url": "http://x"}) == {"fs.gs.storage.root.url": "http://x"}
    assert named_options("abfss", {"account_key": "k"}) == {"fs.azure.account.key": "k"}
    of_account = {"fs.azure.account.key.a.dfs.core.windows.net": "k"}
    assert named_options("abfss", of_account) == of_account
    with pytest.raises(ConfigError, match="given twice"):
        named_options("s3", {"endpoint_url": "http://x", "fs.s3a.endpoint": "http://y"})


def test_keys_of_a_session_that_are_hadoops_own_count_for_nothing() -> None:
    session = {"fs.s3a.impl": "x", "fs.s3a.endpoint": "e", "fs.s3a.connection.maximum": "5", "fs.defaultFS": "f"}
    assert known_options(session) == {"fs.s3a.endpoint": "e"}
    assert likely_misspelled(session) is None
    assert likely_misspelled(["fs.s3a.endpont"]) == ("fs.s3a.endpont", "fs.s3a.endpoint")


def test_the_lock_of_dynamodb_is_at_the_endpoint_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("boto3")
    from pyhudi.locks.dynamodb import _client
    from pyhudi.model.options.aws import AwsOptions
    from pyhudi.model.options.concurrency import DynamoOptions

    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:4566")
    client: Any = _client(DynamoOptions(region="us-east-1"), AwsOptions())[0]
    assert client.meta.endpoint_url == "http://127.0.0.1:4566"


def test_a_bucket_that_is_not_there_is_named(private: dict[str, str]) -> None:
    for call in (
        lambda: HudiTable.open("s3://no-such-bucket/t", storage_options=private),
        lambda: write_hudi("s3://no-such-bucket/t", ROWS, record_key="id", storage_options=private),
    ):
        with pytest.raises((StorageError, TableNotFound)) as caught:
            call()
        assert "<" not in str(caught.value)
        assert "no-such-bucket" in str(caught.value)
    assert "the store has no bucket 'no-such-bucket'" in str(caught.value)


@pytest.mark.parametrize(
    "call",
    [
        lambda storage, **given: write_hudi(storage, ROWS, record_key="id", **given),
        lambda storage, **given: repair_properties(storage, **given),
        lambda storage, **given: import_table("/nowhere", storage, "delta", **given),
    ],
    ids=["write_hudi", "repair_properties", "import_table"],
)
def test_options_beside_a_storage_which_has_its_own_are_refused(call: Any) -> None:
    storage = MemoryStorage("beside-its-own")

    with pytest.raises(
        ConfigError, match=r"has its own options, together with storage_options \(secret_key\)"
    ) as raised:
        call(storage, storage_options={"secret_key": "very-secret"})

    assert "very-secret" not in str(raised.value)
    assert list(storage.walk("")) == []


def test_a_storage_is_taken_without_options() -> None:
    storage = MemoryStorage("with-its-own")

    write_hudi(storage, ROWS, record_key="id", storage_options={})

    assert HudiTable.open("memory://with-its-own").scan().count() == 1
