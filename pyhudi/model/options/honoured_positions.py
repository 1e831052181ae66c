"""Row of the option table: record positions in log blocks.

Source: Hudi's documented keys; the side taken is in docs/compatibility.md.
"""

from __future__ import annotations

from pyhudi.model.options.row import honoured
from pyhudi.model.options.spec import Kind, OptionSpec

__all__ = ["POSITION_OPTIONS"]

POSITION_OPTIONS: tuple[OptionSpec, ...] = (
    honoured(
        "Files",
        "hoodie.write.record.positions",
        Kind.FLAG,
        "false",
        "Merge-on-read from version 8 on: log blocks say at which rows of the base file their keys stand, which saves "
        "Hudi's readers a look at keys and costs writes one. PyHudi's readers go by keys.",
    ),
)
