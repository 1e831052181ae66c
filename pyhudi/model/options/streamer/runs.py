"""Options of where a Streamer's table begins, when its run ends, and of the columns on the way.

Source: Hudi's HoodieStreamer, its checkpoint providers, termination strategies and schema post-processors.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.model.options.declare import option
from pyhudi.model.options.spec import Kind, OptionScope

__all__ = ["ROUNDS_WITHOUT_DATA", "RunOptions", "SchemaChangeOptions"]

_STREAM = frozenset({OptionScope.STREAM})
_CHANGES = "hoodie.streamer.schemaprovider.schema_post_processor"
ROUNDS_WITHOUT_DATA = "max.rounds.without.new.data.to.shutdown"


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Where a table's first round begins, and when a continuous run ends."""

    termination: str | None = option(
        "hoodie.streamer.post-write-termination-strategy-class",
        None,
        "When a continuous run ends: NoNewDataTerminationStrategy, or `module:Class` of one's own.",
        Kind.TEXT,
        scopes=_STREAM,
    )
    rounds_without_data: int = option(
        ROUNDS_WITHOUT_DATA,
        3,
        "NoNewDataTerminationStrategy: so many rounds one after the other that bring nothing.",
        minimum=1,
        scopes=_STREAM,
    )
    max_pending_compactions: int = option(
        "hoodie.streamer.max-pending-compactions",
        5,
        "While so many compactions wait for the thread beside a continuous run, no batch begins.",
        minimum=1,
        scopes=_STREAM,
    )
    max_pending_clusterings: int = option(
        "hoodie.streamer.max-pending-clustering",
        5,
        "While so many clusterings wait for the thread beside a continuous run, no batch begins.",
        minimum=1,
        scopes=_STREAM,
    )
    first_checkpoint: str | None = option(
        "hoodie.streamer.initial-checkpoint-provider",
        None,
        "Who says where a table without a checkpoint begins: InitialCheckpointFromAnotherHoodieTimelineProvider, "
        "KafkaConnectHdfsProvider, or `module:Class` of one's own.",
        Kind.TEXT,
        scopes=_STREAM,
    )
    first_checkpoint_path: str | None = option(
        "hoodie.streamer.checkpoint.provider.path",
        None,
        "The table, or the folder of Kafka Connect, that such a provider reads.",
        Kind.TEXT,
        scopes=_STREAM,
    )


@dataclass(frozen=True, slots=True)
class SchemaChangeOptions:
    """What happens to a provider's schema."""

    names: tuple[str, ...] = option(
        _CHANGES,
        (),
        "What happens to the schema of a provider, one after the other: DropColumnSchemaPostProcessor, "
        "AddPrimitiveColumnSchemaPostProcessor, DeleteSupportSchemaPostProcessor, or `module:function` of one's own "
        "from an Arrow schema to another.",
        scopes=_STREAM,
    )
    dropped: tuple[str, ...] = option(
        f"{_CHANGES}.delete.columns", (), "DropColumnSchemaPostProcessor: the columns to leave out.", scopes=_STREAM
    )
    added: str | None = option(
        f"{_CHANGES}.add.column.name",
        None,
        "AddPrimitiveColumnSchemaPostProcessor: the column that comes behind the others.",
        Kind.TEXT,
        scopes=_STREAM,
    )
    added_type: str | None = option(
        f"{_CHANGES}.add.column.type",
        None,
        "Its type, by Avro's name.",
        Kind.TEXT,
        choices=("string", "bytes", "int", "long", "float", "double", "boolean"),
        scopes=_STREAM,
    )
