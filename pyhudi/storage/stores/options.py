"""Options of remote stores: Hadoop's keys, other libraries' names for them, and the environment.

    endpoint_url, AWS_ENDPOINT_URL, ...   →  fs.s3a.endpoint
    AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL of the environment, if no option names another server

A request to the wrong server would carry a signature by the intended server's key, so unknown keys are refused. Source:
docs/storage.md.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import cast

from pyhudi.errors import ConfigError
from pyhudi.redaction import quoted
from pyhudi.storage.stores.words import (
    AZURE_ACCOUNT,
    AZURE_DOMAIN,
    AZURE_ENDPOINT,
    AZURE_TENANT,
    NEEDLESS,
    PROFILE,
    S3_PROVIDER,
    Word,
    plain_word,
    words_of,
)
from pyhudi.storage.waiting import TIMEOUT

__all__ = ["REMOTE_SCHEMES", "known_options", "likely_misspelled", "named_options", "with_environment"]

_S3_ENDPOINT, _GOOGLE_ENDPOINT = "fs.s3a.endpoint", "fs.gs.storage.root.url"
_SAYS_TLS: Mapping[str, tuple[str, ...]] = {
    "allow_http": ("false", "0", "no", "off"),
    "use_ssl": ("true", "1", "yes", "on"),
}
_GROUPS = ("client_kwargs", "config_kwargs", "client_options", "s3")  # of other libraries, with options in them
_KNOWN = frozenset(
    {
        "fs.s3a.access.key",
        "fs.s3a.secret.key",
        "fs.s3a.session.token",
        "fs.s3a.endpoint",
        "fs.s3a.endpoint.region",
        "fs.s3a.path.style.access",
        "fs.s3a.connection.ssl.enabled",
        S3_PROVIDER,
        PROFILE,
        "fs.azure.account.key",
        "fs.azure.sas.fixed.token",
        "fs.azure.account.auth.type",
        "fs.azure.account.oauth2.client.id",
        "fs.azure.account.oauth2.client.secret",
        "fs.azure.account.oauth2.client.endpoint",
        AZURE_ACCOUNT,
        AZURE_DOMAIN,
        AZURE_TENANT,
        AZURE_ENDPOINT,
        "fs.azure.always.use.https",
        _GOOGLE_ENDPOINT,
        "fs.gs.project.id",
        "fs.gs.auth.type",
        "fs.gs.auth.null.enable",
        "google.cloud.auth.null.enable",
        "fs.gs.auth.service.account.json.keyfile",
        "google.cloud.auth.service.account.json.keyfile",
        TIMEOUT,
    }
)
_VARIABLES = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
_S3_SCHEMES = frozenset({"s3", "s3a", "s3n"})
REMOTE_SCHEMES = frozenset({*_S3_SCHEMES, "gs", "abfs", "abfss", "az", "hdfs"})


def named_options(scheme: str, options: Mapping[str, object]) -> dict[str, str]:
    """Return the options by Hadoop's keys, from Hadoop's names or other libraries' (`words.py`).

    Mappings in them (s3fs's `client_kwargs`, obstore's `client_options`) count like flat options; None is ignored.
    Raises: ConfigError for an unknown word, with the nearest one, and for contradictory ones.
    """
    words = words_of(scheme)
    named: dict[str, str] = {}
    for name, value in _flat(options):
        if isinstance(name, str) and _is_known(name):
            meaning = {name: value}
        else:
            word = words.get(plain_word(name)) if isinstance(name, str) else None
            if word is None:
                raise _unknown(name, words)
            if not isinstance(value, str):
                raise ConfigError(
                    f"The option '{quoted(str(name))}' of the store: expected text, found {type(value).__name__}."
                )
            meaning = dict(word(quoted(name), value))
        for key, text in meaning.items():
            if named.setdefault(key, cast("str", text)) != text:
                raise ConfigError(
                    f"The option '{key}' of the store is given twice, also as '{quoted(name)}'. Keep one."
                )
    _check_plain_http(named, options)
    return named


def _flat(options: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for name, value in options.items():
        if isinstance(name, str) and isinstance(value, Mapping) and name.lower() in _GROUPS:
            yield from _flat(value)
        elif value is not None:
            yield name, str(value).lower() if isinstance(value, bool) else value


def _check_plain_http(named: Mapping[str, str], options: Mapping[str, object]) -> None:
    """Raise ConfigError for an address without TLS if the options ask for TLS."""
    endpoints = (str(named.get(key, "")).lower() for key in (_S3_ENDPOINT, AZURE_ENDPOINT, _GOOGLE_ENDPOINT))
    says_tls = any(
        isinstance(name, str) and str(value).strip().lower() in _SAYS_TLS.get(plain_word(name), ())
        for name, value in _flat(options)
    )
    if says_tls and any(endpoint.startswith("http://") for endpoint in endpoints):
        raise ConfigError(
            "The store's endpoint begins with http://, and another option asks for TLS. Keep one of them."
        )


def with_environment(scheme: str, options: Mapping[str, str]) -> dict[str, str]:
    """The options, with the environment's S3 endpoint if they name none: not all clients read it, and tasks on other
    machines have another environment.
    """
    if scheme not in _S3_SCHEMES or options.get(_S3_ENDPOINT):
        return dict(options)
    if os.environ.get("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "").lower() == "true":
        return dict(options)
    endpoint = next((value for name in _VARIABLES if (value := os.environ.get(name))), None)
    return dict(options) if endpoint is None else {**options, _S3_ENDPOINT: endpoint.rstrip("/")}


def known_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return the known keys among Hadoop's: a session has many more."""
    return {key: value for key, value in options.items() if _is_known(key)}


def likely_misspelled(keys: Iterable[str]) -> tuple[str, str] | None:
    """Return an unknown key and the known one that it most likely means; None if there is no such key."""
    for key in keys:
        near = [] if _is_known(key) else get_close_matches(key, _KNOWN, n=1, cutoff=0.92)
        if near:
            return key, near[0]
    return None


def _is_known(key: str) -> bool:
    """True for a known key. Azure's keys may end with the account's host."""
    if key in _KNOWN or not isinstance(key, str):
        return key in _KNOWN
    return key.startswith("fs.azure.") and any(key.startswith(f"{stem}.") for stem in _KNOWN)


def _unknown(name: object, words: Mapping[str, Word]) -> ConfigError:
    if not isinstance(name, str):
        return ConfigError(f"The option '{name!r}' of the store: expected text, found {type(name).__name__}.")
    why = NEEDLESS.get(plain_word(name))
    if why is not None:
        return ConfigError(f"The option '{quoted(name)}' of the store has no meaning here: {why}. Leave it out.")
    near = get_close_matches(plain_word(name), [*words, *_KNOWN], n=1)
    hint = f" Did you mean '{near[0]}'?" if near else ""
    return ConfigError(
        f"The option '{quoted(name)}' of the store is not known.{hint} Known are {', '.join(sorted(words))} and "
        "Hadoop's keys (docs/storage.md). No request was sent."
    )
