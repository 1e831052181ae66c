"""Azure: Hadoop's keys (`fs.azure.*`) as arguments of pyarrow's AzureFileSystem and obstore's AzureStore.

    abfs[s]://<container>@<account>.dfs.core.windows.net/<path>
    abfs[s]://<container>/<path>, az://<container>/<path>       an option or the environment names the account

A key may end with the account's host, as in `fs.azure.account.key.<account>.dfs.core.windows.net`, or omit it.
Without any key pyarrow takes a service principal, workload or managed identity, or the login of `az`; obstore takes
that login only when it is told to (`use_azure_cli`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from pyhudi.errors import ConfigError
from pyhudi.storage.base import ClientArguments
from pyhudi.storage.stores.words import AZURE_ACCOUNT, AZURE_CLI, AZURE_DOMAIN, AZURE_ENDPOINT, AZURE_TENANT

__all__ = ["AzurePlace", "azure_arguments", "azure_store_arguments", "deletes_many_at_once", "with_account"]

_PUBLIC_CLOUD = "core.windows.net"
_ACCOUNT_VARIABLE = "AZURE_STORAGE_ACCOUNT_NAME"
_AUTH_TYPE = "fs.azure.account.auth.type"
_KEY, _SAS = "fs.azure.account.key", "fs.azure.sas.fixed.token"
# Further variables of Azure's tools and obstore, which pyarrow does not read.
_KEY_VARIABLES = ("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_KEY")
_SAS_VARIABLES = ("AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_SAS_KEY")


@dataclass(frozen=True, slots=True)
class AzurePlace:
    """A folder of a container. `domain`: the cloud's, `core.windows.net` for the public one."""

    container: str
    account: str
    domain: str
    host: str
    path: str
    is_secure: bool  # by the scheme

    @classmethod
    def of(cls, uri: str) -> AzurePlace:
        """Parse a URI. Raises ConfigError without a container or account."""
        scheme, _, rest = uri.partition("://")
        container_and_host, _, path = rest.partition("/")
        container, _, host = container_and_host.rpartition("@")
        account, _, suffix = host.partition(".")
        service, _, domain = suffix.partition(".")
        if not container or not account or service not in ("dfs", "blob") or not domain:
            raise ConfigError(f"{uri!r}: expected {scheme}://container@account.dfs.core.windows.net/path.")
        return cls(container, account, domain, host, path.strip("/"), scheme == "abfss")


