"""The commands of `pyhudi`, one row each. Source: docs/cli.md."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from functools import partial

from pyhudi.cli.command import DRY_RUN, TABLE, Command, arg, names_of, pairs_of

__all__ = ["COMMANDS", "GROUPS", "command_of", "near_commands"]

GROUPS = {
    "table": "Facts about a table",
    "": "Rows, table services, versions",
    "sync": "Catalogs",
    "export": "Metadata of other formats",
    "savepoint": "Savepoints",
    "index": "Indexes",
    "checkpoint": "Checkpoints of ingestion jobs",
    "config": "Properties",
    "metadata": "The metadata table",
    "locks": "The table's lock",
    "repair": "Finding and repairing damage",
}
_T = "pyhudi.cli.tables"
_R = "pyhudi.cli.rows"
_COLUMNS = arg("--columns", meaning="Their names, separated by commas. Default: the data columns.", convert=names_of)
_WHERE = arg("--where", meaning="SQL text that rows must pass.")
_AS_OF = arg("--as-of", meaning="The table at that moment: an instant time, or a date or time.")
_NEW_TABLE = (
    arg("--record-key", meaning="Key columns of a new table, separated by commas. Default: generated keys.",
        convert=names_of),
    arg("--partition-by", meaning="Partition columns of a new table, separated by commas.", convert=names_of),
    arg("--ordering", meaning="The columns whose greater value wins, separated by commas.", convert=names_of),
    arg("--table-type", meaning="Of a new table: COPY_ON_WRITE or MERGE_ON_READ."),
    arg("--table-name", meaning="Of a new table. Default: its folder's name."),
)  # fmt: skip
_PLAN = (
    arg("--schedule", meaning="Leave the plan on the timeline, for `--run` of any process.", action="store_true",
        dest="schedule_only"),
    arg("--run", meaning="Run this pending plan, by its instant time, and make no new one.", dest="instant_time"),
)  # fmt: skip
_PARTITIONS = arg("--partitions", meaning="Their names, separated by commas. Default: all.", convert=names_of)
_KEY = arg("--key", meaning="Its key in the commit. Default: that of Hudi's Streamer.")


def _differs(plan: object) -> bool:
    return getattr(plan, "source", None) != getattr(plan, "target", None)


COMMANDS = (
    Command(
        "table create", "Create an empty table.", "create", own=f"{_T}:create",
        takes=(
            arg("--columns", meaning='In SQL: "id BIGINT NOT NULL, city STRING, fare DECIMAL(10,2)".'),
            arg("--like", meaning="A Parquet, CSV, JSON or Arrow file with the columns."),
            *_NEW_TABLE,
        ),
    ),
    Command("table describe", "Describe a table: type, version, keys, newest commit.", "inspect.describe",
            own=f"{_T}:describe", has_options=False),
    Command("table schema", "The columns of a table.", "schema", own=f"{_T}:schema", has_options=False),
    Command(
        "table history", "The instants of a table, newest first.", "history", has_options=False,
        takes=(
            arg("--limit", "-n", meaning="Only the newest ones.", type=int),
            arg("--since", meaning="The first instant time, or a date or time."),
            arg("--until", meaning="The last instant time, or a date or time."),
            arg("--active", meaning="Only those on the active timeline.", action="store_false", dest="archived"),
        ),
    ),
    Command("table files", "The newest file of each file group.", "inspect.files", own=f"{_T}:files",
            has_options=False),
    Command("table partitions", "The partitions, with their files and bytes.", "inspect.partitions",
            own=f"{_T}:partitions", has_options=False),
    Command("table stats", "Sizes of files, and the totals of each commit.", "inspect.stats", has_options=False),
    Command(
        "table diff", "The changes between two commits: rows, files, columns.", "inspect.diff", has_options=False,
        takes=(
            arg("since", meaning="The earlier one: its instant time, or a date or time."),
            arg("until", meaning="The later one. Default: the newest commit.", nargs="?"),
        ),
    ),
    Command(
        "table health", "Why a table is slow or large, and how to fix it.", "inspect.health", own=f"{_T}:health",
        wrong=lambda report: not report.is_healthy,
        details="Exit code 3 if something needs a call.",
        takes=(arg("--deep", meaning="Also a dry run of each repair; this reads keys, log files and history.",
                   action="store_true"),),
    ),
    Command("table drop", "Delete a table: its rows, its history, its folder.", "drop", own=f"{_T}:drop",
            asks="Delete this table permanently?", has_options=False),
    Command(
        "query", "Run an SQL statement and show its rows.", "", own=f"{_R}:query",
        details="Names are those of --catalog and --table; hudi.`/lake/rides` names a path. DuckDB runs it, which the "
        "extra `cli` brings for Python 3.11 and newer; with --spark Spark does.",
        takes=(
            arg("sql", meaning='The statement; "-" reads it from standard input.'),
            arg("--table", meaning="NAME=PATH: a name for a table. Can be repeated.", action="append",
                dest="tables", convert=partial(pairs_of, "--table")),
            arg("--dialect", meaning='A query has Spark\'s meaning, or is refused; with "duckdb" it is in DuckDB\'s '
                "own SQL.", choices=("spark", "duckdb")),
        ),
    ),
    Command(
        "head", "The first rows; only the files that hold them are read.", "head", own=f"{_R}:head",
        takes=(arg("--rows", "--limit", "-n", meaning="How many.", type=int), _COLUMNS, _WHERE, _AS_OF),
    ),
    Command(
        "write", "Write the rows of files to a table, which is created if it does not exist.", "pyhudi.write_hudi",
        own=f"{_R}:write",
        details="All rows go into one commit. Columns of CSV and JSON get the types of the table, if it exists; "
        'otherwise all rows decide. In CSV an empty field is null and "" an empty text; an empty line is no row. '
        "JSON texts remain texts in a new table.",
        takes=(
            arg("files", meaning='Parquet, CSV, JSON (an array, or one row per line) or Arrow files; "-" is standard '
                "input.", nargs="+"),
            arg("--operation", meaning="upsert, insert, bulk_insert, delete, insert_overwrite or "
                "insert_overwrite_table."),
            arg("--mode", meaning="append, overwrite, replace, ignore or error, if the table exists."),
            arg("--where", meaning="With --mode overwrite: only these rows are replaced."),
            arg("--format", meaning="parquet, csv, json or arrow. Default: by the extensions of the files."),
            arg("--encoding", meaning="Of CSV and JSON: utf-8, latin-1, cp1252 and so on."),
            *_NEW_TABLE,
        ),
    ),
    Command(
        "stream", "Run a pipeline: from files, Kafka or a Hudi table into a table, each row exactly once.", "",
        own="pyhudi.cli.streams:stream", wrong=lambda done: done.failed,
        details="One round; with hoodie.streamer.continuous=true rounds until SIGTERM, which lets the batch end. "
        "--option overrides the file. With --spark the tasks of the session read and write. Exit code 3 if some of "
        "several tables failed.",
        takes=(
            arg("config", meaning="A TOML file, or a properties file of HoodieStreamer (docs/streamer.md)."),
            arg("--check", meaning="Check the source, the schema and the table, and show five rows as they would be "
                "written. Nothing is written.", action="store_true"),
            arg("--until-empty", meaning="Continue until the source has no new rows.", action="store_true"),
        ),
    ),
    Command(
        "bootstrap", "Create a table from a folder of Parquet or ORC files, by default without copying them.",
        "pyhudi.bootstrap", own=f"{_R}:bootstrap",
        details="Without --partition-by the partition columns are those in folder names (city=rome).",
        takes=(
            arg("source", meaning="The folder. It must not change while the table uses its files."),
            TABLE,
            arg("--mode", meaning="METADATA_ONLY leaves rows in the source, and needs --record-key; FULL_RECORD copies "
                "them."),
            arg("--regex", meaning="--mode applies to partitions whose whole path matches, the other mode to others."),
            *_NEW_TABLE,
        ),
    ),
    Command(
        "import", "Copy the current snapshot of an Iceberg or Delta table into a new table, in one commit.",
        "pyhudi.import_table", own=f"{_R}:import_table",
        details="It needs the extra `iceberg` or `delta`. Without --partition-by the partition columns are those of "
        "the source.",
        takes=(
            arg("kind", meaning="iceberg or delta."),
            arg("source", meaning="The folder of the other table; for Iceberg also a metadata.json."),
            TABLE,
            *_NEW_TABLE,
        ),
    ),
    Command(
        "timeline", "The instants of the active timeline, oldest first.", "state", own=f"{_T}:timeline",
        details="For archived ones see `pyhudi table history`.", has_options=False,
        takes=(
            arg("--action", meaning="Only this one: commit, deltacommit, replacecommit, clean, rollback, savepoint and "
                "so on."),
            arg("--pending", meaning="Only those that are not completed.", action="store_true"),
        ),
    ),
    Command("compact", "Merge log files into base files.", "compact", (DRY_RUN, *_PLAN)),
    Command("log-compact", "Merge the log blocks of slices with many of them.", "maintenance.log_compact",
            (DRY_RUN, *_PLAN)),
    Command(
        "cluster", "Rewrite small files as larger ones, with sorted rows.", "cluster",
        takes=(
            arg("--sort", meaning="Columns to sort by, separated by commas.", dest="sort_columns", convert=names_of),
            arg("--layout", meaning="LINEAR, ZORDER or HILBERT."),
            DRY_RUN,
            *_PLAN,
        ),
    ),
    Command("clean", "Delete files that no allowed query needs.", "clean", _PLAN,
            details="The policy is Hudi's: `--option hoodie.clean.policy=...`.",
            asks="Delete these files?", changes=lambda plan: plan.planned or plan.waiting),
    Command("archive", "Move old instants from the active timeline to the history.", "maintenance.archive", (DRY_RUN,)),
    Command("ttl", "Delete the partitions that have expired.", "maintenance.run_ttl",
            details="Set the age by `--option hoodie.partition.ttl.strategy.days.retain=30`.",
            asks="Delete these partitions?", changes=lambda plan: plan.expired),
    Command("restore", "Restore a table to a commit; later ones are lost.", "restore",
            (arg("--to", meaning="The commit: its instant time, or a date or time.", required=True),),
            asks="Lose these writes permanently?"),
    Command(
        "rollback", "Undo the newest write, or those after a commit.", "rollback", asks="Undo these writes?",
        takes=(
            arg("instant_time", meaning="The write to undo: the newest (the default), or a pending one.",
                metavar="INSTANT", nargs="?"),
            arg("--to", meaning="Undo all writes after this commit, each by a separate rollback."),
        ),
    ),
    Command("upgrade", "Upgrade a table to a higher version.", "maintenance.upgrade",
            (arg("--to", meaning="The version: 6, 8 or 9.", type=int),), asks="Upgrade the table?", changes=_differs),
    Command("downgrade", "Downgrade a table to a lower version, for older software.", "maintenance.downgrade",
            (arg("--to", meaning="The version: 8 or 6.", type=int, required=True),),
            asks="Downgrade the table?", changes=_differs),
    Command("change-type", "Make a table copy-on-write or merge-on-read.", "maintenance.change_type",
            (arg("--to", meaning="COPY_ON_WRITE or MERGE_ON_READ; cow and mor for short.", required=True),),
            details="To copy-on-write all log files are compacted first.",
            asks="Change the table's type?", changes=_differs),
    Command(
        "export",
        "Export rows to a Parquet, CSV or Arrow file, instants as JSON, or a copy of the table.",
        "export", own=f"{_R}:export",
        details="Rows are streamed. The file appears when it is complete; an existing file is replaced. A copy is a "
        "complete table for every reader and writer, with unchanged files; nothing older than --as-of can be read in "
        "it.",
        takes=(
            arg("file", meaning="The file on this machine: its name ends in .parquet, .csv or .arrow. With --instants "
                "a folder; with --copy the path or URI of the new table."),
            _COLUMNS, _WHERE, _AS_OF,
            arg("--instants", meaning="Write the bodies of completed instants, one JSON file each.",
                action="store_true"),
            arg("--copy", meaning="Copy the table.", action="store_true"),
        ),
    ),
    Command(
        "report", "Write a page for the browser: rows, size, last write, health, timeline, files, schema, properties.",
        "inspect.report", (arg("file", meaning="The HTML file on this machine, which is overwritten."),),
        own=f"{_R}:report",
    ),
    Command(
        "completion", 'Print a script that completes commands and options: `eval "$(pyhudi completion bash)"`.', "",
        (arg("shell", meaning="bash, zsh or fish.", choices=("bash", "zsh", "fish")),),
        own="pyhudi.cli.completion:completion", has_options=False,
    ),
    Command(
        "sync hive", "Register a table in a Hive metastore, or update its entry there.", "sync",
        own=f"{_T}:sync_hive",
        details="The metastore and the names are options, such as "
        "--option hoodie.datasource.hive_sync.metastore.uris=thrift://host.",
    ),
    Command(
        "sync glue", "Register a table in AWS Glue's Data Catalog, or update its entry there.", "sync",
        own=f"{_T}:sync_glue",
        details="The names and the region are options, such as "
        "--option hoodie.datasource.meta.sync.glue.database_name=lake.",
    ),
    Command(
        "sync bigquery", "Write the list of files for BigQuery, and print the SQL that creates its table.", "sync",
        own=f"{_T}:sync_bigquery",
        details="The names are options, such as --option hoodie.gcp.bigquery.sync.dataset_name=lake.",
    ),
    Command(
        "export delta", "Let engines of Delta read a table: its metadata over the table's own files.",
        "export_metadata", own=f"{_T}:export_delta",
        details="Each commit since the last export becomes a version. A table in the folder `delta` is "
        "`./delta` for `pyhudi export`, which writes rows.",
    ),
    Command(
        "export iceberg", "Let engines of Iceberg read a table: its metadata over the table's own files.",
        "export_metadata", own=f"{_T}:export_iceberg",
        details="Each commit since the last export becomes a snapshot. The catalog's properties and the table's "
        "name are options, such as --option hoodie.pyhudi.export.iceberg.catalog.uri=http://host:8181.",
    ),
    Command(
        "sync check", "Check which engines read a table, and what they would miss or show wrongly.", "sync_check",
        own=f"{_T}:sync_check", wrong=lambda checked: not checked.ok,
        details="Exit code 3 if an engine does not read all of it. With the options of a catalog, its entry is "
        "compared with the table. Nothing is changed.",
        takes=(arg("--engine", meaning="Only this one: athena, trino, duckdb and so on."),),
    ),
    Command("savepoint list", "The savepoints of a table, oldest first.", "savepoints.list", has_options=False),
    Command(
        "savepoint create", "Save a commit: cleaning keeps its files.", "savepoints.create",
        takes=(
            arg("instant_time", meaning="The commit. Default: the newest one.", metavar="INSTANT", nargs="?"),
            arg("--user", meaning="The user who saves it."),
            arg("--comment", meaning="Why."),
        ),
    ),
    Command("savepoint delete", "Delete a savepoint. Prints the remaining ones.", "savepoints.delete",
            (arg("instant_time", meaning="The saved commit.", metavar="INSTANT"),),
            own=f"{_T}:delete_savepoint", asks="Delete the savepoint?"),
    Command("index list", "The indexes of a table.", "indexes.list", has_options=False),
    Command(
        "index create", "Build an index, which later writes update.", "indexes.create",
        takes=(
            arg("name", meaning="Its name; record_index, column_stats, partition_stats and bloom_filters are types, "
                "too."),
            arg("--columns", meaning="Its columns, separated by commas.", convert=names_of),
            arg("--index-type", meaning="secondary_index, column_stats or bloom_filters."),
            arg("--expression", meaning="SQL over a column, as \"from_unixtime(ts, 'yyyy-MM-dd')\"."),
            arg("--while-writing", meaning="Let other writers continue during the build.", action="store_true"),
            arg("--schedule", meaning="Leave the plan on the timeline, for `pyhudi index build`.", action="store_true",
                dest="schedule_only"),
        ),
    ),
    Command("index build", "Build the indexes with pending plans.", "indexes.build", own=f"{_T}:build_indexes"),
    Command("index drop", "Remove an index from the metadata table. Prints the remaining ones.", "indexes.drop",
            (arg("name", meaning="Its name."),), own=f"{_T}:drop_index", asks="Drop it?"),
    Command("checkpoint get", "The newest checkpoint in the commits of a table. Exit code 3 without one.",
            "inspect.checkpoint", (_KEY,), wrong=lambda checkpoint: checkpoint.value is None, has_options=False),
    Command("checkpoint set", "Set the checkpoint by an empty commit; older commits are not changed.",
            "maintenance.set_checkpoint", (arg("value", meaning="The position from which the job continues."), _KEY),
            own=f"{_T}:set_checkpoint", asks="Set the checkpoint?"),
    Command("config list", "The properties of a table.", "inspect.describe", own=f"{_T}:properties", has_options=False),
    Command("config set", "Set properties of a table, after a backup of the file.", "maintenance.set_properties",
            (arg("properties", meaning="KEY=VALUE, one or several.", nargs="+",
                 convert=partial(pairs_of, "config set")),),
            details="Properties that describe how files are written, such as keys and partitioning, are refused.",
            asks="Set them?", changes=lambda plan: plan.differences),
    Command("config unset", "Remove properties of a table, after a backup of the file.", "maintenance.set_properties",
            (arg("unset", meaning="Their keys, one or several.", metavar="KEYS", nargs="+"),),
            asks="Remove them?", changes=lambda plan: plan.differences),
    Command("metadata validate", "Compare the metadata table with the files. Exit code 3 for a difference.",
            "metadata.validate",
            (arg("--sample", meaning="Read only this many file groups. All files are listed.", type=int),),
            own=f"{_T}:validate_metadata", wrong=bool),
    Command("metadata rebuild", "Rebuild the metadata table, or partitions of it.", "metadata.rebuild",
            (_PARTITIONS, DRY_RUN)),
    Command("metadata stats", "The files of the metadata table, by partition.", "metadata.stats", has_options=False),
    Command("metadata drop", "Remove the metadata table, or partitions of it. Prints the removed partitions.",
            "metadata.drop", (_PARTITIONS,), own=f"{_T}:drop_metadata",
            asks="Drop these partitions of the metadata table?", changes=bool),
    Command("locks audit status", "The state of the lock's audit, and its journals.",
            "maintenance.lock_audit.status", has_options=False),
    Command("locks audit enable", "Keep a journal of each holder of the storage-based lock.",
            "maintenance.lock_audit.enable", details="PyHudi and real Hudi from 1.1 on write them.", has_options=False),
    Command("locks audit disable", "Stop keeping journals; existing ones are kept.",
            "maintenance.lock_audit.disable", has_options=False),
    Command("locks audit validate", "Check for simultaneous and dead holders. Exit code 3 if there are any.",
            "maintenance.lock_audit.validate", wrong=lambda validation: validation.issues, has_options=False),
    Command("locks audit cleanup", "Delete old journals of the lock.", "maintenance.lock_audit.cleanup",
            (arg("--days", meaning="Those that were last written more than this many days ago.", type=int),),
            asks="Delete these files?", changes=lambda plan: plan.files, has_options=False),
    *(
        Command(
            f"repair {words}", summary, f"maintenance.repair.{words.replace('-', '_')}", takes, own=own,
            details="Exit code 3 if --dry-run finds any, as for all repairs." if words == "orphans" else "",
            asks="Repair these?", changes=lambda plan: plan.repairable,
            wrong=lambda repair: repair.items and not repair.is_done,
        )
        for words, summary, own, takes in (
            ("orphans", "Delete data files that no instant owns.", "", ()),
            ("duplicates", "Keep one row of each key, by the merge rules.", "", (
                arg("--partition", meaning="Path of a partition to search. Default: all. Can be "
                    "repeated.", action="append", dest="partitions"),)),
            ("partition-metadata", "Write missing or wrong partition metadata.", "", ()),
            ("empty-instants", "Repair instants whose files are empty or damaged.", "", ()),
            ("properties", "Recreate damaged hoodie.properties.", f"{_T}:repair_properties", (
                arg("--set", meaning="KEY=VALUE: a property that overrides all others. Can be "
                    "repeated.", action="append", dest="properties", convert=partial(pairs_of, "--set")),)),
            ("rename-partition", "Give the rows of a partition the values of another path.", "", (
                arg("old", meaning="Path of the partition."),
                arg("new", meaning="Its new path, which must have no rows."))),
            ("deprecated-partition",
             "Move rows without a value from `default` to today's default partition.", "", ()),
            ("log-checksums", "Keep the readable rows of damaged log files.", "", ()),
        )
    ),
)  # fmt: skip


def command_of(tokens: Sequence[str]) -> tuple[Command, list[str]] | None:
    """The command named by the first words, and the words after them; None if there is none."""
    by_words = {command.words: command for command in COMMANDS}
    candidates = ((by_words.get(" ".join(tokens[:count])), list(tokens[count:])) for count in (3, 2, 1))
    return next(((command, arguments) for command, arguments in candidates if command is not None), None)


def near_commands(tokens: Sequence[str]) -> list[str]:
    """Names of commands that resemble the typed words."""
    names = [command.words for command in COMMANDS]
    ends = {name.rpartition(" ")[2]: name for name in reversed(names)}
    similar = get_close_matches(" ".join(tokens[:3]), names, n=3)
    by_word = [ends[word] for token in tokens[:3] for word in get_close_matches(token, ends, n=1)]
    return list(dict.fromkeys([*similar, *by_word]))
