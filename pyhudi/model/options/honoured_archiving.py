"""Rows of the option table: archiving of the timeline, which runs at the end of a write or when it is called.

Source: Hudi's documented keys; sides taken are in docs/compatibility.md.
"""

from __future__ import annotations

from pyhudi.model.options.row import honoured
from pyhudi.model.options.spec import Kind, OptionSpec

__all__ = ["ARCHIVING_OPTIONS"]

FLAG, INTEGER = Kind.FLAG, Kind.INTEGER

_GROUP = "Timeline archive"

ARCHIVING_OPTIONS: tuple[OptionSpec, ...] = (
    honoured(
        _GROUP,
        "hoodie.archive.automatic",
        FLAG,
        "true",
        "Writes archive instants when there are more commits on the active timeline than `hoodie.keep.max.commits`.",
    ),
    honoured(
        _GROUP,
        "hoodie.keep.max.commits",
        INTEGER,
        "30",
        "Completed commits on the active timeline above which archiving starts. Raised when cleaning keeps more.",
    ),
    honoured(
        _GROUP,
        "hoodie.keep.min.commits",
        INTEGER,
        "20",
        "Completed commits that archiving leaves on the active timeline. Raised when cleaning keeps more.",
    ),
    honoured(
        _GROUP,
        "hoodie.commits.archival.batch",
        INTEGER,
        "10",
        "Table version 6: entries (an instant has one for each of its states) in a block of an archive file.",
    ),
    honoured(
        _GROUP,
        "hoodie.archive.beyond.savepoint",
        FLAG,
        "false",
        "Archive commits after a savepoint too; the savepointed ones stay. By default archiving stops at the first "
        "savepoint. `restore` refuses to go back over archived commits.",
    ),
    honoured(
        _GROUP,
        "hoodie.archive.block.on.latest.clean.ectr",
        FLAG,
        "false",
        "Archive nothing at or after the earliest commit that the latest clean kept.",
    ),
    honoured(
        _GROUP,
        "hoodie.timeline.compaction.batch.size",
        INTEGER,
        "10",
        "From table version 8 on: as many files of one level of the history are folded into one of the next level.",
    ),
    honoured(
        _GROUP,
        "hoodie.timeline.compaction.target.file.max.bytes",
        INTEGER,
        "1048576000",
        "From table version 8 on: bytes of history files that are folded into one at most.",
    ),
    honoured(
        _GROUP,
        "hoodie.timeline.manifest.retained.versions",
        INTEGER,
        "3",
        "From table version 8 on: versions of the history that stay readable for those who began before.",
    ),
)
