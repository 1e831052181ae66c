"""Lock provider DYNAMODB: an item of a DynamoDB table, which its holder renews (extra `pyhudi[dynamodb]`).

The items and rules are those of Amazon's DynamoDB lock client, which Hudi's provider uses, so both exclude each other:

    key                  the lock's name          recordVersionNumber   set at each renewal
    ownerName            who holds it             leaseDuration         milliseconds, as text

A lock is free when there is no item or it says `isReleased`; an item whose version number has not changed for its lease
duration is stale. Only the waiting process measures time, so clocks need not agree.
Source: docs/formats/writers.md, "Locks"; Amazon's lock client.
"""

from __future__ import annotations

import importlib
import os
import socket
from types import ModuleType
from typing import TypeAlias

from pyhudi.errors import ConfigError, StorageError
from pyhudi.formats.timeline.bodies import Body, NewBody
from pyhudi.java.hashes import hash_id_64
from pyhudi.locks.base import LockOptions, Pauses, retry_until
from pyhudi.locks.renewal import Renewal
from pyhudi.model.options.aws import AwsOptions
from pyhudi.model.options.concurrency import DynamoOptions
from pyhudi.redaction import quoted
from pyhudi.storage.aws_session import aws_session
from pyhudi.storage.base import Storage
from pyhudi.storage.clock import Clock

__all__ = ["DynamoLock", "ImplicitKeyDynamoLock"]

Item: TypeAlias = dict[str, dict[str, str]]  # name → kind of value → value

_KEY = "hoodie.write.lock.dynamodb."
_LEASE_MS = 120_000
_LEASE_DIGITS_MAX = 18  # of milliseconds in a long of Java's
_RENEWAL_S = 20.0
_PAUSES: Pauses = (0.1, 1.0)
_FREE = "attribute_not_exists(#k) OR (attribute_exists(#k) AND #r = :yes)"
_OURS = "attribute_exists(#k) AND #v = :old AND #o = :owner"


