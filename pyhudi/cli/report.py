"""`pyhudi report`: a page for the browser."""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.cli.options import COMMON, CommonOptions, TablePath
from pyhudi.cli.reply import Reply
from pyhudi.result import Result

__all__ = ["WrittenFile", "report"]


@dataclass(frozen=True, slots=True, repr=False)
class WrittenFile(Result):
    """A file that a command has written."""

    path: str

    def __str__(self) -> str:
        return self.path


def report(table: TablePath, file: str, /, *, common: CommonOptions = COMMON) -> Reply:
    """Write a page for the browser: timeline, files, health, schema, properties.

    Args:
        file: The HTML file on this machine, which is overwritten.
    """
    written = common.open(table).report(file, options=common.options)
    return Reply(WrittenFile(str(written)))
