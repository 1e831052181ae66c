"""Commit callbacks: a real HTTP server is notified of commits, and nothing secret appears anywhere else."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pyhudi import ConfigError, HudiTable, KeyGenError, write_hudi
from pyhudi.listeners import callback as module
from pyhudi.model.options import WriteOptions
from tests.support.http_receiver import Receiver, http_receiver

KEY, HEADER = "key-4711-secret", "header-0815-secret"
_STAT_OF_HUDI = {  # fields that Hudi 1.2.0 posted for a base file
    "numInserts", "numDeletes", "totalLogReadTimeMs", "totalLogRecords", "totalLogFilesCompacted",
    "totalLogSizeCompacted", "totalUpdatedRecordsCompacted", "totalLogBlocks", "totalCorruptLogBlock",
    "totalRollbackBlocks", "fileId", "path", "cdcStats", "prevCommit", "numWrites", "numUpdateWrites",
    "totalWriteBytes", "totalWriteErrors", "tempPath", "partitionPath", "fileSizeInBytes", "minEventTime",
    "maxEventTime", "runtimeStats",
}  # fmt: skip
called: list[Any] = []


def remember(message: Any) -> None:
    called.append(message)


def refuse(message: Any) -> None:
    raise RuntimeError("no")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with http_receiver() as one:
        yield one


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PAUSES_S", (0.0, 0.0))
    called.clear()


def options(receiver: Receiver, **more: object) -> dict[str, object]:
    return {
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.table.name": "rides",
        "hoodie.write.commit.callback.on": True,
        "hoodie.write.commit.callback.http.url": f"{receiver.url}/told?token=x",
        "hoodie.write.commit.callback.http.api.key": KEY,
        "hoodie.write.commit.callback.http.custom.headers": f"X-Team: rides ;X-Pass:{HEADER}",
        **more,
    }


def write(path: Path, given: dict[str, object], number: int = 1) -> str:
    result = write_hudi(path, [{"id": number, "v": 1}], options=given)
    assert result is not None
    return result.instant_time


@pytest.mark.thorough
def test_a_commit_is_posted_as_hudi_posts_it(receiver: Receiver, tmp_path: Path) -> None:
    time = write(tmp_path / "t", options(receiver))

    (request,) = receiver.requests
    message = request.json
    assert (request.method, request.path) == ("POST", "/told?token=x")
    headers = {name.lower(): value for name, value in request.headers.items()}
    assert headers["hudi-callback-key"] == KEY
    assert headers["content-type"] == "application/json; charset=UTF-8"
    assert (headers["x-team"], headers["x-pass"]) == ("rides", HEADER)
    assert list(message) == [
        "commitTime", "tableName", "basePath", "hoodieWriteStat", "commitActionType", "extraMetadata",
    ]  # fmt: skip
    assert (message["commitTime"], message["tableName"]) == (time, "rides")
    assert message["basePath"] == str(tmp_path / "t")
    assert message["commitActionType"] == {"empty": False, "present": True, "val": "commit"}
    (stat,) = message["hoodieWriteStat"]
    assert set(stat) >= _STAT_OF_HUDI
    assert (stat["numInserts"], stat["prevCommit"]) == (1, "null")


def test_an_answer_that_may_pass_is_tried_again(receiver: Receiver, tmp_path: Path) -> None:
    receiver.statuses = [503, 429]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write(tmp_path / "t", options(receiver))
    assert len(receiver.requests) == 3


@pytest.mark.parametrize(("statuses", "tries"), [([500] * 3, 3), ([404], 1), ([307], 1)])
def test_a_callback_that_fails_is_warned_of_and_the_commit_stays(
    receiver: Receiver, tmp_path: Path, statuses: list[int], tries: int
) -> None:
    receiver.statuses, receiver.location = list(statuses), f"{receiver.url}/elsewhere"
    with pytest.warns(UserWarning, match=f"is done, but its callback .* {statuses[0]}") as warned:
        write(tmp_path / "t", options(receiver))
    assert HudiTable.open(tmp_path / "t").scan().count() == 1
    assert [request.path for request in receiver.requests] == ["/told?token=x"] * tries
    assert not any(secret in str(warned[0].message) for secret in (KEY, HEADER, "token"))


def test_nobody_listening_fails_no_commit(receiver: Receiver, tmp_path: Path) -> None:
    url = {"hoodie.write.commit.callback.http.url": "http://127.0.0.1:9/x"}
    with pytest.warns(UserWarning, match="Connection refused, 3 times"):
        write(tmp_path / "t", options(receiver) | url)
    assert HudiTable.open(tmp_path / "t").scan().count() == 1


def test_secrets_are_in_no_log_no_representation_and_no_file(
    receiver: Receiver, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    given = options(receiver, **{"hoodie.datasource.write.commitmeta.key.prefix": "hoodie.write"})
    write(tmp_path / "t", given)
    files = b"".join(file.read_bytes() for file in (tmp_path / "t").rglob("*") if file.is_file())
    assert b"hoodie.write.commit.callback.on" in files
    for secret in (KEY, HEADER):
        assert secret.encode() not in files
        assert secret not in caplog.text
        assert secret not in repr(WriteOptions.parse(given))
    key = "hoodie.write.commit.callback.http.api.key"
    with pytest.raises(TypeError, match="go into options") as refused:
        write_hudi(tmp_path / "t", [{"id": 1, "v": 1}], options={key: KEY}, **{key: HEADER})  # type: ignore[call-arg]
    assert KEY not in str(refused.value)
    assert HEADER not in str(refused.value)


def test_a_header_that_can_not_be_read_is_refused_without_showing_it(receiver: Receiver, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Name:value") as refused:
        write(tmp_path / "t", options(receiver) | {"hoodie.write.commit.callback.http.custom.headers": HEADER})
    assert HEADER not in str(refused.value)
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("named", [remember, f"{__name__}:remember"], ids=["function", "name"])
def test_a_python_function_gets_the_message(receiver: Receiver, tmp_path: Path, named: object) -> None:
    time = write(tmp_path / "t", options(receiver) | {"hoodie.write.commit.callback.class": named})
    assert [message["commitTime"] for message in called] == [time]
    assert receiver.requests == []


def test_a_python_function_that_fails_is_warned_of(receiver: Receiver, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="RuntimeError: no"):
        write(tmp_path / "t", options(receiver) | {"hoodie.write.commit.callback.class": refuse})
    assert HudiTable.open(tmp_path / "t").scan().count() == 1


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("org.apache.hudi.utilities.callback.kafka.HoodieWriteCommitKafkaCallback", "no Kafka itself"),
        ("org.apache.hudi.utilities.callback.pulsar.HoodieWriteCommitPulsarCallback", "no Pulsar itself"),
        ("com.example.Mine", "Java classes can't be used"),
    ],
)
def test_other_classes_of_hudi_are_refused_by_name(
    receiver: Receiver, tmp_path: Path, given: str, expected: str
) -> None:
    with pytest.raises(ConfigError, match=expected):
        write(tmp_path / "t", options(receiver) | {"hoodie.write.commit.callback.class": given})
    assert not (tmp_path / "t").exists()


@pytest.mark.thorough
def test_services_and_failed_writes_are_not_reported(receiver: Receiver, tmp_path: Path) -> None:
    given = options(receiver)
    write(tmp_path / "t", given)
    HudiTable.open(tmp_path / "t").cluster(options=given)
    with pytest.raises(KeyGenError):
        write_hudi(tmp_path / "t", [{"other": 1}], options=given)
    assert len(receiver.requests) == 1
