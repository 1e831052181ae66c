"""The id of a topic: one that is deleted and recreated has another, however many events it has by then (KIP-516)."""

from __future__ import annotations

import logging
from concurrent.futures import TimeoutError as NoAnswer
from typing import TYPE_CHECKING, Any

from pyhudi.streamer.sources.kafka.client import ClientSettings, kafka_library

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

__all__ = ["TOPIC_ID", "TopicId"]

TOPIC_ID = "pyhudi.streamer.topic.id"  # a key of extra metadata
_log = logging.getLogger("pyhudi.streamer")
_TIMEOUT_S = 5.0
_LEFT_OUT = 100  # questions, of which a round with events has two
_NO_ID = "A" * 22  # of brokers before 2.8
# Of consumers; the client that asks is none, and would warn of each.
_OF_CONSUMERS = (
    "group.", "enable.auto.", "enable.partition.eof", "auto.", "session.timeout", "heartbeat.", "max.poll.", "fetch.",
    "queued.", "max.partition.fetch", "partition.assignment", "isolation.level", "check.crcs", "coordinator.query",
)  # fmt: skip


class TopicId:
    """Asks a broker for the id of a topic, some milliseconds each time; not for a while after it gave none."""

    def __init__(self, topic: str, client: ClientSettings) -> None:
        self._topic, self._client = topic, client
        self._admin: AdminClient | None = None
        self._left_out = 0

    def now(self) -> str | None:
        """The id, None where the broker doesn't give it: it is too old, or the user has no right to describe."""
        if self._left_out:
            self._left_out -= 1
            return None
        found = self._asked()
        self._left_out = _LEFT_OUT if found is None else 0
        return found

    def _asked(self) -> str | None:
        library: Any = kafka_library()
        try:
            if self._admin is None:
                from confluent_kafka.admin import AdminClient

                settings = {key: one for key, one in self._client.settings.items() if not key.startswith(_OF_CONSUMERS)}
                self._admin = AdminClient(settings)
            asked = self._admin.describe_topics(library.TopicCollection([self._topic]), request_timeout=_TIMEOUT_S)
            found = str(asked[self._topic].result(_TIMEOUT_S).topic_id)
        except (library.KafkaException, NoAnswer, AttributeError) as error:
            _log.info("the topic %s: the broker gives no id: %r", self._topic, error)
            return None
        return None if found == _NO_ID else found
