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
    """`functions`: validators that are functions of the caller's, beside those with `names`."""

    names: tuple[str, ...] = option(
        VALIDATORS,
        (),
        "Validators that see the table as a write would make it, before anybody else does: Hudi's SQL classes, or "
        "functions of one's own as `module:name`; in Python the functions themselves. One that fails takes the write "
        "back (docs/updating.md#validators).",
    )
    equality_queries: tuple[str, ...] = option(
        "hoodie.precommit.validators.equality.sql.queries",
        (),
        "SqlQueryEqualityPreCommitValidator: queries of `<TABLE_NAME>`, `;` between them, which must have the same "
        "rows before and after the write.",
        Kind.TEXT,
        convert=_queries,
    )
    inequality_queries: tuple[str, ...] = option(
        "hoodie.precommit.validators.inequality.sql.queries",
        (),
        "SqlQueryInequalityPreCommitValidator: queries that must have other rows after the write than before.",
        Kind.TEXT,
        convert=_queries,
    )
    value_queries: tuple[str, ...] = option(
        "hoodie.precommit.validators.single.value.sql.queries",
        (),
        "SqlQuerySingleResultPreCommitValidator: queries with the one value that each must have, as "
        "`query#value;query#value`.",
        Kind.TEXT,
        convert=_queries,
    )
    failure_policy: str = option(
        "hoodie.precommit.validators.failure.policy",
        "FAIL",
        "FAIL takes the write back when a validator fails; WARN_LOG only warns.",
        choices=("FAIL", "WARN_LOG"),
    )
    functions: tuple[OwnValidator, ...] = field(default=(), repr=False)


def validation_options(values: Values, arguments: Mapping[str, object]) -> ValidationOptions:
    """The options of a call. `arguments`: as the caller gave them, perhaps with functions."""
    options = parse(ValidationOptions, values)
    given = arguments.get(VALIDATORS)
    functions = tuple(one for one in (given if isinstance(given, list | tuple) else (given,)) if callable(one))
    if not functions:
        return options
    named = [one for one in (given if isinstance(given, list | tuple) else ()) if not callable(one)]
    return replace(options, functions=functions, names=tuple(map(str, named)))
