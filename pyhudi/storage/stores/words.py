"""Other libraries' names for store options, as Hadoop's keys: s3fs, boto3, obstore, deltalake, pyarrow, gcsfs.

Names are in lower case, without a prefix `aws_`, `azure_` or `google_`. Most are another name of a key; a few have a
meaning of their own (`anon`, `allow_http`), and some have none here, with the reason.

Source: docs/storage.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from pyhudi.errors import ConfigError
from pyhudi.storage.waiting import TIMEOUT

__all__ = [
    "AZURE_ACCOUNT",
    "AZURE_CLI",
    "AZURE_DOMAIN",
    "AZURE_ENDPOINT",
    "AZURE_TENANT",
    "NEEDLESS",
    "PROFILE",
    "S3_PROVIDER",
    "Word",
    "plain_word",
    "words_of",
]

Word: TypeAlias = "Callable[[str, str], dict[str, str]]"

PROFILE = "fs.s3a.profile"  # of ~/.aws; Hadoop has no key for it
AZURE_TENANT = "fs.azure.account.oauth2.tenant"
# In Hadoop the path names them.
AZURE_ACCOUNT, AZURE_DOMAIN = "fs.azure.account.name", "fs.azure.account.domain"
AZURE_CLI: Mapping[str, str] = {"fs.azure.account.auth.type": "AzureCLI"}  # not a word of Hadoop's
AZURE_ENDPOINT, _AZURE_KEY, _AZURE_SAS = "fs.azure.abfs.endpoint", "fs.azure.account.key", "fs.azure.sas.fixed.token"
# The emulator's account and its key are the same everywhere, and published.
_EMULATOR: Mapping[str, str] = {
    AZURE_ACCOUNT: "devstoreaccount1",
    _AZURE_KEY: "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
    AZURE_ENDPOINT: "http://127.0.0.1:10000",
}
S3_PROVIDER = "fs.s3a.aws.credentials.provider"
_NOBODY = "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"
_PREFIXES = ("aws_s3_", "aws_", "azure_storage_", "azure_", "google_", "s3_")
_TRUE, _FALSE = ("true", "1", "yes", "on"), ("false", "0", "no", "off")


@dataclass(frozen=True, slots=True)
class _Key:
    """Another name of one of Hadoop's keys."""

    key: str

    def __call__(self, name: str, value: str) -> dict[str, str]:
        return {self.key: value}


@dataclass(frozen=True, slots=True)
class _Flag:
    """A switch: the settings for on and for off."""

    on: Mapping[str, str]
    off: Mapping[str, str] | None = None

    def __call__(self, name: str, value: str) -> dict[str, str]:
        word = value.strip().lower()
        if word not in (*_TRUE, *_FALSE):
            raise ConfigError(f"The option '{name}' of the store: expected true or false.")
        return dict(self.on if word in _TRUE else self.off or {})


@dataclass(frozen=True, slots=True)
class _Choice:
    """A choice among a few values."""

    meanings: Mapping[str, Mapping[str, str]]

    def __call__(self, name: str, value: str) -> dict[str, str]:
        meaning = self.meanings.get(value.strip().lower())
        if meaning is None:
            raise ConfigError(f"The option '{name}' of the store: expected one of {', '.join(self.meanings)}.")
        return dict(meaning)


def _connection_string(name: str, value: str) -> dict[str, str]:
    """Return a connection string of Azure's: `AccountName=…;AccountKey=…;EndpointSuffix=core.windows.net`."""
    parts = {key.strip().lower(): text.strip() for key, _, text in (part.partition("=") for part in value.split(";"))}
    if parts.get("usedevelopmentstorage", "").lower() == "true":
        return dict(_EMULATOR)
    account, domain = parts.get("accountname", ""), parts.get("endpointsuffix", "")
    scheme, _, place = parts.get("blobendpoint", "").rstrip("/").rpartition("://")
    host, _, path = place.partition("/")
    is_emulator = bool(place) and ".blob." not in host
    if is_emulator:
        account = account or path
    elif place:
        account, _, domain = host.partition(".blob.")
    meaning = {AZURE_ACCOUNT: account, _AZURE_KEY: parts.get("accountkey", "")}
    meaning |= {_AZURE_SAS: parts.get("sharedaccesssignature", ""), AZURE_DOMAIN: domain}
    meaning |= {AZURE_ENDPOINT: f"{scheme or 'http'}://{host}" if is_emulator else ""}
    if not account:
        raise ConfigError(
            f"The option '{name}' of the store: expected AccountName=… or BlobEndpoint=… in the connection string."
        )
    return {key: text for key, text in meaning.items() if text}


def _google_token(name: str, value: str) -> dict[str, str]:
    """gcsfs's `token`: a word, or the file of a service account's key."""
    return _KEY_FILE(name, value) if value.endswith(".json") else _GOOGLE_TOKENS(name, value)


