"""The options of a table's store in the words of other libraries, which open the table's path themselves.

    deltalake    as arguments of obstore, which has the same client: aws_access_key_id, azure_storage_account_key, ...
    pyiceberg    as arguments of pyarrow, which its FileIO uses: s3.access-key-id, adls.account-key, ...

The results hold secrets: they belong to calls of these libraries, and nowhere else. A store without options gives none,
so the libraries look where they look by themselves: in the environment, in profiles.
Source: docs/exports.md, "Stores"; deltalake's "Storage backends"; pyiceberg's "FileIO".
"""

from __future__ import annotations

from collections.abc import Mapping

from pyhudi.errors import ConfigError
from pyhudi.storage.base import ClientArguments, Storage
from pyhudi.storage.stores.azure import AzurePlace, azure_arguments, azure_store_arguments
from pyhudi.storage.stores.gcs import gcs_arguments, gcs_store_arguments
from pyhudi.storage.stores.s3 import s3_arguments, s3_store_arguments
from pyhudi.storage.waiting import timeout_s

__all__ = ["deltalake_options", "pyiceberg_properties"]

_S3_SCHEMES = ("s3", "s3a", "s3n")
_AZURE_SCHEMES = ("abfs", "abfss")
_EMULATED_REGION = "us-east-1"  # pyiceberg would ask AWS for the region of a bucket that is elsewhere
_S3_PROPERTIES = {
    "access_key": "s3.access-key-id",
    "secret_key": "s3.secret-access-key",
    "session_token": "s3.session-token",
    "region": "s3.region",
    "anonymous": "s3.anonymous",
    "force_virtual_addressing": "s3.force-virtual-addressing",
}


def deltalake_options(storage: Storage) -> dict[str, str]:
    """`storage_options` of deltalake's calls. Raises ConfigError for options that the store's clients don't take."""
    options, scheme = _options_of(storage), _scheme_of(storage)
    if not options:
        return {}
    if scheme in _S3_SCHEMES:
        prefix, arguments = "aws_", s3_store_arguments(options)
    elif scheme == "gs":
        prefix, arguments = "google_", gcs_store_arguments(options)
    elif scheme in _AZURE_SCHEMES:
        prefix, arguments = "azure_storage_", azure_store_arguments(options, AzurePlace.of(storage.root))
    else:
        return {}
    client = {**arguments.pop("client_options", {}), **_time_limits(options)}
    azure_cli = {f"azure_{name}": value for name, value in arguments.pop("config", {}).items()}
    return _texts({**{f"{prefix}{name}": value for name, value in arguments.items()}, **azure_cli, **client})


def pyiceberg_properties(storage: Storage) -> dict[str, str]:
    """Properties of pyiceberg's FileIO. Raises ConfigError for options that the store's clients don't take."""
    options, scheme = _options_of(storage), _scheme_of(storage)
    if not options:
        return {}
    if scheme in _S3_SCHEMES:
        arguments = s3_arguments(options)
        endpoint = _endpoint(arguments)
        properties = {name: arguments[key] for key, name in _S3_PROPERTIES.items() if key in arguments}
        if endpoint:
            properties = {"s3.region": _EMULATED_REGION, **properties, "s3.endpoint": endpoint}
        limit_s = timeout_s(options)
        if limit_s is not None:
            properties |= {"s3.connect-timeout": limit_s, "s3.request-timeout": limit_s}
        return _texts(properties)
    if scheme == "gs":
        arguments = gcs_arguments(options)
        if arguments.get("anonymous"):
            raise ConfigError(
                f"{storage.root}: pyiceberg has no property for requests to Google's storage without a signature "
                "(fs.gs.auth.type=UNAUTHENTICATED). Nothing was exported. Log in, or export Delta."
            )
        endpoint = _endpoint(arguments)
        return {"gcs.service.host": endpoint} if endpoint else {}
    if scheme in _AZURE_SCHEMES:
        arguments = azure_arguments(options, AzurePlace.of(storage.root))
        return _texts({f"adls.{name.replace('_', '-')}": value for name, value in arguments.items()})
    return {}


def _options_of(storage: Storage) -> Mapping[str, str]:
    """By Hadoop's keys; none for a local storage."""
    return dict(getattr(storage, "_options", ()))


def _scheme_of(storage: Storage) -> str:
    return storage.root.partition("://")[0].lower()


def _endpoint(arguments: ClientArguments) -> str:
    return f"{arguments['scheme']}://{arguments['endpoint_override']}" if "endpoint_override" in arguments else ""


def _time_limits(options: Mapping[str, str]) -> dict[str, str]:
    limit_s = timeout_s(options)
    text = "" if limit_s is None else f"{max(1, round(limit_s * 1000))}ms"
    return dict.fromkeys(("timeout", "connect_timeout", "retry_timeout"), text) if text else {}


def _texts(arguments: Mapping[str, object]) -> dict[str, str]:
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in arguments.items()}