def with_account(uri: str, options: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Return the URI in Hadoop's form, which names the account, and the options without account and domain.

    Raises: ConfigError if nothing names the account, or an option names another one.
    """
    scheme, _, rest = uri.partition("://")
    container, _, path = rest.partition("/")
    remaining = dict(options)
    account, domain = remaining.pop(AZURE_ACCOUNT, None), remaining.pop(AZURE_DOMAIN, _PUBLIC_CLOUD)
    if "@" in container or "." in container:  # a container's name has no dots, a host has
        place = AzurePlace.of(f"abfss://{rest}" if scheme == "az" else uri)
        if account not in (None, place.account):
            raise ConfigError(f"{uri!r} names another account than the option account_name, {account!r}. Keep one.")
        account, uri = place.account, f"abfss://{rest}" if scheme == "az" else uri
    else:
        account = account or os.environ.get(_ACCOUNT_VARIABLE)
        if not account:
            raise ConfigError(
                f"{uri!r} names no account. Give the option account_name, or write "
                f"abfss://{container}@account.dfs.core.windows.net/{path}."
            )
        uri = f"{'abfss' if scheme == 'az' else scheme}://{container}@{account}.dfs.{domain}/{path}"
    if endpoint := remaining.get(AZURE_ENDPOINT):
        remaining[AZURE_ENDPOINT] = endpoint.rstrip("/").removesuffix(f"/{account}")
    return uri, remaining


def azure_arguments(options: Mapping[str, str], place: AzurePlace) -> ClientArguments:
    """Return arguments of pyarrow's AzureFileSystem."""
    arguments: ClientArguments = {"account_name": place.account, **_credentials(options, place)}
    if "sas_token" in arguments:
        arguments["sas_token"] = f"?{arguments['sas_token']}"
    endpoint = _endpoint(options, place)
    if endpoint is not None:
        scheme, authority = endpoint
        arguments |= {f"{service}_storage_authority": authority for service in ("blob", "dfs")}
        arguments |= {f"{service}_storage_scheme": scheme for service in ("blob", "dfs")}
    elif place.domain != _PUBLIC_CLOUD:
        arguments |= {f"{service}_storage_authority": f".{service}.{place.domain}" for service in ("blob", "dfs")}
    return arguments


def azure_store_arguments(options: Mapping[str, str], place: AzurePlace) -> ClientArguments:
    """Return arguments of obstore's AzureStore."""
    arguments: ClientArguments = {"account_name": place.account, **_credentials(options, place)}
    if "sas_token" in arguments:
        arguments["sas_key"] = arguments.pop("sas_token")
    if _logs_in_by_cli(options, place):
        arguments["config"] = {"use_azure_cli": True}
    endpoint = _endpoint(options, place)
    if endpoint is not None:
        scheme, authority = endpoint
        arguments["endpoint"] = f"{scheme}://{authority}/{place.account}"
        if scheme == "http":
            arguments["client_options"] = {"allow_http": True}
    elif place.domain != _PUBLIC_CLOUD:
        arguments["endpoint"] = f"https://{place.account}.blob.{place.domain}"
    return arguments


def deletes_many_at_once(options: Mapping[str, str], place: AzurePlace) -> bool:
    """True if batch deletes are sure to work: Azure reliably accepts their signature only with the account's key."""
    return "account_key" in _credentials(options, place)


def _endpoint(options: Mapping[str, str], place: AzurePlace) -> tuple[str, str] | None:
    """Return the scheme and authority of an emulator, None for Azure itself."""
    endpoint = options.get(AZURE_ENDPOINT)
    if not endpoint:
        return None
    scheme, separator, authority = endpoint.rstrip("/").rpartition("://")
    if separator:
        return scheme, authority
    is_plain = not place.is_secure and options.get("fs.azure.always.use.https", "true").lower() == "false"
    return "http" if is_plain else "https", authority


def _setting(options: Mapping[str, str], place: AzurePlace, key: str) -> str | None:
    return options.get(f"{key}.{place.host}") or options.get(key)


def _logs_in_by_cli(options: Mapping[str, str], place: AzurePlace) -> bool:
    """True if the login of `az` is the credential."""
    return _setting(options, place, _AUTH_TYPE) == AZURE_CLI[_AUTH_TYPE]


def _credentials(options: Mapping[str, str], place: AzurePlace) -> dict[str, str]:
    """Return credentials as pyarrow's arguments. Raises ConfigError for authentication that needs Hadoop's classes."""

    def setting(key: str) -> str | None:
        return _setting(options, place, key)

    if _logs_in_by_cli(options, place):
        return {}
    kind = (setting(_AUTH_TYPE) or "").lower()
    if kind not in ("", "sharedkey", "sas", "oauth"):
        raise ConfigError(
            f"fs.azure.account.auth.type={kind} needs a class of Hadoop's. Without Hadoop one can log in with "
            f"SharedKey, SAS, OAuth or AzureCLI."
        )
    if kind == "oauth" or (not kind and setting("fs.azure.account.oauth2.client.id")):
        return _service_principal(
            setting("fs.azure.account.oauth2.client.id"),
            setting("fs.azure.account.oauth2.client.secret"),
            setting("fs.azure.account.oauth2.client.endpoint"),
            setting(AZURE_TENANT),
        )
    key, sas = setting(_KEY), setting(_SAS)
    if key and kind != "sas":  # as in Hadoop, where SharedKey is the default
        return {"account_key": key}
    return {"sas_token": sas.removeprefix("?")} if sas and kind != "sharedkey" else _of_environment()


def _service_principal(
    client: str | None, secret: str | None, endpoint: str | None, tenant: str | None
) -> dict[str, str]:
    """Return a service principal; without a secret, a managed identity; without a client id, nothing."""
    if not client or not secret:
        return {"client_id": client} if client else {}
    # https://login.microsoftonline.com/<tenant>/oauth2/token
    tenant = tenant or (endpoint or "").partition("://")[2].partition("/")[2].partition("/")[0]
    if not tenant:
        raise ConfigError(
            "fs.azure.account.oauth2.client.endpoint: expected https://login.microsoftonline.com/<tenant>/oauth2/token "
            f"with the client's id and secret, found {endpoint!r}."
        )
    return {"client_id": client, "client_secret": secret, "tenant_id": tenant}


def _of_environment() -> dict[str, str]:
    for argument, names in (("account_key", _KEY_VARIABLES), ("sas_token", _SAS_VARIABLES)):
        for name in names:
            if value := os.environ.get(name):
                return {argument: value.removeprefix("?")}
    return {}
