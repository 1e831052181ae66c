"""Save modes, with one meaning for every entry point, and the removal of a table.

`decide_save` decides what a write with a save mode does. `check_place` checks the folder of a new table, and
`remove_table` deletes a table in a fixed order. `actions/replacement.py` replaces a table by a new one.

Source: Spark's save modes, as in Hudi's data source; docs/overwriting.md for those of `write_hudi`, where mode
overwrite keeps the table and its history, and mode replace makes a new one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyhudi.errors import ConfigError, TableExists
from pyhudi.locks import LockOptions, hold, open_lock
from pyhudi.model.filenames import LOCK_FILE_NAME, META_FOLDER, PARTITION_METADATA_NAMES, REPLACEMENT_PATH
from pyhudi.model.options import WriteOptions
from pyhudi.storage.base import Storage
from pyhudi.storage.place import delete_if_empty
from pyhudi.storage.staged_table import place_of

__all__ = [
    "OF_LOCKS",
    "REPLACE",
    "SAVE_MODES",
    "SaveDecision",
    "canonical_mode",
    "check_place",
    "decide_save",
    "delete_meta_folder",
    "operation_in_place",
    "options_in_place",
    "remove_table",
]


SAVE_MODES = ("append", "overwrite", "ignore", "error", "errorifexists", "default")
REPLACE = "replace"
_ERRORS = ("error", "errorifexists", "default")


@dataclass(frozen=True, slots=True)
class SaveDecision:
    """The effect of a save mode on a write.

    `skips`: nothing is written, because the table exists. `replaces_table`: a new table takes the place of the
    old one. `operation`: the operation that replaces the table's rows in one commit; None: the caller's operation.
    """

    skips: bool = False
    replaces_table: bool = False
    operation: str | None = None


def canonical_mode(mode: str, *, has_replace: bool = False) -> str:
    """append, overwrite, ignore or error; also replace with `has_replace`. Raises ConfigError for others."""
    words = (*SAVE_MODES[:2], REPLACE, *SAVE_MODES[2:]) if has_replace else SAVE_MODES
    word = mode.lower() if isinstance(mode, str) else ""
    if word not in words:
        raise ConfigError(f"Unknown mode {mode!r}; expected one of {', '.join(words)}.")
    return "error" if word in _ERRORS else word


def decide_save(mode: str, *, is_written: bool, operation_in_place: str | None, root: str) -> SaveDecision:
    """Decide what a write does.

    Args:
        mode: one of SAVE_MODES, or REPLACE.
        is_written: a table exists that is not the leftover of a dead first write.
        operation_in_place: how mode overwrite replaces rows, by the options; None: it recreates the table.
        root: the table's path, for messages.
    Raises: TableExists for mode error when the table exists, ConfigError for unknown modes.
    """
    word = canonical_mode(mode, has_replace=True)
    if word == REPLACE:
        return SaveDecision(replaces_table=True)
    if word == "overwrite":
        return SaveDecision(replaces_table=operation_in_place is None, operation=operation_in_place)
    if is_written and word == "ignore":
        return SaveDecision(skips=True)
    if is_written and word == "error":
        raise TableExists(
            f"There is a Hudi table at {root} already and mode is {mode!r}; use mode='append' to add to it, or "
            "'overwrite' to replace it."
        )
    return SaveDecision()


_OPERATION = "hoodie.datasource.write.operation"
_COMBINE = "hoodie.combine.before.insert"
_IN_PLACE = {"STATIC": "insert_overwrite_table", "DYNAMIC": "insert_overwrite"}
_DELETES = frozenset({"delete", "delete_partition"})
_BY_PLACE = LockOptions()
OF_LOCKS = (LOCK_FILE_NAME, ".locks")
_PROPERTIES = (".hoodie/hoodie.properties", ".hoodie/hoodie.properties.backup")


def operation_in_place(options: WriteOptions) -> str | None:
    """The operation by which save mode overwrite replaces an existing table's rows in one commit.

    Returns: None when the table is to be recreated. Raises ConfigError for operations that don't go with the mode.
    """
    operation = options.operation.lower()
    if operation in _DELETES:
        raise ConfigError(
            f"{_OPERATION}={operation} goes with mode append only: mode overwrite would delete the table."
        )
    if operation == "insert_overwrite_table":
        return operation
    mode = options.replacing.overwrite_mode
    return None if _OPERATION in options.explicit or mode is None else _IN_PLACE[mode]


def options_in_place(call_options: Mapping[str, object], options: WriteOptions) -> dict[str, object]:
    """The options of a write that replaces the rows of an existing table instead of the table.

    Rows of one key inside the batch are combined where the caller's operation would combine them.

    Args:    options: `call_options`, parsed.
    Raises:  ConfigError for operations that don't go with mode overwrite.
    """
    operation = operation_in_place(options)
    if operation is not None:
        return {**call_options, _OPERATION: operation}
    combines = (
        options.operation.lower() == "upsert" and options.combine_before_upsert and _COMBINE not in options.explicit
    )
    return {**call_options, _OPERATION: "insert_overwrite_table", **({_COMBINE: True} if combines else {})}


def check_place(storage: Storage, *, overwrite: bool) -> None:
    """Check that a new table may be made here, where there is none. Raises ConfigError, naming the files in the way.

    Overwriting deletes the folder's content, so it may hold only a table or the remains of an interrupted overwrite. An
    append to such remains is refused: their data files would count as the table's.
    """
    entries = {entry.name for entry in storage.list("")}
    if overwrite and entries and ".hoodie" not in entries:
        raise ConfigError(
            f"{storage.root} holds {', '.join(sorted(entries)[:3])} and no Hudi table, so mode overwrite would delete "
            "files that are not PyHudi's. Choose another path, or empty the folder yourself."
        )
    if not entries.isdisjoint(PARTITION_METADATA_NAMES):
        raise ConfigError(
            f"{storage.root} is a partition of a table, so a table in it would lie in another. Write to the folder of "
            "the table, or to another path."
        )
    if not overwrite and ".hoodie" in entries and len(entries) > 1:
        raise ConfigError(
            f"{storage.root} holds data files and a .hoodie folder without table properties, as an interrupted "
            "overwrite leaves them. Write with mode overwrite, or delete the folder."
        )


def remove_table(storage: Storage, options: LockOptions = _BY_PLACE) -> None:
    """Delete the content of the table's folder, except a lock's files.

    The properties are deleted first, so that a reader finds no table instead of a part of one. The rest of `.hoodie` is
    deleted last, because data files without it would count as committed in the next table made there. This order
    outlasts a power cut. If some file is known to be undeletable, nothing is deleted. Raises LockTimeout, StorageError.
    """
    storage = place_of(storage)
    storage.check_deletable("")
    with hold(open_lock(options, storage), options.wait_timeout_s):
        entries = storage.list("")
        storage.delete(REPLACEMENT_PATH)  # without properties the table that it names would count
        storage.sync([REPLACEMENT_PATH])
        for path in _PROPERTIES:
            storage.delete(path)
        storage.sync(_PROPERTIES)
        data = [entry for entry in entries if entry.name != META_FOLDER]
        for entry in data:
            storage.delete_tree(entry.path) if entry.is_dir else storage.delete(entry.path)
        storage.sync([entry.path for entry in data])
        delete_meta_folder(storage)
    delete_if_empty(storage, META_FOLDER)


def delete_meta_folder(storage: Storage) -> None:
    """Delete `.hoodie` with its content, except the held lock of the table: without its file two processes might hold
    it.
    """
    entries = storage.list(META_FOLDER)
    locks = [entry for entry in entries if entry.name.startswith(OF_LOCKS)]
    if not locks:
        storage.delete_tree(META_FOLDER)
    for entry in entries if locks else ():
        if entry not in locks:
            storage.delete_tree(entry.path) if entry.is_dir else storage.delete(entry.path)
    storage.sync([META_FOLDER])
