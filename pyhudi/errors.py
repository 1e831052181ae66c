"""The error family: every error that PyHudi raises on purpose is a `HudiError`.

HudiError                     root; `retryable`: a retry can help
├── ConfigError               the caller gave a wrong, missing or unsupported option
│   ├── KeyGenError           a row has no usable key or partition value
│   └── MissingLibrary        a call needs a package that is not installed
├── TableError                the table does not meet the call's needs
│   ├── TableNotFound, TableExists, UnsupportedTable, SchemaMismatch
│   ├── RangeNotReadable      commits of an incremental query: cleaned, or not there yet
│   └── ValidationFailed      a validator refused a write, which was taken back
├── CorruptFile               the bytes contradict the format
│   └── DamagedLog            a log file lacks bytes of a completed write
├── StorageError              the file system refused
│   ├── PathExists, PathNotFound
│   │   └── StaleRead         a file was deleted while it was read; retryable
├── LockTimeout               another writer holds the lock; retryable
├── WriteConflict             another writer changed the same file groups; retryable
│   ├── OutdatedRows          rows were computed from an outdated state of the table
│   └── StandingConflict      persists until the user acts: a pending plan holds the file groups
└── TaskFailed                work failed on an executor; carries the worker's text

Each message says where, what was expected, what was found and what to do. Errors take a single text, so that they
pickle. Quoted text may have any origin: `redaction` removes credentials from it and limits its length.
"""

from __future__ import annotations

from pyhudi.redaction import message

__all__ = [
    "ConfigError",
    "CorruptFile",
    "DamagedLog",
    "HudiError",
    "KeyGenError",
    "LockTimeout",
    "MetadataTableDamaged",
    "MissingLibrary",
    "OutdatedRows",
    "PathExists",
    "PathNotFound",
    "RangeNotReadable",
    "SchemaMismatch",
    "StaleRead",
    "StandingConflict",
    "StorageError",
    "TableError",
    "TableExists",
    "TableNotFound",
    "TaskFailed",
    "UnsupportedTable",
    "ValidationFailed",
    "WriteConflict",
    "add_note",
]


class HudiError(Exception):
    """Root of the family."""

    retryable = False

    def __init__(self, *texts: object) -> None:
        super().__init__(*(message(text) if isinstance(text, str) else text for text in texts))


class ConfigError(HudiError):
    """An option is wrong, missing, contradictory or not supported."""


class KeyGenError(ConfigError):
    """A row has no usable record key or partition path."""


class MissingLibrary(ConfigError, ImportError):
    """A package that the call needs is not installed; the message has the line for pip."""


class TableError(HudiError):
    """The table is not in the state, version or shape that the call needs."""


class TableNotFound(TableError):
    """No table at this path."""


class TableExists(TableError):
    """There is already a table at this path."""


class UnsupportedTable(TableError):
    """The table's version, type or features are beyond what this release reads or writes."""


class SchemaMismatch(TableError):
    """The data does not fit the table's schema; the message lists the columns."""


class ValidationFailed(TableError):
    """A validator rejected the table as a write would leave it; the write was rolled back."""


class RangeNotReadable(TableError):
    """Commits in the range of an incremental query were archived or cleaned, or are still missing; the message names
    the oldest readable begin.
    """


class CorruptFile(HudiError):
    """Bytes of a file contradict its format. The message names the path, the offset, what was expected and found."""


class DamagedLog(CorruptFile):
    """A log file lacks bytes of a completed write: rows or deletes of that write can't be read."""


class MetadataTableDamaged(CorruptFile):
    """The metadata table contradicts the table's properties, or can't be read; the data is intact."""


class StorageError(HudiError):
    """The file system refused."""


class PathNotFound(StorageError):
    """The file does not exist."""


class StaleRead(PathNotFound):
    """Files of a query's plan were cleaned or rolled back since it was planned. Run the query again."""

    retryable = True


class PathExists(StorageError):
    """The file already exists where it must not."""


class LockTimeout(HudiError):
    """Another writer holds the table's lock."""

    retryable = True


class WriteConflict(HudiError):
    """Another writer changed the same file groups. The message names both instants."""

    retryable = True


class OutdatedRows(WriteConflict):
    """The rows of a change were computed from an outdated state of the table."""


class StandingConflict(WriteConflict):
    """A conflict that stands until the user acts: a pending plan of a table service holds the file groups, or another
    process has written the batch of a stream. An immediate retry does not help.
    """


class TaskFailed(HudiError):
    """Work failed on an executor. The message carries the worker's text."""


def add_note(error: BaseException, note: str) -> None:
    """Add a note to an error being raised, which is shown below it from Python 3.11 on."""
    if hasattr(error, "add_note"):
        error.add_note(message(note))
