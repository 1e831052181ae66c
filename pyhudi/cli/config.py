"""`pyhudi config ...`: the properties of a table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from pyhudi.cli.options import COMMON, CONSENT, CommonOptions, ConsentOptions, TablePath, pairs_of
from pyhudi.cli.reply import Reply
from pyhudi.result import Result, ResultList

if TYPE_CHECKING:
    from pyhudi.services.properties import PropertiesChange

__all__ = ["Properties", "Property", "list_properties", "set_properties", "unset"]


@dataclass(frozen=True, slots=True, repr=False)
class Property(Result):
    """One line of hoodie.properties, without credentials."""

    key: str
    value: str


class Properties(ResultList[Property]):
    """Properties that print as a table."""

    entry_type = Property
    header = ("key", "value")


def list_properties(table: TablePath, /, *, common: CommonOptions = COMMON) -> Reply:
    """The properties of a table."""
    properties = common.open(table).inspect.describe().properties
    return Reply(Properties(Property(key, value) for key, value in properties.items()))


def _changes(plan: PropertiesChange) -> bool:
    return bool(plan.differences)


def set_properties(
    table: TablePath,
    properties: Annotated[list[str], Parameter(consume_multiple=True)],
    /,
    *,
    consent: ConsentOptions = CONSENT,
    common: CommonOptions = COMMON,
) -> Reply:
    """Set properties of a table, after a copy of the file.

    What says how files are written, such as keys and partitioning, is refused.

    Args:
        properties: KEY=VALUE, one or several.
    """
    opened, pairs = common.open(table), pairs_of("config set", properties)
    if not consent.dry_run:
        consent.ask(
            lambda: opened.maintenance.set_properties(pairs, dry_run=True, options=common.options),
            "Set them?",
            _changes,
        )
    return Reply(opened.maintenance.set_properties(pairs, dry_run=consent.dry_run, options=common.options))


def unset(
    table: TablePath,
    keys: Annotated[list[str], Parameter(consume_multiple=True)],
    /,
    *,
    consent: ConsentOptions = CONSENT,
    common: CommonOptions = COMMON,
) -> Reply:
    """Remove properties of a table, after a copy of the file.

    Args:
        keys: Their keys, one or several.
    """
    opened = common.open(table)
    if not consent.dry_run:
        plan = partial(opened.maintenance.set_properties, unset=keys, dry_run=True, options=common.options)
        consent.ask(plan, "Remove them?", _changes)
    return Reply(opened.maintenance.set_properties(unset=keys, dry_run=consent.dry_run, options=common.options))
