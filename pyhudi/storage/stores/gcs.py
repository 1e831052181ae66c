"""Google Cloud Storage: keys of Hadoop's connector as arguments of pyarrow's GcsFileSystem and obstore's GCSStore."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import timedelta

from pyhudi.errors import ConfigError
from pyhudi.storage.base import ClientArguments
from pyhudi.storage.waiting import timeout_s

__all__ = ["gcs_arguments", "gcs_retry_time", "gcs_store_arguments"]

_ENDPOINT = "fs.gs.storage.root.url"
_KEY_FILES = ("fs.gs.auth.service.account.json.keyfile", "google.cloud.auth.service.account.json.keyfile")
_ANONYMOUS = ("fs.gs.auth.null.enable", "google.cloud.auth.null.enable")
_RETRIES_S = 15.0  # without a network or credentials pyarrow would go on for a quarter of an hour
_KEY_FILE_VARIABLE = "GOOGLE_APPLICATION_CREDENTIALS"


def gcs_arguments(options: Mapping[str, str]) -> ClientArguments:
    """Return arguments of pyarrow's GcsFileSystem. Raises ConfigError for a key file, which it has no argument for."""
    _check_key_file(options)
    arguments: ClientArguments = {}
    if _is_anonymous(options):
        arguments["anonymous"] = True
    if endpoint := options.get(_ENDPOINT):
        scheme, separator, host = endpoint.rstrip("/").rpartition("://")
        arguments["endpoint_override"] = host
        arguments["scheme"] = scheme if separator else "https"
    if project := options.get("fs.gs.project.id"):
        arguments["project_id"] = project
    return arguments


def gcs_store_arguments(options: Mapping[str, str]) -> ClientArguments:
    """Return arguments of obstore's GCSStore."""
    settings = gcs_arguments(options)
    arguments: ClientArguments = {}
    endpoint = f"{settings['scheme']}://{settings['endpoint_override']}" if "endpoint_override" in settings else None
    if "anonymous" in settings:
        # Not skip_signature: with it the client still requests a token for puts.
        account = {"disable_oauth": True, "client_email": "", "private_key": "", "private_key_id": ""}
        arguments["service_account_key"] = json.dumps({**account, **({"gcs_base_url": endpoint} if endpoint else {})})
    elif endpoint:
        arguments["base_url"] = endpoint
    if settings.get("scheme") == "http":
        arguments["client_options"] = {"allow_http": True}
    return arguments


def gcs_retry_time(options: Mapping[str, str]) -> timedelta:
    """Return how long both clients retry a failed request."""
    return timedelta(seconds=timeout_s(options) or _RETRIES_S)


def _is_anonymous(options: Mapping[str, str]) -> bool:
    if options.get("fs.gs.auth.type", "").upper() == "UNAUTHENTICATED":
        return True
    return any(options.get(key, "").lower() == "true" for key in _ANONYMOUS)


def _check_key_file(options: Mapping[str, str]) -> None:
    """Check that both clients use one identity: pyarrow takes key files only from the environment variable."""
    for key in _KEY_FILES:
        key_file = options.get(key)
        if key_file and key_file != os.environ.get(_KEY_FILE_VARIABLE):
            raise ConfigError(
                f"{key}={key_file}: PyArrow takes the key file of a service account from the environment variable "
                f"{_KEY_FILE_VARIABLE} only. Set it to that file, on executors too, and leave the key out."
            )
