"""What tests beside the mock cluster of Kafka's client share."""

from __future__ import annotations

import pytest

from pyhudi.streamer.sources.kafka.topic_id import TopicId

__all__ = ["no_topic_ids"]


@pytest.fixture(autouse=True)
def no_topic_ids(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mock cluster doesn't answer to what asks for a topic's id, and costs the wait for it."""
    if request.node.get_closest_marker("servers") is None:
        monkeypatch.setattr(TopicId, "now", lambda self: None)
