"""Providers of the first checkpoint, for a table without one. Once a commit has a checkpoint, they are not called.

A user's provider is `module:Class`, created with the keys without `hoodie.`; its `checkpoint()` returns the text.
Source: Hudi's InitialCheckPointProvider and the classes that extend it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from pyhudi.actions.streamer_checkpoints import NO_CHECKPOINT, newest_checkpoint
from pyhudi.errors import ConfigError
from pyhudi.meta_client import MetaClient
from pyhudi.registry import Registry
from pyhudi.storage import open_storage
from pyhudi.streamer.checkpoints import Start
from pyhudi.streamer.settings import PipelineSettings
from pyhudi.streamer.sources.kafka.offsets import text_of_offsets

__all__ = ["FIRST_CHECKPOINTS", "first_start"]

_ROWS = {
    "InitialCheckpointFromAnotherHoodieTimelineProvider": f"{__name__}:of_another_table",
    "KafkaConnectHdfsProvider": f"{__name__}:of_kafka_connect",
}
_PACKAGE = "org.apache.hudi.utilities.checkpointing."
FIRST_CHECKPOINTS: Registry[Callable[..., Any]] = Registry(
    kind="initial checkpoint provider", entries=_ROWS, aliases={f"{_PACKAGE}{name}": name for name in _ROWS}
)
_CONNECT_FILE = re.compile(r"(?:[^/]*=[^/]*/)*([\w.-]+)\+(\d+)\+\d+\+(\d+)(?:\.\w+)*", re.ASCII)


def first_start(settings: PipelineSettings) -> Start:
    """The start of the table by the provider. Raises ConfigError if it returns none."""
    name = settings.options.runs.first_checkpoint
    assert name is not None
    factory = FIRST_CHECKPOINTS.load(name)
    if ":" not in FIRST_CHECKPOINTS.canonical(name):
        start: Start = factory(settings)
        return start
    text = factory(dict(settings.client)).checkpoint()
    if not isinstance(text, str) or not text:
        raise ConfigError(f"{settings.place}: {name}.checkpoint() returned {text!r:.100}; expected a text.")
    return Start(text, is_given=True)


def of_another_table(settings: PipelineSettings) -> Start:
    """The newest checkpoint of another table, with its source's notes."""
    meta = MetaClient.load(open_storage(_path(settings), settings.store))
    newest = newest_checkpoint(meta)
    if newest is None or not newest.text:
        raise ConfigError(f"{settings.place}: {meta.storage.root} has no checkpoint of a Streamer to begin with.")
    return Start(newest.text, is_v2=newest.is_v2, notes=newest.notes, after=NO_CHECKPOINT)


def of_kafka_connect(settings: PipelineSettings) -> Start:
    """The start after the last events in Kafka Connect's files, topic+partition+first+last.format in folders of a=b."""
    path = _path(settings)
    ends: dict[str, dict[int, int]] = {}
    for file in open_storage(path, settings.store).walk(""):
        matched = _CONNECT_FILE.fullmatch(file.path)
        if matched is not None:
            topic, partition, last = matched[1], int(matched[2]), int(matched[3])
            ends.setdefault(topic, {})[partition] = max(ends.get(topic, {}).get(partition, 0), last + 1)
    if len(ends) != 1:
        description = f"those of {len(ends)} topics, {', '.join(sorted(ends))}" if ends else "none"
        raise ConfigError(
            f"{settings.place}: {path}: expected files of Kafka Connect of one topic, found {description}."
        )
    ((topic, offsets),) = ends.items()
    missing = [number for number in range(max(offsets)) if number not in offsets]
    if missing:
        raise ConfigError(
            f"{settings.place}: {path} has files of partition {max(offsets)} of {topic}, and none of "
            f"{', '.join(map(str, missing))}: their start is unknown. Set it by checkpoint."
        )
    return Start(text_of_offsets(topic, offsets))


def _path(settings: PipelineSettings) -> str:
    path = settings.options.runs.first_checkpoint_path
    if path is None:
        raise ConfigError(f"{settings.place}: hoodie.streamer.checkpoint.provider.path is missing: the path to read.")
    return path
