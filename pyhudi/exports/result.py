"""The result of an export."""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.result import Result

__all__ = ["ExportResult"]


@dataclass(frozen=True, slots=True, repr=False)
class ExportResult(Result):
    """`location`: the table's place for readers of the format. `instant_time`: the newest exported commit, None for a
    table without one. `commits`: versions that this call made. `replaced`: why the metadata was recreated, "" if not.
    `rows_in_logs`: rows of log files, which the export lacks until they are compacted.
    """

    table: str
    format: str
    location: str
    instant_time: str | None = None
    commits: int = 0
    files_added: int = 0
    files_removed: int = 0
    rows_in_logs: int = 0
    replaced: str = ""
    seconds: float = 0.0

    def __str__(self) -> str:
        commits = f"{self.commits:,} commit{'' if self.commits == 1 else 's'}" if self.commits else "nothing new"
        text = (
            f"{self.location}: {self.format}, up to {self.instant_time}, {commits}, {self.files_added:,} files added, "
            f"{self.files_removed:,} removed in {self.seconds:.2f} s"
        )
        lacks = f"; {self.rows_in_logs:,} rows are only in log files" if self.rows_in_logs else ""
        return f"{text}{lacks}{f'; recreated: {self.replaced}' if self.replaced else ''}"
