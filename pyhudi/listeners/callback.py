"""Commit callbacks: Hudi's message about a commit, posted as JSON or handed to a function of the user's.

    {"commitTime": ..., "tableName": ..., "basePath": ..., "hoodieWriteStat": [...],
     "commitActionType": {...}, "extraMetadata": {...}}

Hudi writes the last two as `{"empty": false, "present": true}`, without the value; here that is beside them, as `val`.
Values of headers are shown nowhere. Source: what Hudi 1.2.0 posts; Hudi's HoodieWriteCommitHttpCallbackClient.
"""

from __future__ import annotations

import json
import logging
import urllib.request
from collections.abc import Callable, Mapping
from http.client import HTTPException, HTTPResponse
from typing import IO
from urllib.error import HTTPError
from urllib.parse import urlsplit

from pyhudi.formats.timeline.write_stats import stat_to_json
from pyhudi.listeners.delivery import going_on_alone
from pyhudi.listeners.done import ActionDone
from pyhudi.model.commit import CommitMetadata, WriteStat
from pyhudi.model.options import WriteOptions
from pyhudi.model.options.reporting import CallbackOptions, Message
from pyhudi.registry import Registry
from pyhudi.storage.clock import Clock
from pyhudi.warnings import warn_caller

__all__ = ["CallbackListener", "message_of"]

_log = logging.getLogger("pyhudi.callback")
_PAUSES_S = (1.0, 3.0)  # before the second and the third attempt
_TOO_MANY_REQUESTS = 429
_FUNCTIONS: Registry[Callable[[Message], object]] = Registry(kind="commit callback", entries={})


class CallbackListener:
    """Tells of writes; table services are not told of, as in Hudi."""

    def wants(self, options: WriteOptions) -> bool:
        """When the callback is on."""
        return options.callback.is_on

    def check(self, options: WriteOptions) -> None:
        """Nothing: the options were checked when they were read."""

    def note(self, done: ActionDone, options: WriteOptions) -> None:
        """Nothing: all of it may take long."""

    def hear(self, done: ActionDone, options: WriteOptions, clock: Clock) -> None:
        """Deliver the message. Never raises: the commit is done, and a callback that fails is warned of."""
        body, callback = done.write, options.callback
        if body is None or done.instant is None:
            return
        message = message_of(done, body)
        if callback.function is None and ":" not in callback.class_name:
            problem = _post(message, callback, clock)
        else:
            problem = _call(message, callback)
        if problem:
            warn_caller(
                f"{done.table}: {done.action} {done.instant.requested_time} is done, but its callback {problem}. "
                "Nobody was told of the commit."
            )


def message_of(done: ActionDone, body: CommitMetadata) -> dict[str, object]:
    """Hudi's message about a commit, as JSON values."""
    assert done.instant is not None
    return {
        "commitTime": done.instant.requested_time,
        "tableName": done.table_name,
        "basePath": done.table,
        "hoodieWriteStat": [_stat(stat) for stat in body.stats()],
        "commitActionType": _present(done.instant.action.value),
        "extraMetadata": _present(dict(body.extra_metadata)),
    }


def _stat(stat: WriteStat) -> dict[str, object]:
    return {**stat_to_json(stat), "totalLogReadTimeMs": stat.total_log_read_time_ms}


def _present(value: object) -> dict[str, object]:
    return {"empty": False, "present": True, "val": value}


def _call(message: Message, callback: CallbackOptions) -> str | None:
    """Call the user's function. Returns: what went wrong, None when nothing did."""
    try:
        function = callback.function or _FUNCTIONS.load(callback.class_name)
        function(message)
    except Exception as error:
        return f"{callback.class_name} failed: {type(error).__name__}: {error}"
    return None


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would send the headers, secrets among them, to another address."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: object, newurl: str
    ) -> None:
        return None


def _post(message: Mapping[str, object], callback: CallbackOptions, clock: Clock) -> str | None:
    """Post the message, again after a failure that may pass. Returns: what went wrong, None when nothing did."""
    assert callback.url is not None
    headers = {
        "HUDI-CALLBACK-KEY": callback.api_key,
        "Content-Type": "application/json; charset=UTF-8",
        **callback.headers,
    }
    data = json.dumps(message, ensure_ascii=False).encode()
    problem = ""
    for pause_s in (0.0, *_PAUSES_S):
        if pause_s:
            going_on_alone()
            clock.sleep_s(pause_s)
        try:
            request = urllib.request.Request(callback.url, data, headers, method="POST")
            opener = urllib.request.build_opener(_NoRedirects)
            response: HTTPResponse
            with opener.open(request, timeout=callback.timeout_s) as response:
                _log.info("%s was told of commit %s", _host(callback.url), message["commitTime"])
                return None if response.status < 300 else f"to {_host(callback.url)} got {response.status}"
        except HTTPError as error:
            error.close()
            problem = f"to {_host(callback.url)} got the answer {error.code}"
            if error.code < 500 and error.code != _TOO_MANY_REQUESTS:
                return problem
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", error)
            problem = f"to {_host(callback.url)} failed: {type(error).__name__}: {reason}"
        except ValueError:  # a header that HTTP can't send; its text is secret
            return f"to {_host(callback.url)} was not sent: HTTP takes no such address or header"
    return f"{problem}, {1 + len(_PAUSES_S)} times"


def _host(url: str) -> str:
    """The address without user, path and parameters, any of which may be secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
