"""Validators: the user's checks of the table as a write would make it, before anybody sees it.

    SqlQueryEqualityPreCommitValidator        queries have the same rows before and after
    SqlQueryInequalityPreCommitValidator      queries have other rows
    SqlQuerySingleResultPreCommitValidator    queries have one value, which the option names
    SparkKafkaOffsetValidator                 a batch has a row for each event between its offsets
    module:name, or a function                gets a `Scan` of the table before and one of it after

They run after the data files and before the commit, without the lock. If others commit before this write
does, they run again under the lock, on the table as it would then be. Queries are evaluated by the active Spark
session, else by DuckDB; both engines are above this floor, so they are found by name.
Source: Hudi's SparkPreCommitValidator and the classes that extend it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from functools import partial
from importlib.util import find_spec

import pyarrow as pa

from pyhudi.actions.action import ActionContext
from pyhudi.actions.offset_validation import OFFSET_VALIDATOR, check_is_of_kafka, offset_problem
from pyhudi.errors import ConfigError, HudiError, MissingLibrary, PathNotFound, StaleRead, ValidationFailed
from pyhudi.java.key_text import text_of
from pyhudi.meta_client import MetaClient
from pyhudi.model.commit import CommitMetadata
from pyhudi.model.instant import Instant, State
from pyhudi.model.options import WriteOptions
from pyhudi.model.options.validation import VALIDATORS, OwnValidator, ValidationOptions
from pyhudi.queries.plan import ReadPlan, plan_as_listed
from pyhudi.queries.query import Query
from pyhudi.registry import Registry
from pyhudi.warnings import warn_caller

__all__ = ["ENGINES", "SQL_VALIDATORS", "TableState", "Validation", "check_validators"]

BEFORE, AFTER = "__hudi_before", "__hudi_after"
_PLACEHOLDER = "<TABLE_NAME>"
_PACKAGE = "org.apache.hudi.client.validator."
_OFFSET_PACKAGE = "org.apache.hudi.utilities.streamer.validator."
_SHOWN_ROWS = 3


@dataclass(frozen=True, slots=True)
class TableState:
    """A table before or after a write that is not complete. `is_empty`: it has the columns and no rows."""

    meta: MetaClient
    is_empty: bool = False

    def plan_with(self, meta: MetaClient, query: Query) -> ReadPlan:
        """The files of a query. Raises ConfigError for unknown columns."""
        plan = plan_as_listed(meta, query)
        return replace(plan, slices=()) if self.is_empty else plan


# Rows of a query of tables by name.
Evaluate = Callable[[str, Mapping[str, TableState]], pa.Table]
ENGINES: Registry[Evaluate] = Registry(
    kind="engine of validators",
    entries={"DUCKDB": "pyhudi.sql.duckdb_validation:rows", "SPARK": "pyhudi.spark.sql_validation:rows"},
)
# A state's rows, as the user's function gets them.
_SCANS: Registry[Callable[[TableState], object]] = Registry(
    kind="scan of a state", entries={"SCAN": "pyhudi.table.scan:scan_of_state"}
)


def evaluated(text: str, states: Mapping[str, TableState]) -> pa.Table:
    """The rows of a query, by the active Spark session, else by DuckDB. Raises ConfigError for an invalid query."""
    if "pyspark" in sys.modules:
        try:
            return ENGINES.load("SPARK")(text, states)
        except MissingLibrary:
            pass  # no session is active
    return ENGINES.load("DUCKDB")(text, states)


@dataclass(frozen=True, slots=True)
class _SqlValidator:
    """Hudi's class for queries of one option. `check`: from query and states to its failure, "" if it passes."""

    name: str
    option: str
    queries: Callable[[ValidationOptions], tuple[str, ...]]
    check: Callable[[str, Mapping[str, TableState]], str]


def _same_rows(query: str, states: Mapping[str, TableState]) -> str:
    removed, new = _differences(query, states)
    if not len(removed) and not len(new):
        return ""
    return f"expected the same rows before and after; only before: {_shown(removed)}; only after: {_shown(new)}"