class DynamoLock:
    """A handle on the lock of one table."""

    default_skew_ms = 200  # processes on several machines

    def __init__(self, settings: LockOptions, storage: Storage, clock: Clock) -> None:
        options = settings.dynamo
        if options.table is None:
            raise ConfigError(f"{_KEY}table is not given: the DynamoDB table that holds the locks of all writers.")
        self._table, self._key = options.table, self._name(settings, storage)
        self._settings, self._clock = settings, clock
        self._client, self._errors = _client(options, settings.aws)
        self._owner = f"{clock.new_uuid()} (process {os.getpid()} on {socket.gethostname()})"
        wait = settings.retry_wait_ms
        self._pauses = _PAUSES if wait is None else (wait / 1000, wait / 1000)
        self._version: str | None = None
        self._valid_until_s = 0.0
        self._seen: tuple[str, float] | None = None  # version number of another's item, and when it was first seen
        self._renewal = Renewal(self._renew, _RENEWAL_S)
        self._make_table()

    def _name(self, settings: LockOptions, storage: Storage) -> str:
        name = settings.dynamo.partition_key or settings.table_name
        if name is None:
            raise ConfigError(f"{_KEY}partition_key is not given: the name of the table's lock.")
        return name

    @property
    def is_held(self) -> bool:
        return self._version is not None and self._clock.monotonic_s() < self._valid_until_s

    @property
    def owner_note(self) -> str:
        item = self._read()
        if item is None or "isReleased" in item:
            return "nobody"
        who = quoted(_text(item, "ownerName") or "somebody")
        return f"{who}, item {quoted(self._key)!r} of DynamoDB table {self._table}"

    def try_acquire(self, timeout_s: float) -> bool:
        return retry_until(self._attempt, timeout_s, self._pauses, self._clock)

    def release(self) -> None:
        self._renewal.stop()
        version, self._version = self._version, None
        if version is not None:
            names = {"#k": "key", "#v": "recordVersionNumber", "#o": "ownerName"}
            values = {":old": {"S": version}, ":owner": {"S": self._owner}}
            self._try(
                "delete_item",
                Key={"key": {"S": self._key}},
                ConditionExpression=_OURS,
                ExpressionAttributeNames=names,
                ExpressionAttributeValues=values,
            )

    def _attempt(self) -> bool:
        if self.is_held:
            return False
        names, values = {"#k": "key", "#r": "isReleased"}, {":yes": {"S": "1"}}
        if self._put(_FREE, names, values):
            return True
        item = self._read()
        version = _text(item, "recordVersionNumber") if item is not None else None
        if item is None or version is None:
            return False
        now_s = self._clock.monotonic_s()
        if self._seen is None or self._seen[0] != version:
            self._seen = version, now_s
        lease_s = _lease_ms(item) / 1000
        if now_s - self._seen[1] <= lease_s:
            return False
        stale = {"#k": "key", "#v": "recordVersionNumber"}
        return self._put("attribute_exists(#k) AND #v = :old", stale, {":old": {"S": version}})

    def _put(self, condition: str, names: dict[str, str], values: Item) -> bool:
        """Write our item if the condition holds."""
        version, began_s = self._clock.new_uuid(), self._clock.monotonic_s()
        item = {
            "key": {"S": self._key},
            "ownerName": {"S": self._owner},
            "leaseDuration": {"S": str(_LEASE_MS)},
            "recordVersionNumber": {"S": version},
        }
        made = self._try(
            "put_item",
            Item=item,
            ConditionExpression=condition,
            ExpressionAttributeNames=names,
            ExpressionAttributeValues=values,
        )
        if made:
            self._version, self._valid_until_s = version, began_s + _LEASE_MS / 1000
            self._seen = None
            self._renewal.start()
        return made

    def _renew(self) -> bool:
        version, began_s = self._version, self._clock.monotonic_s()
        if version is None:
            return False
        newer = self._clock.new_uuid()
        try:
            done = self._try(
                "update_item",
                Key={"key": {"S": self._key}},
                UpdateExpression="SET #v = :new, #l = :lease",
                ConditionExpression=_OURS,
                ExpressionAttributeNames={
                    "#k": "key",
                    "#v": "recordVersionNumber",
                    "#o": "ownerName",
                    "#l": "leaseDuration",
                },
                ExpressionAttributeValues={
                    ":old": {"S": version},
                    ":new": {"S": newer},
                    ":owner": {"S": self._owner},
                    ":lease": {"S": str(_LEASE_MS)},
                },
            )
        except StorageError:
            return self.is_held  # the server may answer next time
        if done:
            self._version, self._valid_until_s = newer, began_s + _LEASE_MS / 1000
        else:
            self._valid_until_s = 0.0
        return done

    def _read(self) -> Item | None:
        answer = self._call("get_item", Key={"key": {"S": self._key}}, ConsistentRead=True)
        item: Item | None = answer.get("Item")
        return item

    def _try(self, verb: str, **arguments: object) -> bool:
        """Send a request; False when its condition does not hold."""
        try:
            self._call(verb, **arguments)
        except _ConditionFailed:
            return False
        return True

    def _call(self, verb: str, **arguments: object) -> Body:
        try:
            answer: Body = getattr(self._client, verb)(TableName=self._table, **arguments)
        except self._errors.ClientError as error:
            code = error.response.get("Error", {}).get("Code", "")
            if code == "ConditionalCheckFailedException":
                raise _ConditionFailed from error
            raise StorageError(f"DynamoDB table {self._table}: the server refused: {error}") from error
        except self._errors.BotoCoreError as error:
            raise StorageError(f"DynamoDB table {self._table}: no answer: {error}") from error
        except (ValueError, TypeError, OSError) as error:  # requests that can't be sent, answers that can't be read
            raise StorageError(f"DynamoDB table {self._table}: {error!r}") from error
        return answer

    def _make_table(self) -> None:
        """Create the table of locks unless it exists."""
        options = self._settings.dynamo
        try:
            self._call("describe_table")
            return
        except StorageError as error:
            if "ResourceNotFound" not in str(error):
                raise
        capacity: NewBody = {}
        if options.billing_mode == "PROVISIONED":
            units = {"ReadCapacityUnits": options.read_capacity, "WriteCapacityUnits": options.write_capacity}
            capacity = {"ProvisionedThroughput": units}
        try:
            self._call(
                "create_table",
                KeySchema=[{"AttributeName": "key", "KeyType": "HASH"}],
                AttributeDefinitions=[{"AttributeName": "key", "AttributeType": "S"}],
                BillingMode=options.billing_mode,
                **capacity,
            )
        except StorageError as error:
            if "ResourceInUse" not in str(error):  # another writer was faster
                raise
        if not retry_until(self._is_active, options.creation_timeout_s, (0.05, 2.0), self._clock):
            raise StorageError(f"DynamoDB table {self._table} was not ready within {options.creation_timeout_s:g} s.")

    def _is_active(self) -> bool:
        return bool(self._call("describe_table")["Table"]["TableStatus"] == "ACTIVE")


class ImplicitKeyDynamoLock(DynamoLock):
    """The lock's name follows from the table's path, as in Hudi."""

    def _name(self, settings: LockOptions, storage: Storage) -> str:
        root = storage.root
        return hash_id_64(f"s3://{root[6:]}" if root.startswith("s3a://") else root)


def _text(item: Item, name: str) -> str | None:
    """Return a text of an item; None for anything else, since anyone may have written it."""
    value = item.get(name)
    text = value.get("S") if isinstance(value, dict) else None
    return text if isinstance(text, str) else None


def _lease_ms(item: Item) -> int:
    """Return the lease of another's item, or our own if its text is not a number of milliseconds."""
    text = _text(item, "leaseDuration") or ""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _LEASE_DIGITS_MAX else _LEASE_MS


class _ConditionFailed(Exception):
    """Another process has changed the item."""


def _client(options: DynamoOptions, aws: AwsOptions) -> tuple[object, ModuleType]:
    try:
        errors = importlib.import_module("botocore.exceptions")
        session = aws_session(aws, options.region, "The lock provider DYNAMODB")
        return session.client("dynamodb", region_name=options.region, endpoint_url=options.endpoint_url), errors
    except ImportError as error:
        raise ConfigError(
            "The lock provider DYNAMODB needs the package boto3: install the extra `pyhudi[dynamodb]`."
        ) from error
    except (errors.BotoCoreError, ValueError) as error:
        raise ConfigError(
            f"The lock provider DYNAMODB can't be used: {error} See {_KEY}region and hoodie.aws.access.key."
        ) from error
