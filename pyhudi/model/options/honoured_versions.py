"""Rows of the option table: upgrade and downgrade of a table.

Source: Hudi's documented keys.
"""

from __future__ import annotations

from pyhudi.model.options.row import honoured
from pyhudi.model.options.spec import Kind, OptionSpec

__all__ = ["VERSION_OPTIONS"]

_GROUP = "Table versions"

VERSION_OPTIONS: tuple[OptionSpec, ...] = (
    honoured(
        _GROUP,
        "hoodie.skip.default.partition.validation",
        Kind.FLAG,
        "false",
        "An upgrade from version 4 takes a partition named `default` as it is.",
    ),
    honoured(
        _GROUP,
        "hoodie.write.complex.keygen.validation.enable",
        Kind.FLAG,
        "true",
        "Steps between versions 8 and 9 refuse tables with the generator COMPLEX and one key field. Writes do not ask.",
    ),
)
