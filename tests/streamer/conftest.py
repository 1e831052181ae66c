"""Shared by the tests of pipelines."""

from tests.support.kafka import no_topic_ids

__all__ = ["no_topic_ids"]
