"""A queue of SQS in memory, for tests that need no more than messages that come, and go when they are deleted."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Queue", "s3_event"]


def s3_event(
    key: str, second: int = 0, name: str = "ObjectCreated:Put", bucket: str = "b", **more: object
) -> dict[str, Any]:
    """A record of a message, as S3 writes it."""
    thing = {"key": key, "size": 5, "eTag": "e", "sequencer": f"{second:04}", **more}
    s3 = {"bucket": {"name": bucket, "arn": f"arn:aws:s3:::{bucket}"}, "object": thing}
    time = f"2026-01-01T00:00:{second:02}.250Z"
    return {"eventName": name, "eventTime": time, "s3": s3, "responseElements": {"x-amz-request-id": key}}


@dataclass
class Queue:
    """Stands for a client of boto3."""

    messages: dict[str, str] = field(default_factory=dict)

    def send(self, *records: dict[str, Any]) -> None:
        self.messages[f"m{len(self.messages)}"] = json.dumps({"Records": records})

    def receive_message(self, **asked: Any) -> dict[str, Any]:
        found = list(self.messages.items())[: asked["MaxNumberOfMessages"]]
        return {"Messages": [{"MessageId": name, "Body": body, "ReceiptHandle": name} for name, body in found]}

    def delete_message_batch(self, **asked: Any) -> dict[str, Any]:
        for entry in asked["Entries"]:
            del self.messages[entry["ReceiptHandle"]]
        return {}

    def close(self) -> None:
        pass
