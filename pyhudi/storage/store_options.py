"""Options of remote stores: Hadoop's keys, the names that other libraries have for them, and the environment.

    endpoint_url, AWS_ENDPOINT_URL, ...   →  fs.s3a.endpoint
    AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL of the environment, where no option says another server

A request that goes to another server than the one that was meant carries a signature by the key of that one, so a key
that nobody knows is refused. Source: docs/storage.md.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from pyhudi.errors import ConfigError
from pyhudi.shown_text import quoted

__all__ = ["REMOTE_SCHEMES", "known_options", "likely_misspelled", "named_options", "with_environment"]

_S3_ENDPOINT = "fs.s3a.endpoint"
_KNOWN = frozenset(
    {
        "fs.s3a.access.key",
        "fs.s3a.secret.key",
        "fs.s3a.session.token",
        "fs.s3a.endpoint",
        "fs.s3a.endpoint.region",
        "fs.s3a.path.style.access",
        "fs.s3a.connection.ssl.enabled",
        "fs.azure.account.key",
        "fs.azure.sas.fixed.token",
        "fs.azure.account.auth.type",
        "fs.azure.account.oauth2.client.id",
        "fs.azure.account.oauth2.client.secret",
        "fs.azure.account.oauth2.client.endpoint",
        "fs.azure.abfs.endpoint",
        "fs.azure.always.use.https",
        "fs.gs.storage.root.url",
        "fs.gs.project.id",
        "fs.gs.auth.type",
        "fs.gs.auth.null.enable",
        "google.cloud.auth.null.enable",
        "fs.gs.auth.service.account.json.keyfile",
        "google.cloud.auth.service.account.json.keyfile",
    }
)
# Without `aws_` and `azure_storage_` before them; capitals count for nothing.
_S3_NAMES = {
    "endpoint": _S3_ENDPOINT,
    "endpoint_url": _S3_ENDPOINT,
    "endpoint_url_s3": _S3_ENDPOINT,
    "endpoint_override": _S3_ENDPOINT,
    "access_key": "fs.s3a.access.key",
    "access_key_id": "fs.s3a.access.key",
    "secret_key": "fs.s3a.secret.key",
    "secret_access_key": "fs.s3a.secret.key",
    "session_token": "fs.s3a.session.token",
    "token": "fs.s3a.session.token",
    "region": "fs.s3a.endpoint.region",
    "default_region": "fs.s3a.endpoint.region",
}
_AZURE_NAMES = {
    "endpoint": "fs.azure.abfs.endpoint",
    "endpoint_url": "fs.azure.abfs.endpoint",
    "account_key": "fs.azure.account.key",
    "sas_token": "fs.azure.sas.fixed.token",
}
_GOOGLE_NAMES = {"endpoint": "fs.gs.storage.root.url", "endpoint_url": "fs.gs.storage.root.url"}
_NAMES = {"abfs": _AZURE_NAMES, "abfss": _AZURE_NAMES, "gs": _GOOGLE_NAMES}
_PREFIXES = ("aws_", "azure_storage_", "google_")
_VARIABLES = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
_S3_SCHEMES = frozenset({"s3", "s3a", "s3n"})
REMOTE_SCHEMES = frozenset({*_S3_SCHEMES, "gs", "abfs", "abfss", "hdfs"})


def named_options(scheme: str, options: Mapping[str, str]) -> dict[str, str]:
    """The options by Hadoop's keys.

    Raises: ConfigError for a key that nobody knows, with the nearest one, and for two names of one option that differ.
    """
    names = _NAMES.get(scheme, _S3_NAMES)
    named: dict[str, str] = {}
    for name, value in options.items():
        key = name if _is_known(name) else names.get(_plain(name), "") if isinstance(name, str) else None
        if not key:
            raise _unknown(name, names)
        if named.setdefault(key, value) != value:
            raise ConfigError(f"The option '{key}' of the store is given twice, also as '{quoted(name)}'. Keep one.")
    return named


def with_environment(scheme: str, options: Mapping[str, str]) -> dict[str, str]:
    """The options, with the environment's endpoint of S3 where they name none: the clients don't all look for it, and
    tasks on other machines have another environment.
    """
    if scheme not in _S3_SCHEMES or options.get(_S3_ENDPOINT):
        return dict(options)
    if os.environ.get("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "").lower() == "true":
        return dict(options)
    endpoint = next((value for name in _VARIABLES if (value := os.environ.get(name))), None)
    return dict(options) if endpoint is None else {**options, _S3_ENDPOINT: endpoint.rstrip("/")}


def known_options(options: Mapping[str, str]) -> dict[str, str]:
    """Those of Hadoop's keys that count here: a session has many more."""
    return {key: value for key, value in options.items() if _is_known(key)}


def likely_misspelled(keys: Iterable[str]) -> tuple[str, str] | None:
    """A key that is none, and the known one that was most likely meant; None when there is no such key."""
    for key in keys:
        near = [] if _is_known(key) else get_close_matches(key, _KNOWN, n=1, cutoff=0.92)
        if near:
            return key, near[0]
    return None


def _is_known(key: str) -> bool:
    """Azure's keys may end with the account's host."""
    if key in _KNOWN or not isinstance(key, str):
        return key in _KNOWN
    return key.startswith("fs.azure.") and any(key.startswith(f"{stem}.") for stem in _KNOWN)


def _plain(key: str) -> str:
    name = key.strip().lower()
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    return name


def _unknown(key: object, names: Mapping[str, str]) -> ConfigError:
    if not isinstance(key, str):
        return ConfigError(f"The option '{key!r}' of the store: expected text, found {type(key).__name__}.")
    near = get_close_matches(_plain(key), [*names, *_KNOWN], n=1)
    hint = f" Did you mean '{near[0]}'?" if near else ""
    return ConfigError(
        f"The option '{quoted(key)}' of the store is not known.{hint} Known are {', '.join(sorted(names))} and "
        "Hadoop's keys (docs/storage.md). No request was sent."
    )
