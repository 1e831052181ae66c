"""Rows of the option table: cleaning.

Source: Hudi's documented keys; sides taken are in docs/compatibility.md.
"""

from __future__ import annotations

from pyhudi.model.options.row import honoured
from pyhudi.model.options.spec import Kind, OptionSpec

__all__ = ["CLEANING_OPTIONS"]

FLAG, INTEGER, TEXT = Kind.FLAG, Kind.INTEGER, Kind.TEXT

_GROUP = "Cleaning"

CLEANING_OPTIONS: tuple[OptionSpec, ...] = (
    honoured(_GROUP, "hoodie.clean.automatic", FLAG, "true", "Writes clean when they are complete."),
    honoured(
        _GROUP,
        "hoodie.clean.policy",
        TEXT,
        "KEEP_LATEST_COMMITS",
        "What is kept beside the newest version of every file. Unset, and just one of the three numbers is given: the "
        "policy of that number.",
        "hoodie.cleaner.policy",
        choices=("KEEP_LATEST_COMMITS", "KEEP_LATEST_FILE_VERSIONS", "KEEP_LATEST_BY_HOURS"),
    ),
    honoured(
        _GROUP,
        "hoodie.clean.commits.retained",
        INTEGER,
        "10",
        "KEEP_LATEST_COMMITS: the table can be read as of each of this many newest commits.",
        "hoodie.cleaner.commits.retained",
    ),
    honoured(
        _GROUP,
        "hoodie.clean.hours.retained",
        INTEGER,
        "24",
        "KEEP_LATEST_BY_HOURS: the table can be read as of each commit of this many last hours.",
        "hoodie.cleaner.hours.retained",
    ),
    honoured(
        _GROUP,
        "hoodie.clean.fileversions.retained",
        INTEGER,
        "3",
        "KEEP_LATEST_FILE_VERSIONS: how many versions of every file group are kept.",
        "hoodie.cleaner.fileversions.retained",
    ),
    honoured(
        _GROUP,
        "hoodie.clean.incremental.enabled",
        FLAG,
        "true",
        "Cleaning looks at the partitions that changed since the last one, not at all of them.",
        "hoodie.cleaner.incremental.mode",
    ),
    honoured(
        _GROUP,
        "hoodie.clean.partition.filter.selected",
        TEXT,
        None,
        "Clean these partitions only: paths with commas between them. Needs `hoodie.clean.incremental.enabled=false`.",
        "hoodie.cleaner.partition.filter.selected",
    ),
    honoured(
        _GROUP,
        "hoodie.clean.partition.filter.regex",
        TEXT,
        None,
        "Clean only partitions whose whole path matches this regular expression, unless some are selected by name. "
        "Needs `hoodie.clean.incremental.enabled=false`.",
        "hoodie.cleaner.partition.filter.regex",
    ),
    honoured(
        _GROUP,
        "hoodie.clean.trigger.strategy",
        TEXT,
        "NUM_COMMITS",
        "What automatic cleaning waits for.",
        choices=("NUM_COMMITS",),
    ),
    honoured(
        _GROUP,
        "hoodie.clean.trigger.max.commits",
        INTEGER,
        "1",
        "Commits since the last cleaning that trigger one. `HudiTable.clean` waits only if this is given.",
        "hoodie.clean.max.commits",
    ),
    honoured(
        _GROUP,
        "hoodie.clean.max.commits.to.clean",
        INTEGER,
        "9223372036854775807",
        "Commits by which one cleaning may move what is kept: a table that was long not cleaned is cleaned in steps.",
    ),
)
