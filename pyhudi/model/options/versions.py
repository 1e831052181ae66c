"""VersionOptions: what upgrades and downgrades of a table leave unchecked, typed."""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.model.options.values import Values

__all__ = ["VersionOptions", "version_options"]


@dataclass(frozen=True, slots=True)
class VersionOptions:
    """Options of `HudiTable.upgrade` and `HudiTable.downgrade`."""

    skip_default_partition_validation: bool = False
    complex_key_validation: bool = True


def version_options(values: Values) -> VersionOptions:
    """The options of a call."""
    return VersionOptions(
        skip_default_partition_validation=values.flag("hoodie.skip.default.partition.validation"),
        complex_key_validation=values.flag("hoodie.write.complex.keygen.validation.enable"),
    )