_ENDPOINT = _Key("fs.s3a.endpoint")
_ACCESS, _SECRET = _Key("fs.s3a.access.key"), _Key("fs.s3a.secret.key")
_SESSION, _REGION = _Key("fs.s3a.session.token"), _Key("fs.s3a.endpoint.region")
_SSL, _PATH_STYLE = "fs.s3a.connection.ssl.enabled", "fs.s3a.path.style.access"
_TIMEOUT = _Key(TIMEOUT)
_S3_ANYBODY = _Flag({S3_PROVIDER: _NOBODY})
_VIRTUAL = _Flag({_PATH_STYLE: "false"}, {_PATH_STYLE: "true"})
_S3: Mapping[str, Word] = {
    "timeout": _TIMEOUT,
    "endpoint": _ENDPOINT,
    "endpoint_url": _ENDPOINT,
    "endpoint_url_s3": _ENDPOINT,
    "endpoint_override": _ENDPOINT,
    "key": _ACCESS,
    "access_key": _ACCESS,
    "access_key_id": _ACCESS,
    "secret": _SECRET,
    "secret_key": _SECRET,
    "secret_access_key": _SECRET,
    "session_token": _SESSION,
    "token": _SESSION,
    "region": _REGION,
    "region_name": _REGION,
    "default_region": _REGION,
    "profile": _Key(PROFILE),
    "profile_name": _Key(PROFILE),
    "anon": _S3_ANYBODY,
    "anonymous": _S3_ANYBODY,
    "skip_signature": _S3_ANYBODY,
    "allow_http": _Flag({_SSL: "false"}, {_SSL: "true"}),
    "use_ssl": _Flag({_SSL: "true"}, {_SSL: "false"}),
    "scheme": _Choice({"http": {_SSL: "false"}, "https": {_SSL: "true"}}),
    "virtual_hosted_style_request": _VIRTUAL,
    "force_virtual_addressing": _VIRTUAL,
    "addressing_style": _Choice({"path": {_PATH_STYLE: "true"}, "virtual": {_PATH_STYLE: "false"}, "auto": {}}),
}
_AZURE: Mapping[str, Word] = {
    "timeout": _TIMEOUT,
    "endpoint": _Key(AZURE_ENDPOINT),
    "endpoint_url": _Key(AZURE_ENDPOINT),
    "account_name": _Key(AZURE_ACCOUNT),
    "account_key": _Key(_AZURE_KEY),
    "access_key": _Key(_AZURE_KEY),
    "master_key": _Key(_AZURE_KEY),
    "connection_string": _connection_string,
    "use_emulator": _Flag(_EMULATOR),
    "use_azure_cli": _Flag(AZURE_CLI),
    "allow_http": _Flag({}),
    "sas_token": _Key(_AZURE_SAS),
    "sas_key": _Key(_AZURE_SAS),
    "client_id": _Key("fs.azure.account.oauth2.client.id"),
    "client_secret": _Key("fs.azure.account.oauth2.client.secret"),
    "tenant_id": _Key(AZURE_TENANT),
    "authority_id": _Key(AZURE_TENANT),
}
_GS_ANYBODY = _Flag({"fs.gs.auth.type": "UNAUTHENTICATED"})
_KEY_FILE = _Key("fs.gs.auth.service.account.json.keyfile")
_GOOGLE_TOKENS = _Choice({"anon": {"fs.gs.auth.type": "UNAUTHENTICATED"}, "google_default": {}})
_GOOGLE: Mapping[str, Word] = {
    "timeout": _TIMEOUT,
    "endpoint": _Key("fs.gs.storage.root.url"),
    "endpoint_url": _Key("fs.gs.storage.root.url"),
    "endpoint_override": _Key("fs.gs.storage.root.url"),
    "base_url": _Key("fs.gs.storage.root.url"),
    "project": _Key("fs.gs.project.id"),
    "project_id": _Key("fs.gs.project.id"),
    "service_account": _KEY_FILE,
    "service_account_path": _KEY_FILE,
    "application_credentials": _KEY_FILE,
    "token": _google_token,
    "allow_http": _Flag({}),
    "anon": _GS_ANYBODY,
    "anonymous": _GS_ANYBODY,
    "skip_signature": _GS_ANYBODY,
}
# Names without a meaning here, and why they can be left out.
NEEDLESS: Mapping[str, str] = {
    "allow_unsafe_rename": "no file is renamed on an object store",
    "locking_provider": "writers take turns by the lock that hoodie.write.lock.provider names",
    "conditional_put": "puts are conditional anyway",
    "copy_if_not_exists": "no object is copied",
    "bucket": "the table's path names the bucket",
    "bucket_name": "the table's path names the bucket",
    "container_name": "the table's path names the container",
}


def words_of(scheme: str) -> Mapping[str, Word]:
    """Return the names for stores of a scheme."""
    return {"abfs": _AZURE, "abfss": _AZURE, "az": _AZURE, "gs": _GOOGLE}.get(scheme, _S3)


def plain_word(name: str) -> str:
    """Return a name in lower case, without its prefix."""
    word = name.strip().lower()
    for prefix in _PREFIXES:
        if word.startswith(prefix):
            return word.removeprefix(prefix)
    return word
