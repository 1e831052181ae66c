"""Commit callbacks: Hudi's message about a commit, posted as JSON or passed to a user's function.

    {"commitTime": ..., "tableName": ..., "basePath": ..., "hoodieWriteStat": [...],
     "commitActionType": {...}, "extraMetadata": {...}}

Hudi writes the last two as `{"empty": false, "present": true}`, without the value; PyHudi adds it, as `val`. Values of
headers are never shown. Source: what Hudi 1.2.0 posts; Hudi's HoodieWriteCommitHttpCallbackClient.
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
from pyhudi.listeners.delivery import stop_blocking_caller
from pyhudi.listeners.notification import ActionCompleted
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
    """Reports writes only, not table services, as Hudi does."""

    def is_on(self, options: WriteOptions) -> bool:
        """True if the callback is on."""
        return options.callback.is_on

    def check(self, options: WriteOptions) -> None:
        """Do nothing: the options were checked when they were read."""

    def record(self, completed: ActionCompleted, options: WriteOptions) -> None:
        """Do nothing: any part of a delivery may take long."""

    def on_action(self, completed: ActionCompleted, options: WriteOptions, clock: Clock) -> None:
        """Deliver the message. Never raises: the commit is complete, so a failed callback is only a warning."""
        body, callback = completed.write, options.callback
        if body is None or completed.instant is None:
            return
        message = message_of(completed, body)
        if callback.function is None and ":" not in callback.class_name:
            problem = _post(message, callback, clock)
        else:
            problem = _call(message, callback)
        if problem:
            warn_caller(
                f"{completed.table}: {completed.action} {completed.instant.requested_time} is done, but its callback "
                f"{problem}. Nobody was notified of the commit."
            )


def message_of(completed: ActionCompleted, body: CommitMetadata) -> dict[str, object]:
    """Return Hudi's message about a commit, as JSON values."""
    assert completed.instant is not None
    return {
        "commitTime": completed.instant.requested_time,
        "tableName": completed.table_name,
        "basePath": completed.table,
        "hoodieWriteStat": [_stat(stat) for stat in body.stats()],
        "commitActionType": _present(completed.instant.action.value),
        "extraMetadata": _present(dict(body.extra_metadata)),
    }


def _stat(stat: WriteStat) -> dict[str, object]:
    return {**stat_to_json(stat), "totalLogReadTimeMs": stat.total_log_read_time_ms}


def _present(value: object) -> dict[str, object]:
    return {"empty": False, "present": True, "val": value}


def _call(message: Message, callback: CallbackOptions) -> str | None:
    """Call the user's function. Returns the failure as text, or None."""
    try:
        function = callback.function or _FUNCTIONS.load(callback.class_name)
        function(message)
    except Exception as error:
        return f"{callback.class_name} failed: {type(error).__name__}: {error}"
    return None


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect, which would send the headers, secrets included, to another address."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: object, newurl: str
    ) -> None:
        return None


def _post(message: Mapping[str, object], callback: CallbackOptions, clock: Clock) -> str | None:
    """Post the message; retry after a transient failure. Returns the failure as text, or None."""
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
            stop_blocking_caller()
            clock.sleep_s(pause_s)
        try:
            request = urllib.request.Request(callback.url, data, headers, method="POST")
            opener = urllib.request.build_opener(_NoRedirects)
            response: HTTPResponse
            with opener.open(request, timeout=callback.timeout_s) as response:
                _log.info("%s was notified of commit %s", _host(callback.url), message["commitTime"])
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
    """Return the address without user, path and parameters, any of which may be secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
