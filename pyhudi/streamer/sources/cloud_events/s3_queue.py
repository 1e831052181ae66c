"""S3's events as rows: messages of an SQS queue become a table of events. `pip install "pyhudi[sqs]"`.

    messages of the queue → events of created objects, each once → rows; once they are in the table: messages deleted

A process may die between the commit and the deletion, and SQS may bring a message twice: such events are known by what
the commit notes (`read_events.py`), bring no row, and their messages are deleted then. `S3EventsHoodieIncrSource` reads
the files that the table names (`files.py`). Source: Hudi's S3EventsSource and S3EventsMetaSelector.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from pyhudi.errors import ConfigError, HudiError
from pyhudi.streamer.checkpoints import Start
from pyhudi.streamer.json_messages import RowColumns, decode_json
from pyhudi.streamer.sources.aws_calls import AwsCalls, Patience, aws_client
from pyhudi.streamer.sources.cloud_events.read_events import READ_EVENTS, ReadEvents, digest_of
from pyhudi.streamer.sources.files.date_folders import check_selector
from pyhudi.streamer.sources.source import Batch, Rejected, SourceSetting

__all__ = ["S3Events"]

_PER_REQUEST_MAX = 10  # of SQS
_OF_AWS = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")


@dataclass(frozen=True, slots=True)
class _Event:
    """`text`: its JSON."""

    digest: int
    time_ms: int
    text: bytes
    position: str


class S3Events:
    """The events of a queue, directly from S3, or by SNS."""

    writes_v2 = False
    reads_all = False

    def __init__(self, setting: SourceSetting) -> None:
        self._options = options = setting.settings.options.s3_queue
        if options.url is None:
            raise ConfigError(f"{setting.settings.place}: hoodie.streamer.s3.source.queue.url is missing.")
        selector = setting.settings.options.files.selector
        check_selector(selector, setting.settings.place, "S3EventsMetaSelector", "DFSPathSelector")
        place = urlsplit(options.url)
        if place.scheme not in ("http", "https") or not place.netloc:
            raise ConfigError(
                f"{setting.settings.place}: hoodie.streamer.s3.source.queue.url={options.url!r:.200}: expected a URL, "
                "https://sqs.REGION.amazonaws.com/ACCOUNT/QUEUE."
            )
        is_at_aws = (place.hostname or "").endswith(_OF_AWS)
        endpoint = None if is_at_aws else f"{place.scheme}://{place.netloc}"
        client = aws_client("sqs", "sqs", options.region, endpoint)
        self._name = place.path.rpartition("/")[2]
        self._deleted = ""  # what the commit notes whose messages were deleted last
        self._calls = AwsCalls(client, f"SQS queue {options.url}", setting.clock, Patience())

    def read(self, start: Start, limit: int | None, columns: RowColumns) -> Batch | None:
        """The messages that wait, as many as the limits allow. `limit` counts messages."""
        before = ReadEvents.of(start)
        messages = self._received(min(limit or self._options.max_messages, self._options.max_messages))
        if not messages:
            return None
        known = before.digests
        events: dict[int, _Event] = {}
        again: set[int] = set()
        rejected: list[Rejected] = []
        for message in messages:
            position = f"{self._name}/{message['MessageId']}"
            try:
                found = _events_of(message["Body"], position)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                reason = f"no message of S3: {type(error).__name__}: {error}"
                rejected.append(Rejected(position, message["Body"], reason))
                continue
            events |= {event.digest: event for event in found if event.digest not in known}
            again |= {event.digest for event in found} & known
        decoded = decode_json([event.text for event in events.values()], columns)
        every = list(events.values())
        rejected += [Rejected(every[at].position, every[at].text.decode(), reason) for at, reason in decoded.refused]
        newest_ms = max((event.time_ms for event in every), default=0)
        checkpoint = str(max(newest_ms, _milliseconds(start.text)))
        text = before.text
        if events:
            # Another process may have died before it deleted the messages of the batch before.
            text = before.with_batch(events, again, is_last_done=bool(text) and text == self._deleted).note()
        notes = {READ_EVENTS: text} if text else {}
        return Batch(
            decoded.rows, checkpoint, rejected, notes, done=partial(self._delete, messages, text if events else "")
        )

    def close(self) -> None:
        """Close the connections."""
        self._calls.client.close()

    def _received(self, limit: int) -> list[dict[str, Any]]:
        """Messages, each once. The first request waits for some; the last one brings none that are new."""
        messages: dict[str, dict[str, Any]] = {}
        wait_s = self._options.wait_s
        while len(messages) < limit:
            answer = self._calls.ask(
                "receive_message",
                QueueUrl=self._options.url,
                MaxNumberOfMessages=min(limit - len(messages), self._options.per_request, _PER_REQUEST_MAX),
                WaitTimeSeconds=wait_s,
                VisibilityTimeout=self._options.visibility_timeout_s,
            )
            came = (answer or {}).get("Messages", [])
            if not any(message["MessageId"] not in messages for message in came):
                break
            messages |= {message["MessageId"]: message for message in came}
            wait_s = 0
        return list(messages.values())

    def _delete(self, messages: Sequence[Mapping[str, Any]], noted: str) -> list[str]:
        """Delete messages whose events are in the table. Those that stay come again, and are known then.

        Args:    noted: the events that the batch's commit notes; "" where it brought none.
        """
        failed = 0
        try:
            for first in range(0, len(messages), _PER_REQUEST_MAX):
                entries = [
                    {"Id": str(number), "ReceiptHandle": message["ReceiptHandle"]}
                    for number, message in enumerate(messages[first : first + _PER_REQUEST_MAX])
                ]
                answer = self._calls.ask("delete_message_batch", QueueUrl=self._options.url, Entries=entries) or {}
                failed += len(answer.get("Failed", ()))
        except HudiError as error:
            return [f"The batch is in the table, and its messages are still in the queue: {error}"]
        if failed:
            return [f"{self._calls.where} kept {failed} messages that are in the table"]
        self._deleted = noted or self._deleted
        return []


def _events_of(body: str, position: str) -> list[_Event]:
    """The events of created objects in a message; none in S3's test of a queue. Raises ValueError, KeyError."""
    message = json.loads(body)
    if "Message" in message:  # of SNS
        message = json.loads(message["Message"])
    if "Records" not in message:
        if message.get("Event") == "s3:TestEvent":
            return []
        raise ValueError("it has no Records")
    events = []
    for record in message["Records"]:
        if not record["eventName"].startswith("ObjectCreated"):
            continue
        record.pop("responseElements", None)
        thing, bucket = record["s3"]["object"], record["s3"]["bucket"]["name"]
        time = datetime.fromisoformat(record["eventTime"].replace("Z", "+00:00"))
        number = thing.get("sequencer") or f"{thing.get('eTag')} {record['eventTime']}"
        digest = digest_of(bucket, thing["key"], thing.get("versionId") or "", number)
        events.append(_Event(digest, round(time.timestamp() * 1000), json.dumps(record).encode(), position))
    return events


def _milliseconds(text: str | None) -> int:
    try:
        return int(text or 0)
    except ValueError:
        raise ConfigError(
            f"The checkpoint {text!r:.100} is none of S3's events, which is milliseconds of a time: it is another "
            "source's. Start over by ignore-checkpoint."
        ) from None
