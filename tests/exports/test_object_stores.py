"""Exports of tables on S3: deltalake and pyiceberg need the table's own storage options only, which stay secret."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from pyhudi import HudiTable, write_hudi
from pyhudi.errors import ConfigError, StorageError, UnsupportedTable
from pyhudi.exports.delta import DeltaTarget, open_delta
from pyhudi.exports.iceberg_catalog import open_catalog
from pyhudi.meta_client import MetaClient
from pyhudi.model.options.catalogs.exporting import ExportOptions
from pyhudi.model.options.catalogs.iceberg import IcebergOptions
from pyhudi.storage import Storage, open_storage
from pyhudi.storage.arrow import ArrowStorage
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.stores.other_libraries import deltalake_options, pyiceberg_properties
from tests.support.exports.delta import rows
from tests.support.exports.iceberg import Lake, by_pyhudi
from tests.support.servers.object_stores import ObjectStoreServer, object_store_server
from tests.support.servers.s3_server import SECRET

ACCOUNT = "abfss://lake@account.dfs.core.windows.net/t"


def row(id: int, city: str = "a", v: int = 1) -> dict[str, Any]:
    return {"id": id, "city": city, "v": v}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStoreServer]:
    with object_store_server("s3", tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No credentials but the table's own."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def written(server: ObjectStoreServer) -> tuple[HudiTable, Storage]:
    storage = server.table()
    write_hudi(storage, [row(1), row(2), row(3, "b")], record_key="id", partition_by="city")
    return opened(storage), storage


def opened(storage: Storage) -> HudiTable:
    return HudiTable.open(storage.root, storage_options=dict(storage._options))  # type: ignore[attr-defined]


def opened_by_delta(storage: Storage) -> DeltaTable:
    return DeltaTable(storage.root, storage_options=deltalake_options(storage))


def by_delta(storage: Storage) -> list[str]:
    return rows(opened_by_delta(storage).to_pyarrow_table())


def assert_no_secret(server: ObjectStoreServer, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    lake = open_storage(server.lake, server.options)
    for entry in lake.walk(""):
        assert SECRET.encode() not in lake.read(entry.path), entry.path
    for file in (path for path in folder.rglob("*") if path.is_file()):
        assert SECRET.encode() not in file.read_bytes(), file
    assert SECRET not in caplog.text


def test_delta_logs_in_with_the_tables_own_options(
    server: ObjectStoreServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    table, storage = written(server)

    first = table.export_metadata("delta")
    assert by_delta(storage) == by_pyhudi(table)
    table.upsert([row(1, v=2), row(4, "c")], options={"hoodie.pyhudi.export.formats": "delta"})

    assert by_delta(storage) == by_pyhudi(table)
    assert table.export_metadata("delta").commits == 0
    assert SECRET not in str(first) + repr(first) + first.to_json()
    assert SECRET not in repr(open_delta(MetaClient.load(storage), ExportOptions()))
    assert_no_secret(server, tmp_path, caplog)


@pytest.mark.parametrize("place", ["s3", "local"])
def test_iceberg_logs_in_with_the_tables_own_options(
    place: str, server: ObjectStoreServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    table, storage = written(server)
    warehouse = f"{server.table('wh').root.replace('s3a:', 's3:')}" if place == "s3" else f"file://{tmp_path}/wh"
    catalog = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": warehouse}
    lake = Lake(tmp_path, other=catalog)

    lake.export(table)
    table.upsert([row(1, v=2), row(4, "c")], options={**lake.options, "hoodie.pyhudi.export.formats": "iceberg"})

    reader = Lake(tmp_path, other={**catalog, **pyiceberg_properties(storage)})
    assert reader.read() == by_pyhudi(table)
    assert len(reader.instants()) == 2
    assert all(file.startswith("s3://lake/") for file in reader.files())
    assert lake.export(table).commits == 0
    assert_no_secret(server, tmp_path, caplog)


def test_a_catalogs_own_login_is_not_mixed_with_the_tables(server: ObjectStoreServer, tmp_path: Path) -> None:
    table, _ = written(server)
    catalog = {
        "type": "sql",
        "uri": f"sqlite:///{tmp_path}/catalog.db",
        "warehouse": f"{server.table('wh').root.replace('s3a:', 's3:')}",
        "s3.endpoint": "http://127.0.0.1:9",
        "s3.access-key-id": "another",
        "s3.secret-access-key": "secret-of-another",
        "s3.connect-timeout": "1",
        "s3.request-timeout": "1",
    }

    with pytest.raises(StorageError) as raised:
        Lake(tmp_path, other=catalog).export(table)

    assert "secret-of-another" not in str(raised.value)
    assert SECRET not in str(raised.value)


def test_of_two_delta_exports_at_once_each_commit_is_one_version(server: ObjectStoreServer) -> None:
    table, storage = written(server)
    for number in range(3):
        table.upsert([row(1, v=number)])
        tables = [opened(storage), opened(storage)]
        with ThreadPoolExecutor() as both:
            list(both.map(lambda one: one.export_metadata("delta"), tables))
        assert by_delta(storage) == by_pyhudi(table)
    named = [one["hudi.instant"] for one in opened_by_delta(storage).history()]
    assert len(named) == len(set(named)) == 3


def test_a_store_that_does_not_answer_is_an_error_without_its_keys(server: ObjectStoreServer) -> None:
    _, storage = written(server)
    store = {**deltalake_options(storage), "aws_endpoint": f"http://{SECRET}.invalid", "max_retries": "0"}

    with pytest.raises(StorageError, match="deltalake can't do its part") as raised:
        DeltaTarget(MetaClient.load(storage), store).exported()

    assert SECRET not in str(raised.value) + repr(raised.value.__cause__)
    assert "***.invalid" in str(raised.value)


@pytest.mark.parametrize("name", ["a?b", "a#b"])
def test_an_address_that_deltalake_cuts_is_refused(name: str, server: ObjectStoreServer) -> None:
    storage = open_storage(f"{server.lake}/{name}", server.options)
    write_hudi(storage, [row(1)], record_key="id")

    with pytest.raises(UnsupportedTable, match="end an address for deltalake"):
        opened(storage).export_metadata("delta")


def test_a_store_without_options_gives_none() -> None:
    assert deltalake_options(MemoryStorage("t")) == pyiceberg_properties(MemoryStorage("t")) == {}


def test_s3_options_of_a_session_without_a_signature_and_with_a_time_limit() -> None:
    anonymous = ArrowStorage(
        "s3://lake/t",
        {"fs.s3a.aws.credentials.provider": "AnonymousAWSCredentialsProvider", "fs.pyhudi.timeout.s": "2"},
    )
    session = ArrowStorage(
        "s3://lake/t",
        {"fs.s3a.access.key": "k", "fs.s3a.secret.key": "s", "fs.s3a.session.token": "t", "fs.s3a.endpoint": "h:1"},
    )

    limits = dict.fromkeys(("timeout", "connect_timeout", "retry_timeout"), "2000ms")
    assert deltalake_options(anonymous) == {"aws_skip_signature": "true", **limits}
    assert pyiceberg_properties(anonymous) == {
        "s3.anonymous": "true",
        "s3.connect-timeout": "2.0",
        "s3.request-timeout": "2.0",
    }
    assert deltalake_options(session)["aws_session_token"] == pyiceberg_properties(session)["s3.session-token"] == "t"
    assert pyiceberg_properties(session)["s3.endpoint"] == deltalake_options(session)["aws_endpoint"] == "https://h:1"
    assert pyiceberg_properties(session)["s3.region"] == "us-east-1"


def test_azure_and_google_options_have_the_names_of_each_library() -> None:
    azure = ArrowStorage(ACCOUNT, {"fs.azure.account.key": "a2V5"})
    token = ArrowStorage(ACCOUNT, {"fs.azure.sas.fixed.token": "?sig=x"})
    google = ArrowStorage(
        "gs://lake/t", {"fs.gs.storage.root.url": "http://127.0.0.1:1", "fs.gs.auth.type": "UNAUTHENTICATED"}
    )

    assert deltalake_options(azure) == {"azure_storage_account_name": "account", "azure_storage_account_key": "a2V5"}
    assert pyiceberg_properties(azure) == {"adls.account-name": "account", "adls.account-key": "a2V5"}
    assert deltalake_options(token)["azure_storage_sas_key"] == "sig=x"
    assert pyiceberg_properties(token)["adls.sas-token"] == "?sig=x"
    assert '"disable_oauth": true' in deltalake_options(google)["google_service_account_key"]
    with pytest.raises(ConfigError, match="no property for requests to Google's storage without a signature"):
        pyiceberg_properties(google)
    emulator = ArrowStorage("gs://lake/t", {"fs.gs.storage.root.url": "http://127.0.0.1:1"})
    assert pyiceberg_properties(emulator) == {"gcs.service.host": "http://127.0.0.1:1"}
    assert deltalake_options(emulator) == {"google_base_url": "http://127.0.0.1:1", "allow_http": "true"}


def test_pyicebergs_own_configuration_comes_before_the_tables_options(
    server: ObjectStoreServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    (tmp_path / ".pyiceberg.yaml").write_text(
        "catalog:\n  default:\n    s3.access-key-id: theirs\n    type: in-memory\n"
    )

    with closing(open_catalog(IcebergOptions(), server.table())) as catalog:
        properties = catalog.properties

    assert (properties["s3.access-key-id"], properties["s3.endpoint"]) == ("theirs", server.options["fs.s3a.endpoint"])
    assert "s3.secret-access-key" not in properties
