"""Options of validators, which look at the rows of a write before they become visible.

Source: Hudi's documented keys (HoodiePreCommitValidatorConfig).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from pyhudi.model.options.declare import Values, option, parse
from pyhudi.model.options.spec import Kind

__all__ = ["VALIDATORS", "OwnValidator", "ValidationOptions", "validation_options"]

# Takes the table before and after the write, each as a `Scan`; False, a text or an error means that it fails.
OwnValidator: TypeAlias = Callable[..., object]

VALIDATORS = "hoodie.precommit.validators"
# A semicolon in quotes belongs to the query.
_QUERY = re.compile(r"""(?:[^;'"`]|'[^']*'|"[^"]*"|`[^`]*`|['"`])+""")


def _queries(text: str) -> tuple[str, ...]:
    return tuple(query.strip() for query in _QUERY.findall(text) if query.strip())


@dataclass(frozen=True, slots=True)
class ValidationOptions:
    """`functions`: the caller's own functions as validators, in addition to those with `names`."""

    names: tuple[str, ...] = option(
        VALIDATORS,
        (),
        "Validators that check the table with a write's changes before the write becomes visible: Hudi's SQL classes, "
        "SparkKafkaOffsetValidator (the Streamer's offsets of Kafka against rows), "
        "or your own functions as `module:name`; in Python also the functions themselves. If one fails, the write is "
        "undone (docs/updating.md#validators).",
    )
    equality_queries: tuple[str, ...] = option(
        "hoodie.precommit.validators.equality.sql.queries",
        (),
        "SqlQueryEqualityPreCommitValidator: queries of `<TABLE_NAME>`, separated by `;`, that must return the same "
        "rows before and after the write.",
        Kind.TEXT,
        convert=_queries,
    )
    inequality_queries: tuple[str, ...] = option(
        "hoodie.precommit.validators.inequality.sql.queries",
        (),
        "SqlQueryInequalityPreCommitValidator: queries that must return different rows after the write.",
        Kind.TEXT,
        convert=_queries,
    )
    value_queries: tuple[str, ...] = option(
        "hoodie.precommit.validators.single.value.sql.queries",
        (),
        "SqlQuerySingleResultPreCommitValidator: queries and the single value that each must return, as "
        "`query#value;query#value`.",
        Kind.TEXT,
        convert=_queries,
    )
    offset_tolerance_percent: float = option(
        "hoodie.precommit.validators.streaming.offset.tolerance.percentage",
        0.0,
        "SparkKafkaOffsetValidator: how many percent of a batch's events may have no row of their own.",
        minimum=0,
    )
    failure_policy: str = option(
        "hoodie.precommit.validators.failure.policy",
        "FAIL",
        "If a validator fails, FAIL undoes the write and WARN_LOG only warns.",
        choices=("FAIL", "WARN_LOG"),
    )
    functions: tuple[OwnValidator, ...] = field(default=(), repr=False)


def validation_options(values: Values, arguments: Mapping[str, object]) -> ValidationOptions:
    """The options of a call. `arguments`: the caller's, which may include functions."""
    options = parse(ValidationOptions, values)
    argument = arguments.get(VALIDATORS)
    functions = tuple(one for one in (argument if isinstance(argument, list | tuple) else (argument,)) if callable(one))
    if not functions:
        return options
    names = [one for one in (argument if isinstance(argument, list | tuple) else ()) if not callable(one)]
    return replace(options, functions=functions, names=tuple(map(str, names)))
