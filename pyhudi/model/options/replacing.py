"""ReplacingOptions: what a write that puts file groups out of the table is told about partitions, typed."""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.model.options.values import Values

__all__ = ["ReplacingOptions", "replacing_options"]


@dataclass(frozen=True, slots=True)
class ReplacingOptions:
    """`overwrite_mode`: what save mode overwrite means without an operation. `static_partitions`: the partitions that
    an insert_overwrite replaces, whatever its rows are; () for those that get rows. `partitions_to_delete`: partition
    paths and patterns.
    """

    overwrite_mode: str | None = None
    static_partitions: tuple[str, ...] = ()
    partitions_to_delete: tuple[str, ...] = ()


def replacing_options(values: Values) -> ReplacingOptions:
    """The options of a write."""
    return ReplacingOptions(
        overwrite_mode=values.text("hoodie.datasource.overwrite.mode"),
        static_partitions=values.names("hoodie.static.overwrite.partition.paths"),
        partitions_to_delete=values.names("hoodie.datasource.write.partitions.to.delete"),
    )