def _other_rows(query: str, states: Mapping[str, TableState]) -> str:
    if any(map(len, _differences(query, states))):
        return ""
    after = evaluated(f"SELECT * FROM ({_of(query, AFTER)}) LIMIT {_SHOWN_ROWS}", states)
    return f"expected other rows after than before; found the same: {_shown(after)}"


def _differences(query: str, states: Mapping[str, TableState]) -> tuple[pa.Table, pa.Table]:
    """A few rows that the query has only before the write, and a few that it has only after it."""
    before, after = _of(query, BEFORE), _of(query, AFTER)
    removed, new = (
        evaluated(f"SELECT * FROM (({one}) EXCEPT ALL ({other})) LIMIT {_SHOWN_ROWS}", states)
        for one, other in ((before, after), (after, before))
    )
    return removed, new


def _one_value(query: str, states: Mapping[str, TableState]) -> str:
    text, _, expected = query.rpartition("#")
    rows = evaluated(_of(text, AFTER), states)
    if (rows.num_rows, rows.num_columns) != (1, 1):
        return f"expected one value, {expected.strip()}; found {rows.num_rows:,} rows of {rows.num_columns} columns"
    value = text_of(rows.column(0).combine_chunks())[0].as_py()
    if value is None:
        return (
            f"expected {expected.strip()}, found NULL, which equals nothing; let the query ask for it: ... IS NULL#true"
        )
    if _is_same(value, expected.strip()):
        return ""
    return f"expected {expected.strip()}, found {value}"


def _is_same(value: str, expected: str) -> bool:
    """True if two values are equal as texts, or as numbers: 6 is 6.0."""
    if value == expected:
        return True
    try:
        return Decimal(value) == Decimal(expected)
    except InvalidOperation:
        return False


def _of(query: str, table: str) -> str:
    return query.replace(_PLACEHOLDER, table)


def _shown(rows: pa.Table) -> str:
    return f"{rows.to_pylist()!r:.500}" if len(rows) else "none"


SQL_VALIDATORS: Mapping[str, _SqlValidator] = {
    one.name: one
    for one in (
        _SqlValidator(
            "SqlQueryEqualityPreCommitValidator",
            f"{VALIDATORS}.equality.sql.queries",
            lambda options: options.equality_queries,
            _same_rows,
        ),
        _SqlValidator(
            "SqlQueryInequalityPreCommitValidator",
            f"{VALIDATORS}.inequality.sql.queries",
            lambda options: options.inequality_queries,
            _other_rows,
        ),
        _SqlValidator(
            "SqlQuerySingleResultPreCommitValidator",
            f"{VALIDATORS}.single.value.sql.queries",
            lambda options: options.value_queries,
            _one_value,
        ),
    )
}
_FUNCTIONS: Registry[OwnValidator] = Registry(kind="validator", entries={})


@dataclass(frozen=True, slots=True)
class _Check:
    """One check. `what`: its name in messages; `run`: returns the failure, "" if it passes."""

    what: str
    run: Callable[[Mapping[str, TableState], CommitMetadata], str]


def _checks(options: ValidationOptions) -> Iterable[_Check]:
    """All checks that the options ask for. Raises ConfigError for validators that don't exist."""
    for name in options.names:
        if ":" in name:
            yield _own(name, _FUNCTIONS.load(name))
            continue
        if name.removeprefix(_OFFSET_PACKAGE) == OFFSET_VALIDATOR:
            yield _Check(f"the validator {OFFSET_VALIDATOR}", partial(_offsets, options.offset_tolerance_percent))
            continue
        validator = SQL_VALIDATORS.get(name.removeprefix(_PACKAGE))
        if validator is None:
            known = ", ".join([*SQL_VALIDATORS, OFFSET_VALIDATOR])
            raise ConfigError(
                f"{VALIDATORS}={name}: expected one of {known}, or a function of yours as 'module:name'; Java classes "
                "can't be used. Nothing was written."
            )
        queries = validator.queries(options)
        if not queries:
            raise ConfigError(f"{VALIDATORS}={name} needs queries: {validator.option}. Nothing was written.")
        for query in queries:
            if validator.check is _one_value and "#" not in query:
                raise ConfigError(f"{validator.option}: expected query#value, found {query!r}. Nothing was written.")
            yield _Check(f"{validator.name}, {query!r}", partial(_queried, validator.check, query))
    for function in options.functions:
        yield _own(f"{function.__module__}:{getattr(function, '__qualname__', function)}", function)


