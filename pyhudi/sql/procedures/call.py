"""One call of a procedure: its values, the table that they name, and the session where there is one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyhudi.errors import ConfigError, TableNotFound
from pyhudi.lazy_property import lazy_property
from pyhudi.meta_client import MetaClient
from pyhudi.model.commit import CommitMetadata
from pyhudi.model.instant import ActionKind, Instant
from pyhudi.sql.procedures.rows import Row
from pyhudi.sql.session import TableName
from pyhudi.storage.base import Storage
from pyhudi.table import HudiTable

if TYPE_CHECKING:
    from pyhudi.sql.session import SqlSession

__all__ = ["ProcedureCall", "table_name_of"]

_NONE = "none"


@dataclass(frozen=True)
class ProcedureCall:
    """What a procedure is given. `values`: by the names of its arguments; those that have no value are not there.

    `session`: None for calls from Python, which name a table by its path, or hand it over as `given`.
    """

    procedure: str
    values: Mapping[str, str | int | bool]
    session: SqlSession | None = None
    given: HudiTable | None = None
    storage_options: Mapping[str, str] = field(default_factory=dict)

    # ---- arguments

    def text(self, name: str) -> str:
        """A text; "" when it is not given."""
        return str(self.values.get(name, ""))

    def number(self, name: str) -> int | None:
        """A whole number, None when it is not given."""
        value = self.values.get(name)
        return None if value is None else int(value)

    def flag(self, name: str) -> bool:
        return bool(self.values.get(name, False))

    def limited(self, rows: Iterable[Row]) -> Iterator[Row]:
        """The first `limit` rows; all with a limit below zero, none with one of zero."""
        limit = self.number("limit")
        for place, row in enumerate(rows):
            if limit is not None and 0 <= limit <= place:
                return
            yield row

    @property
    def options(self) -> dict[str, str]:
        """The session's options, and those that the argument `options` has as `k=v,k=v`."""
        found = dict(self.session.settings) if self.session is not None else {}
        for pair in filter(None, (part.strip() for part in self.text("options").split(","))):
            key, assigned, value = pair.partition("=")
            if not assigned:
                raise ConfigError(
                    f"{self.procedure}: options is a text of key=value, with commas; found {pair!r:.200}."
                )
            found[key.strip()] = value.strip()
        return found

    # ---- the table

    @lazy_property
    def table(self) -> HudiTable:
        """The table that `table` or `path` names. Raises ConfigError for none of them, TableNotFound."""
        if self.given is not None:
            return self.given
        named = self.text("table") or self.text("path")
        if not named:
            raise ConfigError(f"{self.procedure} needs the argument table, or path.")
        return self.table_called(named)

    def table_called(self, named: str) -> HudiTable:
        """The table of a name, or at a path. Raises TableNotFound."""
        name = table_name_of(named)
        if self.session is None:
            return HudiTable.open(name.path or named, storage_options=self.storage_options)
        found = self.session.find_table(name)
        if found is None:
            raise TableNotFound(f"{self.procedure}: there is no Hudi table {named}.")
        return found.table

    @lazy_property
    def meta(self) -> MetaClient:
        """The table as it is at the first look."""
        return self.table.state

    @property
    def storage(self) -> Storage:
        return self.meta.storage

    def commits(self) -> list[tuple[Instant, CommitMetadata]]:
        """The completed commits of the active timeline with their bodies, newest first."""
        found = reversed(self.meta.timeline.commits().instants)
        return [(instant, self.meta.commits.metadata(instant)) for instant in found]

    def completed(self, *actions: ActionKind) -> list[Instant]:
        """The completed instants of some actions, newest first."""
        return list(reversed(self.meta.timeline.completed().of(actions).instants))

    def commit_at(self, instant_time: str) -> tuple[Instant, CommitMetadata]:
        """The completed commit of an instant time. Raises ConfigError when there is none."""
        instant = self.meta.timeline.commits().find(instant_time)
        if instant is None:
            last = self.meta.timeline.last_commit()
            raise ConfigError(
                f"{self.procedure}: {self.table.path} has no completed commit {instant_time!r:.100} on its active "
                f"timeline; its newest is {last.requested_time if last is not None else _NONE}."
            )
        return instant, self.meta.commits.metadata(instant)


def table_name_of(text: str) -> TableName:
    """A table's name in a text: with dots and backticks, or a path."""
    if ("/" in text or ":" in text) and "`" not in text:
        return TableName(("hudi", text))
    parts: list[str] = []
    rest = text
    while rest:
        end = rest.find("`", 1) + 1 if rest.startswith("`") else (rest + ".").index(".")
        part = rest[: end or len(rest)]
        parts.append(part[1:-1].replace("``", "`") if part.startswith("`") else part)
        rest = rest[end or len(rest) :].removeprefix(".")
    return TableName(tuple(parts))
