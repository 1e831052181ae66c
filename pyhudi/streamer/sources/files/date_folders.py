"""Which folders of a source are listed: all, or those of the last days. Source: Hudi's DatePartitionPathSelector.

incoming/eu/2026-08-10/a.json         depth 2: the second folder has the date, as `2026-08-10` or `day=2026-08-10`
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone

from pyhudi.errors import ConfigError
from pyhudi.model.options.streamer.streamer import FilesOptions
from pyhudi.storage.base import FileInfo, Storage
from pyhudi.storage.clock import Clock

__all__ = ["DateFolders", "check_selector"]

_KEY = "hoodie.streamer.source.input.selector"
_DATED = "hoodie.streamer.source.dfs.datepartitioned."
_ALL, _BY_DATE = "DFSPathSelector", "DatePartitionPathSelector"
_HIDDEN = (".", "_")
_PARTS = {"yyyy": r"(?P<year>\d{4})", "MM": r"(?P<month>\d{2})", "dd": r"(?P<day>\d{2})"}
_LETTERS = re.compile(r"([A-Za-z'\[\]{}#])\1*")


def check_selector(name: str, place: str, *known: str) -> str:
    """The bare name of a selector's class. Raises ConfigError for one that is none of these."""
    bare = name.rpartition(".")[2]
    if bare not in known:
        raise ConfigError(f"{place}: {_KEY}={name}: a class of Java. Use {' or '.join(known)}, or leave it out.")
    return bare


@dataclass(frozen=True, slots=True)
class DateFolders:
    """`depth`: 0 for all folders. `today`: None for that of the clock."""

    depth: int
    form: re.Pattern[str]
    text: str
    lookback_days: int
    today: date | None

    @classmethod
    def of(cls, options: FilesOptions, place: str) -> DateFolders:
        """Raises ConfigError for a selector, a date or a form of dates that is not understood."""
        selector = check_selector(options.selector, place, _ALL, _BY_DATE)
        if selector == _ALL and options.date_depth:
            raise ConfigError(
                f"{place}: {_DATED}selector.depth is of {_BY_DATE}: add {_KEY}={_BY_DATE}, or leave it out."
            )
        today = None
        if options.current_date is not None:
            try:
                today = date.fromisoformat(options.current_date)
            except ValueError as error:
                raise ConfigError(f"{place}: {_DATED}selector.currentdate: {error}: expected 2026-08-10.") from error
        letters = [matched[0] for matched in _LETTERS.finditer(options.date_format)]
        if sorted(letters) != sorted(_PARTS):
            raise ConfigError(
                f"{place}: {_DATED}date.format={options.date_format}: expected yyyy, MM and dd once each, and marks "
                "between them."
            )
        form = _LETTERS.sub(lambda matched: _PARTS[matched[0]], re.sub(r"[^A-Za-z]", r"\\\g<0>", options.date_format))
        depth = options.date_depth if selector == _BY_DATE else 0
        return cls(depth, re.compile(form), options.date_format, options.lookback_days, today)

    def files(self, storage: Storage, clock: Clock) -> Iterator[FileInfo]:
        """The files of the folders. Raises ConfigError for a folder that should have a date, and has none."""
        if not self.depth:
            yield from storage.walk("")
            return
        today = self.today or datetime.fromtimestamp(clock.now_ms() / 1000, timezone.utc).astimezone().date()
        first = today - timedelta(days=self.lookback_days)
        folders = [""]
        for _ in range(self.depth):
            folders = [
                entry.path
                for folder in folders
                for entry in storage.list(folder)
                if entry.is_dir and not entry.path.rpartition("/")[2].startswith(_HIDDEN)
            ]
        for folder in folders:
            if first <= self._date_of(folder, storage) <= today:
                yield from storage.walk(folder)

    def _date_of(self, folder: str, storage: Storage) -> date:
        name = folder.rpartition("/")[2].rpartition("=")[2]
        matched = self.form.fullmatch(name)
        try:
            if matched is not None:
                return date(int(matched["year"]), int(matched["month"]), int(matched["day"]))
        except ValueError:
            pass
        raise ConfigError(
            f"{storage.full_path(folder)}: its name is no date of the form {self.text}, which "
            f"{_DATED}selector.depth={self.depth} says. Nothing was written."
        )
