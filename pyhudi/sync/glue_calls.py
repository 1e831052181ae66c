"""Requests to AWS Glue: repeated while it is busy, only for refused partitions if others succeeded, in threads.

Source: the API of AWS Glue; docs/catalogs.md, "AWS Glue".
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeAlias, TypeVar

from pyhudi.errors import StorageError
from pyhudi.storage.clock import Clock
from pyhudi.sync.catalog import PartitionValues

__all__ = ["Answer", "GlueCalls", "in_threads"]

Answer: TypeAlias = dict[str, Any]  # JSON of boto3
Item = TypeVar("Item")
Outcome = TypeVar("Outcome")

# Errors after which the same request may succeed.
_BUSY = frozenset(
    {
        "ConcurrentModificationException",
        "FederationSourceRetryableException",
        "InternalFailure",
        "InternalServiceException",
        "OperationTimeoutException",
        "RequestLimitExceeded",
        "ServiceUnavailable",
        "ServiceUnavailableException",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)
_PAUSES_S = (0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8)
_PAGE = 1000  # partitions in one answer
_WITHOUT_CATALOG = ("tag_resource",)


class _Busy(StorageError):
    """Glue refused a request that may succeed later."""


class GlueCalls:
    """A client of boto3, for the catalog of one account."""

    def __init__(self, client: Any, name: str, catalog_id: str | None, clock: Clock) -> None:
        """`catalog_id`: None for the account of the credentials."""
        self.client, self.name = client, name
        self._catalog = {"CatalogId": catalog_id} if catalog_id else {}
        self._clock, self._errors = clock, importlib.import_module("botocore.exceptions")

    def ask(self, operation: str, expected: str | None = None, **arguments: Any) -> Answer | None:
        """The answer; None for the error code `expected`. Raises StorageError for other errors."""
        return self.again(partial(self.once, operation, expected, **arguments))

    def once(self, operation: str, expected: str | None = None, **arguments: Any) -> Answer | None:
        """Like `ask`, in a single attempt of `again`."""
        catalog = {} if operation in _WITHOUT_CATALOG else self._catalog
        try:
            answer: Answer = getattr(self.client, operation)(**catalog, **arguments)
            return answer
        except self._errors.ClientError as error:
            detail, status = error.response["Error"], error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
            code = detail.get("Code", "")
            if code == expected:
                return None
            kind = _Busy if code in _BUSY or (status or 0) >= 500 else StorageError
            raise kind(f"{self.name} refused {operation}: {code}: {detail.get('Message', '')}") from error
        except self._errors.BotoCoreError as error:
            # Without an answer, further attempts would only delay the call that committed.
            kind = _Busy if isinstance(error, self._errors.ConnectionClosedError) else StorageError
            raise kind(f"{self.name} did not answer {operation}: {type(error).__name__}: {error}") from error

    def again(self, attempt: Callable[[], Outcome]) -> Outcome:
        """The result of an attempt, which is repeated after a busy answer, with growing, random pauses."""
        for pause_s in _PAUSES_S:
            try:
                return attempt()
            except _Busy:
                self._clock.sleep_s(pause_s * (0.5 + int(self._clock.new_uuid()[:4], 16) / 0x20000))
        try:
            return attempt()
        except _Busy as error:
            raise StorageError(f"{error} (after {len(_PAUSES_S) + 1} attempts)") from error

    # ---- partitions

    def partitions(self, partitions: Sequence[PartitionValues], **table: str) -> list[Answer]:
        """Those of these partitions that exist; at most 1,000 may be requested."""
        remaining, existing = [{"Values": list(values)} for values in partitions], list[Answer]()

        def attempt() -> None:
            answer = self.once("batch_get_partition", **table, PartitionsToGet=remaining) or {}
            existing.extend(answer.get("Partitions") or ())
            before, remaining[:] = len(remaining), answer.get("UnprocessedKeys") or []
            if len(remaining) == before:
                raise _Busy(f"{self.name} left {before} partitions of batch_get_partition unread")

        while remaining:
            self.again(attempt)
        return existing

    def pages(self, **arguments: Any) -> Iterator[list[Answer]]:
        """All partitions without their columns, in parts."""
        token: Mapping[str, str] = {}
        while True:
            answer = self.ask("get_partitions", **arguments, ExcludeColumnSchema=True, MaxResults=_PAGE, **token) or {}
            yield answer.get("Partitions") or []
            if not answer.get("NextToken"):
                return
            token = {"NextToken": answer["NextToken"]}

    def change(
        self,
        operation: str,
        argument: str,
        entries: Mapping[PartitionValues, Answer],
        harmless: str,
        **table: str,
    ) -> None:
        """Change partitions by one request; those that Glue was too busy for are repeated.

        Args:   argument: the request's argument for the entries. harmless: the error code of a partition that another
                    sync has changed already.
        Raises: StorageError that names the first partition that was refused.
        """
        remaining = dict(entries)

        def attempt() -> None:
            answer = self.once(operation, None, **table, **{argument: list(remaining.values())}) or {}
            refused = {_values(one): one.get("ErrorDetail") or {} for one in answer.get("Errors") or ()}
            codes = {values: detail.get("ErrorCode", "") for values, detail in refused.items()}
            failed = [values for values, code in codes.items() if code != harmless and code not in _BUSY]
            if failed:
                refusal = f"{codes[failed[0]]}: {refused[failed[0]].get('ErrorMessage', '')}"
                raise StorageError(
                    f"{self.name} refused {operation} of {len(failed)} of {len(remaining)} partitions, first "
                    f"{'/'.join(failed[0])!r:.200}: {refusal}"
                )
            busy = {values for values, code in codes.items() if code in _BUSY}
            if busy <= remaining.keys():  # otherwise they are spelled differently, and all are repeated
                for values in remaining.keys() - busy:
                    del remaining[values]
            if busy:
                code = next(codes[values] for values in sorted(busy))
                raise _Busy(f"{self.name} refused {operation} of {len(remaining)} partitions: {code}")

        self.again(attempt)


def in_threads(work: Callable[[Item], Outcome], items: Sequence[Item], threads: int) -> list[Outcome]:
    """The result of the work for each item. After an error no further item is started."""
    if threads == 1 or len(items) < 2:
        return [work(item) for item in items]
    with ThreadPoolExecutor(min(threads, len(items)), thread_name_prefix="hudi-glue") as pool:
        return list(pool.map(work, items))


def _values(error: Answer) -> PartitionValues:
    """The partition of an entry in `Errors`."""
    return tuple(error.get("PartitionValues") or error.get("PartitionValueList") or ())