def _queried(
    check: Callable[[str, Mapping[str, TableState]], str],
    query: str,
    states: Mapping[str, TableState],
    body: CommitMetadata,
) -> str:
    return check(query, states)


def _offsets(tolerance_percent: float, states: Mapping[str, TableState], body: CommitMetadata) -> str:
    before = states[BEFORE]
    return "" if before.is_empty else offset_problem(tolerance_percent, before.meta, body)


def _own(name: str, function: OwnValidator) -> _Check:
    return _Check(f"the validator {name}", partial(_called, function))


def _called(function: OwnValidator, states: Mapping[str, TableState], body: CommitMetadata) -> str:
    scan = _SCANS.load("SCAN")
    try:
        answer = function(scan(states[BEFORE]), scan(states[AFTER]))
    except HudiError:
        raise
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if isinstance(answer, str):
        return answer
    return "" if answer is None or answer else f"expected true, found {answer!r}"


def check_validators(options: WriteOptions) -> None:
    """Raise ConfigError for validators that can't run, before anything is written."""
    validation = options.validation
    if not (validation.names or validation.functions):
        return
    checks = list(_checks(validation))
    if any(OFFSET_VALIDATOR in check.what for check in checks):
        check_is_of_kafka(options)
    needs_sql = any(not check.what.startswith("the validator") for check in checks)
    if needs_sql and find_spec("duckdb") is None and "pyspark" not in sys.modules:
        raise MissingLibrary(
            f"{VALIDATORS}: without a Spark session, queries are evaluated by DuckDB, which is not installed: "
            'pip install "pyhudi[sql]". Nothing was written.'
        )


@dataclass
class Validation:
    """The validators of one write. `body`: of its commit; `began`: the table as the write began."""

    body: CommitMetadata
    inflight: Instant
    began: ActionContext
    _commits: frozenset[str] = field(default=frozenset(), init=False)

    @property
    def is_wanted(self) -> bool:
        """True if there are validators."""
        return bool(self.began.options.validation.names or self.began.options.validation.functions)

    def run(self) -> None:
        """Validate the table as it would be now. Raises ValidationFailed."""
        self._run(self.began.meta.reload())

    def run_again(self, now: ActionContext) -> None:
        """Like `run`, under the lock, after others have committed since."""
        if self.is_wanted and _commits(now.meta) != self._commits:
            self._run(now.meta)

    def _run(self, meta: MetaClient) -> None:
        self._commits = _commits(meta)
        completion_time = max(meta.timeline.latest_time or "", self.inflight.requested_time)
        after = meta.with_completed(self.inflight.at(State.COMPLETED, completion_time), self.body)
        before = TableState(meta) if self._commits else TableState(after, is_empty=True)
        states = {BEFORE: before, AFTER: TableState(after)}
        for check in _checks(self.began.options.validation):
            try:
                problem = check.run(states, self.body)
            except PathNotFound as error:
                raise StaleRead(
                    f"{meta.storage.root}: files were deleted while {check.what} read them: {error} Nothing of "
                    f"{self.inflight.requested_time} is visible; write again."
                ) from error
            if problem:
                self._failed(f"{meta.storage.root}: {self.inflight.requested_time} fails {check.what}: {problem}.")

    def _failed(self, text: str) -> None:
        if self.began.options.validation.failure_policy == "WARN_LOG":
            warn_caller(text)
            return
        raise ValidationFailed(f"{text} The write was rolled back; correct its rows, or the validator.")


def _commits(meta: MetaClient) -> frozenset[str]:
    return frozenset(instant.requested_time for instant in meta.timeline.commits())
