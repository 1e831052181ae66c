"""Requests to AWS by boto3: repeated after a busy answer, with errors of the HudiError family."""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from pyhudi.errors import ConfigError, MissingLibrary, StorageError
from pyhudi.storage.clock import Clock

__all__ = ["AwsCalls", "Patience", "aws_client"]

_CONNECT_TIMEOUT_S = 10
_READ_TIMEOUT_S = 60  # more than the longest poll of a queue
_BUSY = (
    "ProvisionedThroughputExceededException", "LimitExceededException", "ThrottlingException", "Throttling",
    "RequestThrottled", "OverLimit", "KMSThrottlingException", "InternalFailure", "ServiceUnavailable",
)  # fmt: skip
_OF_CONFIGURATION = (
    "ResourceNotFoundException", "AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist", "AccessDenied",
    "AccessDeniedException", "UnrecognizedClientException", "InvalidClientTokenId", "InvalidSignatureException",
    "SignatureDoesNotMatch", "ExpiredTokenException", "ValidationException", "InvalidAddress",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Patience:
    """Pauses after busy answers: the first, which doubles up to the longest, and the total time without an answer."""

    first_s: float = 1.0
    longest_s: float = 10.0
    timeout_s: float = 60.0


def aws_client(
    service: str, extra: str, region: str | None, endpoint_url: str | None = None, keys: Mapping[str, str | None] = {}
) -> Any:
    """A client of boto3; without `keys` by the environment's credentials. Raises MissingLibrary, ConfigError."""
    try:
        boto, errors = importlib.import_module("boto3"), importlib.import_module("botocore.exceptions")
        config = importlib.import_module("botocore.config").Config(
            connect_timeout=_CONNECT_TIMEOUT_S,
            read_timeout=_READ_TIMEOUT_S,
            retries={"total_max_attempts": 1},  # AwsCalls repeats requests
        )
    except ImportError as error:
        raise MissingLibrary(
            f'A source of {service} needs boto3, which is not installed: pip install "pyhudi[{extra}]".'
        ) from error
    try:
        session = boto.session.Session(region_name=region, **keys)
        return session.client(service, endpoint_url=endpoint_url or None, config=config)
    except (errors.BotoCoreError, ValueError) as error:
        raise ConfigError(f"The source of {service} can't be opened: {error}") from error


class AwsCalls:
    """A client, and the name of its source in errors."""

    def __init__(self, client: Any, where: str, clock: Clock, patience: Patience) -> None:
        self.client, self.where, self.clock = client, where, clock
        self._patience = patience
        self._errors = importlib.import_module("botocore.exceptions")

    def ask(self, operation: str, expected: Collection[str] = (), **arguments: Any) -> dict[str, Any] | None:
        """The answer; None for one of the error codes `expected`.

        Raises: ConfigError for errors in the configuration, StorageError for others.
        """
        request: Callable[..., dict[str, Any]] = getattr(self.client, operation)
        since_s, pause_s = self.clock.monotonic_s(), self._patience.first_s
        while True:
            try:
                return request(**arguments)
            except self._errors.ClientError as error:
                detail = error.response["Error"]
                code, status = detail.get("Code", ""), error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
                text = f"{self.where} refused {operation}: {code}: {detail.get('Message', '')}. Nothing was written."
                if code in expected:
                    return None
                if code in _OF_CONFIGURATION:
                    raise ConfigError(text) from error
                is_over = self.clock.monotonic_s() - since_s > self._patience.timeout_s
                if is_over or not (code in _BUSY or (status or 0) >= 500):
                    raise StorageError(text) from error
            except (self._errors.NoCredentialsError, self._errors.PartialCredentialsError) as error:
                raise ConfigError(f"{self.where}: {error}. Nothing was written.") from error
            except self._errors.BotoCoreError as error:
                text = f"{self.where} did not answer {operation}: {type(error).__name__}: {error}. Nothing was written."
                raise StorageError(text) from error
            self.clock.sleep_s(pause_s * (0.5 + random.random() / 2))
            pause_s = min(2 * pause_s, self._patience.longest_s)
