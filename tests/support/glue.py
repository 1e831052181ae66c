"""moto's Glue in this process, with what moto lets pass: limits of requests, versions, pages and segments, indexes."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias
from zlib import crc32

import pytest

from pyhudi.storage.clock import FixedClock
from pyhudi.sync import glue
from pyhudi.sync.glue import GlueCatalog
from tests.support.catalogs import Registered

__all__ = ["Failure", "WatchedGlue", "glue_in_process", "refusal", "refused_parts", "stored_in_glue"]

# Arguments → what the real request is replaced by; an error is raised.
Failure: TypeAlias = Exception | Callable[[Callable[..., Any], dict[str, Any]], Any]

_PARTITIONS = {
    "batch_create_partition": ("PartitionInputList", 100),
    "batch_update_partition": ("Entries", 100),
    "batch_delete_partition": ("PartitionsToDelete", 25),
    "batch_get_partition": ("PartitionsToGet", 1000),
}
_OWN_CALLS = ("close", "meta")
_INDEXES_MAX = 3


@dataclass
class WatchedGlue:
    """`calls`: each request's name, and how many partitions it is about. `failures`: of a request's next attempts.
    `arguments`: those of each request's last attempt. `page`: partitions in one answer. `before`: told of each request.
    """

    client: Any
    clock: FixedClock
    calls: list[tuple[str, int]] = field(default_factory=list)
    failures: dict[str, list[Failure]] = field(default_factory=dict)
    arguments: dict[str, dict[str, Any]] = field(default_factory=dict)
    indexes: dict[tuple[str, str], list[dict[str, Any]]] = field(default_factory=dict)
    page: int = 1000
    before: Callable[[str], None] = lambda name: None
    _lock: Any = field(default_factory=threading.RLock)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in _OWN_CALLS:
            return getattr(self.client, name)
        return partial(self._asked, name)

    @property
    def counts(self) -> Counter[str]:
        return Counter(name for name, _ in self.calls)

    def _asked(self, name: str, **arguments: Any) -> Any:
        argument, limit = _PARTITIONS.get(name, ("", 0))
        self.before(name)
        with self._lock:
            self.calls.append((name, len(arguments.get(argument, ()))))
            self.arguments[name] = arguments
            failing = self.failures.get(name)
            failure = failing.pop(0) if failing else None
            if len(arguments.get(argument, ())) > limit:
                raise refusal("ValidationException", f"{argument}: at most {limit}")
            if isinstance(failure, Exception):
                raise failure
            own = getattr(self, f"_{name}", partial(self._plain, name))
            return failure(own, arguments) if failure else own(**arguments)

    def _plain(self, name: str, **arguments: Any) -> Any:
        return getattr(self.client, name)(**arguments)

    def _update_table(self, **arguments: Any) -> Any:
        there = self.client.get_table(DatabaseName=arguments["DatabaseName"], Name=arguments["TableInput"]["Name"])
        if arguments.pop("VersionId", there["Table"]["VersionId"]) != there["Table"]["VersionId"]:
            raise refusal("ConcurrentModificationException", "Update table failed due to concurrent modifications.")
        return self.client.update_table(**arguments)

    def _get_partitions(self, **arguments: Any) -> Any:
        start, segment = int(arguments.pop("NextToken", 0)), arguments.pop("Segment", None)
        size = min(self.page, arguments["MaxResults"])
        there = self.client.get_partitions(**arguments)["Partitions"]
        if segment:
            parts = segment["TotalSegments"]
            there = [one for one in there if crc32(str(one["Values"]).encode()) % parts == segment["SegmentNumber"]]
        if arguments.get("ExcludeColumnSchema"):
            for one in there:
                del one["StorageDescriptor"]["Columns"]
        answer = {"Partitions": there[start : start + size]}
        return answer if start + size >= len(there) else {**answer, "NextToken": str(start + size)}

    def _get_tables(self, **arguments: Any) -> Any:
        return self.client.get_tables(**{key: value for key, value in arguments.items() if key != "MaxResults"})

    # ---- indexes

    def _create_table(self, PartitionIndexes: Sequence[Mapping[str, Any]] = (), **arguments: Any) -> Any:  # noqa: N803
        answer = self.client.create_table(**arguments)
        for index in PartitionIndexes:
            self._create_partition_index(arguments["DatabaseName"], arguments["TableInput"]["Name"], index)
        return answer

    def _create_partition_index(self, DatabaseName: str, TableName: str, PartitionIndex: Any) -> Any:  # noqa: N803
        there = self.indexes.setdefault((DatabaseName, TableName), [])
        if len(there) == _INDEXES_MAX:
            raise refusal("ResourceNumberLimitExceededException", "too many indexes")
        keys = [{"Name": name, "Type": "string"} for name in PartitionIndex["Keys"]]
        there.append({"IndexName": PartitionIndex["IndexName"], "Keys": keys, "IndexStatus": "ACTIVE"})
        return {}

    def _get_partition_indexes(self, DatabaseName: str, TableName: str) -> Any:  # noqa: N803
        return {"PartitionIndexDescriptorList": self.indexes.get((DatabaseName, TableName), [])}

    def _delete_partition_index(self, DatabaseName: str, TableName: str, IndexName: str) -> Any:  # noqa: N803
        there = self.indexes[DatabaseName, TableName]
        there[:] = [one for one in there if one["IndexName"] != IndexName]
        return {}

    def index_names(self, database: str, name: str) -> list[str]:
        return [one["IndexName"] for one in self.indexes.get((database, name), [])]


def refusal(code: str, message: str = "no", status: int = 400) -> Exception:
    """The error of boto3 for a request that Glue refuses."""
    from botocore.exceptions import ClientError

    answer: Any = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}}
    error: Exception = ClientError(answer, "Request")
    return error


def refused_parts(argument: str, code: str, *values: str) -> Failure:
    """Of a request the partitions with these values are refused, and the others done."""

    def some(real: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        def is_refused(entry: Mapping[str, Any]) -> bool:
            return (entry.get("Values") or entry["PartitionValueList"])[0] in values

        done = [entry for entry in arguments[argument] if not is_refused(entry)]
        answer = real(**{**arguments, argument: done}) if done else {}
        name = "PartitionValueList" if argument == "Entries" else "PartitionValues"
        detail = {"ErrorCode": code, "ErrorMessage": "no"}
        errors = [
            {name: entry.get("Values") or entry["PartitionValueList"], "ErrorDetail": detail}
            for entry in arguments[argument]
            if is_refused(entry)
        ]
        return {**answer, "Errors": [*answer.get("Errors", ()), *errors]}

    return some


@contextmanager
def glue_in_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[WatchedGlue]:
    """Every sync to Glue goes here, in whatever region; no pause takes time."""
    pytest.importorskip("moto")
    import boto3
    from moto import mock_aws

    with mock_aws():
        watched = WatchedGlue(boto3.client("glue", region_name="us-east-1"), FixedClock(0))
        monkeypatch.setattr(glue, "_client", lambda options: watched)
        monkeypatch.setattr(glue, "SystemClock", lambda: watched.clock)
        yield watched


def stored_in_glue(catalog: GlueCatalog, client: Any, database: str, name: str) -> Registered:
    """All of a table, its partitions' own columns and serde properties too."""
    table = catalog.table(database, name)
    assert table is not None
    registered = Registered(table)
    for one in client.get_partitions(DatabaseName=database, TableName=name)["Partitions"]:
        values, sd = tuple(one["Values"]), one["StorageDescriptor"]
        registered.locations[values] = sd["Location"]
        registered.columns_of[values] = glue._columns(sd["Columns"])
        registered.serde_of[values] = sd["SerdeInfo"]["Parameters"]
    return registered
