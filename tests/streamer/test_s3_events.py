"""S3's events through SQS: each is one row of a table, whatever comes twice, and its message goes then."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyhudi import HudiTable, Streamer
from pyhudi.errors import ConfigError, SchemaMismatch, WriteConflict
from pyhudi.streamer import pipeline
from pyhudi.streamer.sources.cloud_events import read_events
from pyhudi.streamer.sources.cloud_events.s3_queue import S3Events
from tests.support.servers.s3_server import SECRET, options_of, s3_server
from tests.support.sqs import s3_event

boto = pytest.importorskip("boto3")
moto = pytest.importorskip("moto")

QUEUE = "hoodie.streamer.s3.source.queue."


class Queue:
    def __init__(self) -> None:
        self.client = boto.client("sqs", region_name="us-east-1")
        self.url = self.client.create_queue(QueueName="events")["QueueUrl"]

    def send(self, *bodies: object) -> None:
        for body in bodies:
            text = body if isinstance(body, str) else json.dumps(body)
            self.client.send_message(QueueUrl=self.url, MessageBody=text)

    def count(self) -> int:
        answer = self.client.get_queue_attributes(QueueUrl=self.url, AttributeNames=["All"])["Attributes"]
        return int(answer["ApproximateNumberOfMessages"]) + int(answer["ApproximateNumberOfMessagesNotVisible"])


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Iterator[Queue]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    with moto.mock_aws():
        yield Queue()


def config(tmp_path: Path, queue: Queue, **more: object) -> dict[str, object]:
    given = {"url": queue.url, "region": "us-east-1", "long.poll.wait": 0, "visibility.timeout": 0}
    target = {"target-base-path": str(tmp_path / "t"), "record_key": "s3.object.key,eventName", "ordering": "eventTime"}
    return {**target, "source-class": "S3EventsSource", **{f"{QUEUE}{key}": one for key, one in given.items()}, **more}


def keys(tmp_path: Path) -> list[str]:
    rows = HudiTable.open(tmp_path / "t").scan(["s3"], meta_columns=False).to_arrow()["s3"].to_pylist()
    return sorted(row["object"]["key"] for row in rows)


def test_events_of_created_objects_become_rows_and_their_messages_are_deleted(tmp_path: Path, queue: Queue) -> None:
    wrapped = {"Type": "Notification", "Message": json.dumps({"Records": [s3_event("in/c%2B1", 3)]})}
    queue.send(
        {"Service": "Amazon S3", "Event": "s3:TestEvent"}, {"Records": [s3_event("in/a", 1), s3_event("in/b", 2)]}
    )
    queue.send(wrapped, {"Records": [s3_event("in/a", 4, "ObjectRemoved:Delete")]})

    done = Streamer(config(tmp_path, queue)).run()

    assert (done.rows, done.checkpoint) == (3, "1767225603250")
    assert keys(tmp_path) == ["in/a", "in/b", "in/c%2B1"]
    assert queue.count() == 0
    assert "responseElements" not in HudiTable.open(tmp_path / "t").schema().names
    assert Streamer(config(tmp_path, queue)).run().rounds == 0
    queue.send({"Records": [s3_event("in/a", 5, "ObjectRemoved:Delete")]})
    assert Streamer(config(tmp_path, queue)).run().commits == 0
    assert queue.count() == 0


def test_an_event_that_comes_again_is_no_row_also_after_a_death_between_commit_and_deletion(
    tmp_path: Path, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = config(tmp_path, queue, op="INSERT")
    queue.send({"Records": [s3_event("a", 1), s3_event("b", 2)]}, {"Records": [s3_event("a", 1)]})
    with monkeypatch.context() as dying:
        dying.setattr(S3Events, "_delete", lambda *given: [])
        assert Streamer(settings).run().rows == 2
    assert queue.count() == 2

    queue.send({"Records": [s3_event("a", 9), s3_event("b", 2)]})
    assert Streamer(settings).run().rows == 1
    assert queue.count() == 0
    assert keys(tmp_path) == ["a", "a", "b"]


def test_events_of_a_batch_whose_process_died_are_known_however_many_others_come_before_they_come_again(
    tmp_path: Path, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_events, "_NOTED_MAX", 3)
    monkeypatch.setattr(read_events, "_PINNED_MAX", 2)
    settings = config(tmp_path, queue, op="INSERT", **{f"{QUEUE}visibility.timeout": 1000})
    queue.send({"Records": [s3_event("a", 1), s3_event("b", 2)]})
    with monkeypatch.context() as dying:
        dying.setattr(S3Events, "_delete", lambda *given: [])
        assert Streamer(settings).run().rows == 2
    streamer = Streamer(settings)
    queue.send({"Records": [s3_event("a", 1)]})
    assert streamer.run().rows == 0
    for second in range(3, 9):
        queue.send({"Records": [s3_event("c", second)]})
        assert streamer.run().rows == 1

    queue.send({"Records": [s3_event("a", 1), s3_event("b", 2), s3_event("c", 8)]})
    assert streamer.run().rows == 0
    assert keys(tmp_path) == ["a", "b", *["c"] * 6]


def test_messages_stay_where_the_batch_is_not_written(
    tmp_path: Path, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.send({"Records": [s3_event("a", 1)]})

    def refused(*given: object) -> None:
        raise WriteConflict("another writer")

    assert Streamer(config(tmp_path, queue)).check().waiting == 1
    with monkeypatch.context() as failing:
        failing.setattr(pipeline, "write", refused)
        failing.setattr("pyhudi.streamer.rounds._CONFLICTS_MAX", 0)
        with pytest.raises(WriteConflict):
            Streamer(config(tmp_path, queue)).run()
    assert queue.count() == 1
    assert Streamer(config(tmp_path, queue)).run().rows == 1


def test_a_message_that_is_none_of_s3_is_named_and_stays_or_is_set_aside(tmp_path: Path, queue: Queue) -> None:
    queue.send("no", {"detail-type": "Object Created"}, {"Records": [{"eventName": "ObjectCreated:Put"}]}, [1])
    queue.send({"Records": [s3_event("a", 1)]})

    with pytest.raises(SchemaMismatch, match=r"4 of 5 rows .*events/[\w-]+: no message of S3: .*Nothing was written"):
        Streamer(config(tmp_path, queue)).run()
    assert queue.count() == 5
    quarantine = {"hoodie.errortable.enable": True, "hoodie.errortable.base.path": str(tmp_path / "q")}
    share = {"hoodie.pyhudi.streamer.quarantine.max.share": 1}
    assert Streamer(config(tmp_path, queue, **quarantine, **share)).run().rejected == 4
    assert queue.count() == 0
    assert HudiTable.open(tmp_path / "q").scan().count() == 4


def test_a_batch_has_no_more_messages_than_the_limit_and_a_queue_that_is_gone_is_named(
    tmp_path: Path, queue: Queue
) -> None:
    queue.send(*({"Records": [s3_event(f"k{number:02}", number)]} for number in range(7)))
    settings = config(tmp_path, queue, **{f"{QUEUE}max.messages.per.batch": 4, f"{QUEUE}visibility.timeout": 30})

    assert Streamer(settings).run().rows == 4
    assert Streamer(settings).run(until_empty=True).rows == 3
    with pytest.raises(ConfigError, match=r"SQS queue .*other refused receive_message"):
        Streamer({**settings, f"{QUEUE}url": f"{queue.url}other"}).run()
    with pytest.raises(ConfigError, match=r"queue\.url is missing"):
        Streamer({**settings, f"{QUEUE}url": None})
    with pytest.raises(ConfigError, match="expected a URL"):
        Streamer({**settings, f"{QUEUE}url": "events"})
    with pytest.raises(ConfigError, match=r"expected 0 to 20, found 60"):
        Streamer({**settings, f"{QUEUE}long.poll.wait": 60})


def test_files_of_a_bucket_come_into_a_table_by_its_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both pipelines at a server: odd keys, a versioned bucket, marks of folders, objects that are gone."""
    pytest.importorskip("obstore")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test-access")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    with s3_server() as port:
        place = {"endpoint_url": f"http://127.0.0.1:{port}", "region_name": "us-east-1"}
        s3, sqs = boto.client("s3", **place), boto.client("sqs", **place)
        url = sqs.create_queue(QueueName="events")["QueueUrl"]
        arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        s3.create_bucket(Bucket="incoming")
        s3.put_bucket_versioning(Bucket="incoming", VersioningConfiguration={"Status": "Enabled"})
        told = {"QueueConfigurations": [{"QueueArn": arn, "Events": ["s3:ObjectCreated:*", "s3:ObjectRemoved:*"]}]}
        s3.put_bucket_notification_configuration(Bucket="incoming", NotificationConfiguration=told)
        for key, body in {
            "in/a file+1 ü=%2B&.json": b'{"id": 1, "v": 1}',
            "in/day=5/b.json": b'{"id": 2, "v": 1}\n{"id": 3, "v": 1}',
            "in/folder/": b"",
            "in/gone.json": b'{"id": 9, "v": 1}',
            "other/c.json": b'{"id": 10, "v": 1}',
        }.items():
            s3.put_object(Bucket="incoming", Key=key, Body=body)
        s3.put_object(Bucket="incoming", Key="in/day=5/b.json", Body=b'{"id": 2, "v": 2}')
        s3.delete_object(Bucket="incoming", Key="in/gone.json")
        queue = Queue.__new__(Queue)
        queue.client, queue.url = sqs, url
        events = config(tmp_path, queue, op="INSERT", **{f"{QUEUE}visibility.timeout": 30})

        assert Streamer(events).run(until_empty=True).rows == 6
        assert queue.count() == 0
        source = {"source-class": "S3EventsHoodieIncrSource", "target-base-path": str(tmp_path / "rows")}
        cloud = "hoodie.streamer.source.cloud.data."
        choice = {f"{cloud}datafile.format": "json", f"{cloud}select.relpath.prefix": "in/"}
        path = {
            "hoodie.streamer.source.hoodieincr.path": str(tmp_path / "t"),
            f"{cloud}partition.fields.from.path": "day",
        }
        settings = {**source, **choice, **path, **options_of(port), "record_key": "id"}
        lines: list[str] = []

        assert Streamer(settings).run(told=lines.append).rows == 2
        assert lines[0] == "incoming/in/gone.json was removed before it was read"
        s3.put_object(Bucket="incoming", Key="in/d.json", Body=b'{"id": 4, "v": 1}')
        Streamer(events).run()
        assert Streamer(settings).run().rows == 1
        assert Streamer(settings).run().rounds == 0
        found = HudiTable.open(tmp_path / "rows").scan(meta_columns=False).to_arrow().sort_by("id").to_pylist()
    assert [(row["id"], row["v"], row["day"]) for row in found] == [(1, 1, None), (2, 2, "5"), (4, 1, None)]
