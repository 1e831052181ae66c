"""The commands of `pyhudi`: a row each. A row is text, so that help of all of them imports none.

Source: docs/cli.md.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from pyhudi.cli.reply import Reply

__all__ = ["COMMANDS", "GROUPS", "WITHOUT_OPTIONS", "Command", "command_of", "near_commands"]


@dataclass(frozen=True, slots=True)
class Command:
    """`words`: what is typed after `pyhudi`. `target`: its function, "module:name". `summary`: the first line of the
    function's docstring. `answer`: the type of its answer, "module:name": a dataclass, a `ResultList`, an Arrow schema,
    whose rows are listed; "" for rows with the columns of the question. `is_rows`: it answers several of the dataclass.
    """

    words: str
    target: str
    summary: str
    answer: str = ""
    is_rows: bool = False

    @property
    def group(self) -> str:
        """`table` of `table describe`; "" for a command of one word."""
        return self.words.partition(" ")[0] if " " in self.words else ""

    @property
    def row_type(self) -> type | None:
        """The type of a row of its answer, where that is `answer`."""
        return cast("type", load(self.answer)) if self.is_rows else None

    def function(self) -> Callable[..., Reply]:
        """The function, imported now."""
        return cast("Callable[..., Reply]", load(self.target))


def load(target: str) -> object:
    """What "module:name" names."""
    module, _, name = target.partition(":")
    return getattr(importlib.import_module(module), name)


GROUPS = {
    "table": "A table as it is",
    "": "Rows, table services, versions",
    "savepoint": "Savepoints",
    "index": "Indexes",
    "checkpoint": "Checkpoints of ingestion jobs",
    "config": "Properties",
    "metadata": "The metadata table",
    "locks": "The table's lock",
    "repair": "Damage found and mended",
}
_CLI = "pyhudi.cli"
_REPAIR = "pyhudi.cli.repair"
_REPAIRED = "pyhudi.services.repair.result:RepairResult"
_DESCRIPTION = "pyhudi.table.description:TableDescription"
_SAVEPOINTS = "pyhudi.services.savepoint:Savepoints"
_INDEXES = "pyhudi.services.indexes:IndexList"
_INDEX = "pyhudi.services.indexes:IndexInfo"
_COMPACTION = "pyhudi.services.results:CompactionResult"
_PROPERTIES = "pyhudi.services.properties:PropertiesChange"
_AUDIT = "pyhudi.locks.audit"
_VERSION = "pyhudi.services.versions.upgrade:VersionChange"
COMMANDS = (
    Command("table create", f"{_CLI}.table:create", "Make an empty table.", _DESCRIPTION),
    Command("table describe", f"{_CLI}.table:describe", "What a table is: type, version, keys, newest commit.",
            _DESCRIPTION),
    Command("table schema", f"{_CLI}.table:schema", "The columns of a table.", "pyhudi.cli.table:TableColumn", True),
    Command("table history", f"{_CLI}.table:history", "What happened to a table, newest first.",
            "pyhudi.queries.history:History"),
    Command("table files", f"{_CLI}.table:files", "The newest file of each file group.",
            "pyhudi.table.reports:FILES_SCHEMA"),
    Command("table partitions", f"{_CLI}.table:partitions", "The partitions, with their files and bytes.",
            "pyhudi.table.reports:PARTITIONS_SCHEMA"),
    Command("table stats", f"{_CLI}.table:stats", "Sizes of files, and what each commit wrote.",
            "pyhudi.table.reports:TableStats"),
    Command("table diff", f"{_CLI}.table:diff", "What came between two commits: rows, files, columns.",
            "pyhudi.table.reports:TableDiff"),
    Command("table health", f"{_CLI}.table:health", "What makes a table slow or large, and what mends it.",
            "pyhudi.services.health:TableHealth"),
    Command("table drop", f"{_CLI}.table:drop", "Delete a table: its rows, its history, its folder.", _DESCRIPTION),
    Command("query", f"{_CLI}.query:query", "Run a statement of SQL and answer with its rows."),
    Command("head", f"{_CLI}.query:head", "The first rows that come; no more is read than they need."),
    Command("write", f"{_CLI}.write:write", "Write the rows of files to a table, which is made when there is none.",
            "pyhudi.actions.result:WriteResult"),
    Command("bootstrap", f"{_CLI}.write:bootstrap",
            "Make a table of a folder of Parquet or ORC files, by default without copying them.",
            "pyhudi.actions.result:WriteResult"),
    Command("import", f"{_CLI}.write:import_table",
            "Copy the current snapshot of an Iceberg or Delta table into a new table, in one commit.",
            "pyhudi.actions.result:WriteResult"),
    Command("timeline", f"{_CLI}.table:timeline", "The instants of the active timeline, oldest first.",
            "pyhudi.model.instant:Instant", True),
    Command("compact", f"{_CLI}.services:compact", "Merge log files into base files.", _COMPACTION),
    Command("log-compact", f"{_CLI}.services:log_compact", "Merge the log blocks of slices with many of them.",
            _COMPACTION),
    Command("cluster", f"{_CLI}.services:cluster", "Rewrite small files as larger ones, with sorted rows.",
            "pyhudi.services.results:ClusteringResult"),
    Command("clean", f"{_CLI}.services:clean", "Delete files that no allowed query needs.",
            "pyhudi.services.clean.runs:CleanResult"),
    Command("archive", f"{_CLI}.services:archive", "Move old instants from the active timeline to the history.",
            "pyhudi.services.archive.archiving:ArchiveResult"),
    Command("ttl", f"{_CLI}.services:ttl", "Delete the partitions that have expired.",
            "pyhudi.services.partition_ttl:TtlResult"),
    Command("restore", f"{_CLI}.undo:restore", "Take a table back to a commit; later ones are lost.",
            "pyhudi.actions.undo.restore_result:RestoreResult"),
    Command("rollback", f"{_CLI}.undo:rollback", "Undo the newest write, or those after a commit.",
            "pyhudi.actions.undo.restore_result:RollbackResult"),
    Command("upgrade", f"{_CLI}.versions:upgrade", "Take a table to a higher version.", _VERSION),
    Command("downgrade", f"{_CLI}.versions:downgrade",
            "Take a table to a lower version, for older readers and writers.", _VERSION),
    Command("change-type", f"{_CLI}.versions:change_type", "Make a table copy-on-write or merge-on-read.",
            "pyhudi.services.table_type:TypeChange"),
    Command("export", f"{_CLI}.export:export",
            "Write a table elsewhere: rows to a Parquet, CSV or Arrow file, instants as JSON, or a copy of the table.",
            "pyhudi.cli.export:Exported"),
    Command("report", f"{_CLI}.export:report",
            "Write a page for the browser: rows, size, last write, health, timeline, files, schema, properties.",
            "pyhudi.cli.export:WrittenFile"),
    Command("completion", f"{_CLI}.completion:completion",
            'A script that completes commands and their options: `eval "$(pyhudi completion bash)"`.',
            "pyhudi.cli.completion:CompletionScript"),
    Command("savepoint list", f"{_CLI}.undo:list_savepoints", "The savepoints of a table, oldest first.", _SAVEPOINTS),
    Command("savepoint create", f"{_CLI}.undo:create_savepoint", "Save a commit: cleaning leaves its files.",
            "pyhudi.services.savepoint:Savepoint"),
    Command("savepoint delete", f"{_CLI}.undo:delete_savepoint",
            "Give a saved commit free again. Answers with the savepoints that stay.", _SAVEPOINTS),
    Command("index list", f"{_CLI}.indexes:list_indexes", "The indexes of a table.", _INDEXES),
    Command("index create", f"{_CLI}.indexes:create", "Build an index, which later writes keep up.", _INDEX),
    Command("index build", f"{_CLI}.indexes:build", "Build the indexes whose plans wait.", _INDEX, True),
    Command("index drop", f"{_CLI}.indexes:drop",
            "Take an index out of the metadata table. Answers with those that stay.", _INDEXES),
    Command("checkpoint get", f"{_CLI}.checkpoint:get",
            "The newest checkpoint in the commits of a table. Exit code 3 without one.",
            "pyhudi.table.change:Checkpoint"),
    Command("checkpoint set", f"{_CLI}.checkpoint:set_checkpoint",
            "Set the checkpoint by an empty commit; older commits stay as they are.",
            "pyhudi.table.change:Checkpoint"),
    Command("config list", f"{_CLI}.config:list_properties", "The properties of a table.",
            "pyhudi.cli.config:Properties"),
    Command("config set", f"{_CLI}.config:set_properties", "Set properties of a table, after a copy of the file.",
            _PROPERTIES),
    Command("config unset", f"{_CLI}.config:unset", "Remove properties of a table, after a copy of the file.",
            _PROPERTIES),
    Command("metadata validate", f"{_CLI}.metadata:validate",
            "Compare the metadata table with the files. Exit code 3 for a difference.",
            "pyhudi.queries.statistics_validation:Difference", True),
    Command("metadata rebuild", f"{_CLI}.metadata:rebuild", "Build the metadata table anew, or partitions of it.",
            "pyhudi.services.metadata_table:MetadataRebuild"),
    Command("metadata stats", f"{_CLI}.metadata:stats", "The files of the metadata table, by partition.",
            "pyhudi.table.metadata:MetadataStats"),
    Command("metadata drop", f"{_CLI}.metadata:drop",
            "Take the metadata table out, or partitions of it. Answers with the names of what went.",
            "builtins:str", True),
    Command("locks audit status", f"{_CLI}.locks:status", "Is the audit of the lock on, and what has it written?",
            f"{_AUDIT}:AuditStatus"),
    Command("locks audit enable", f"{_CLI}.locks:enable", "Keep a journal of each holder of the storage-based lock.",
            f"{_AUDIT}:AuditStatus"),
    Command("locks audit disable", f"{_CLI}.locks:disable", "Keep no more journals; those that are there stay.",
            f"{_AUDIT}:AuditStatus"),
    Command("locks audit validate", f"{_CLI}.locks:validate",
            "Look for two holders at once, and holders that died. Exit code 3 for one.", f"{_AUDIT}:AuditValidation"),
    Command("locks audit cleanup", f"{_CLI}.locks:cleanup", "Delete old journals of the lock.",
            f"{_AUDIT}:AuditCleanup"),
    Command("repair orphans", f"{_REPAIR}:orphans", "Delete data files that no instant owns.", _REPAIRED),
    Command("repair duplicates", f"{_REPAIR}:duplicates", "Keep one row of each key, by the merge rules.", _REPAIRED),
    Command("repair partition-metadata", f"{_REPAIR}:partition_metadata",
            "Write missing or wrong partition metadata.", _REPAIRED),
    Command("repair empty-instants", f"{_REPAIR}:empty_instants",
            "Mend instants whose files are empty or damaged.", _REPAIRED),
    Command("repair properties", f"{_REPAIR}:properties", "Make damaged hoodie.properties again.", _REPAIRED),
    Command("repair rename-partition", f"{_REPAIR}:rename_partition",
            "Give the rows of a partition the values of another path.", _REPAIRED),
    Command("repair deprecated-partition", f"{_REPAIR}:deprecated_partition",
            "Move rows without a value from `default` to the default partition of today.", _REPAIRED),
    Command("repair log-checksums", f"{_REPAIR}:log_checksums",
            "Keep what damaged log files still hold.", _REPAIRED),
)  # fmt: skip


# They read the table as it is, or change it without a choice. Their --option is refused.
WITHOUT_OPTIONS = frozenset(
    {
        "checkpoint get", "completion", "config list", "index list", "locks audit cleanup",
        "locks audit disable", "locks audit enable", "locks audit status", "locks audit validate", "metadata stats",
        "savepoint list", "table describe", "table diff", "table drop", "table files",
        "table history", "table partitions", "table schema", "table stats", "timeline",
    }
)  # fmt: skip


def command_of(tokens: Sequence[str]) -> tuple[Command, list[str]] | None:
    """The command that the first words name, and the words after them; None without one."""
    for count in (3, 2, 1):
        words = " ".join(tokens[:count])
        for command in COMMANDS:
            if command.words == words:
                return command, list(tokens[count:])
    return None


def near_commands(tokens: Sequence[str]) -> list[str]:
    """Names of commands that look like what was typed."""
    typed = " ".join(tokens[:3])
    names = [command.words for command in COMMANDS]
    ends = {name.rpartition(" ")[2]: name for name in reversed(names)}
    near = get_close_matches(typed, names, n=3)
    by_word = [ends[word] for token in tokens[:3] for word in get_close_matches(token, ends, n=1)]
    return list(dict.fromkeys([*near, *by_word]))
