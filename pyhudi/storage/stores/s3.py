"""S3: Hadoop's keys (`fs.s3a.*`) as arguments of the two clients, pyarrow's S3FileSystem and obstore's S3Store."""

from __future__ import annotations

import configparser
import os
from collections.abc import Mapping

from pyhudi.errors import ConfigError
from pyhudi.redaction import quoted
from pyhudi.storage.base import ClientArguments
from pyhudi.storage.stores.words import PROFILE, S3_PROVIDER

__all__ = ["s3_arguments", "s3_store_arguments"]

_PROFILE_KEYS = {
    "access_key": "aws_access_key_id",
    "secret_key": "aws_secret_access_key",
    "session_token": "aws_session_token",
}
_STORE_NAMES = {"access_key": "access_key_id", "secret_key": "secret_access_key"}


def s3_arguments(options: Mapping[str, str]) -> ClientArguments:
    """Return arguments of pyarrow's S3FileSystem."""
    endpoint = options.get("fs.s3a.endpoint")
    arguments: ClientArguments = {
        "access_key": options.get("fs.s3a.access.key"),
        "secret_key": options.get("fs.s3a.secret.key"),
        "session_token": options.get("fs.s3a.session.token"),
        "region": options.get("fs.s3a.endpoint.region"),
    }
    if _is_anonymous(options):
        arguments = {"anonymous": True, "region": arguments["region"]}
    elif arguments["access_key"] is None and arguments["secret_key"] is None:
        arguments |= _of_profile(options, has_region=arguments["region"] is not None)
    if endpoint:
        scheme, separator, host = endpoint.rpartition("://")
        secure = options.get("fs.s3a.connection.ssl.enabled", "true").lower() == "true"
        arguments["endpoint_override"] = host
        arguments["scheme"] = scheme if separator else ("https" if secure else "http")
        arguments["force_virtual_addressing"] = options.get("fs.s3a.path.style.access", "true").lower() == "false"
    return {name: value for name, value in arguments.items() if value is not None}


def s3_store_arguments(options: Mapping[str, str]) -> ClientArguments:
    """Return arguments of obstore's S3Store."""
    settings = s3_arguments(options)
    names = ("access_key", "secret_key", "session_token", "region")
    arguments: ClientArguments = {_STORE_NAMES.get(name, name): settings[name] for name in names if name in settings}
    if settings.get("anonymous"):
        arguments["skip_signature"] = True
    if "endpoint_override" in settings:
        arguments["endpoint"] = f"{settings['scheme']}://{settings['endpoint_override']}"
        arguments["virtual_hosted_style_request"] = settings["force_virtual_addressing"]
        if settings["scheme"] == "http":
            arguments["client_options"] = {"allow_http": True}
    return arguments


def _is_anonymous(options: Mapping[str, str]) -> bool:
    """True if the options name Hadoop's anonymous provider. Its other providers search as the clients do by default."""
    anonymous = "Anonymous" in options.get(S3_PROVIDER, "")
    if anonymous and options.get("fs.s3a.access.key"):
        raise ConfigError(
            "The options of the store ask for requests without a signature (anon, skip_signature, "
            f"{S3_PROVIDER}), and give an access key. Keep one of them."
        )
    return anonymous


def _of_profile(options: Mapping[str, str], *, has_region: bool) -> ClientArguments:
    """Return keys and region of a profile in ~/.aws, which the client that writes does not read by itself.

    Without an option that names a profile, the environment's keys come first, as in AWS's own tools. Profiles that get
    their keys from a role, a login or a program are left to the clients.
    """
    named = options.get(PROFILE)
    if named is None and os.environ.get("AWS_ACCESS_KEY_ID"):
        return {}
    name = named or os.environ.get("AWS_PROFILE") or os.environ.get("AWS_DEFAULT_PROFILE") or "default"
    profile = {
        **_section("AWS_CONFIG_FILE", "config", name),
        **_section("AWS_SHARED_CREDENTIALS_FILE", "credentials", name),
    }
    if named is not None and not profile:
        raise ConfigError(f"There is no profile '{quoted(named)}' in ~/.aws/credentials or ~/.aws/config.")
    keys = {argument: profile.get(word) for argument, word in _PROFILE_KEYS.items()}
    if not (keys["access_key"] and keys["secret_key"]):
        keys = {}
    has_region = has_region or bool(os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION"))
    return {**keys, **({} if has_region else {"region": profile.get("region")})}


def _section(variable: str, file: str, name: str) -> dict[str, str]:
    path = os.environ.get(variable) or os.path.join(os.path.expanduser("~"), ".aws", file)
    parser = configparser.RawConfigParser()
    try:
        parser.read(path, encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError):
        return {}
    title = next((title for title in (name, f"profile {name}") if parser.has_section(title)), None)
    return {} if title is None else dict(parser.items(title))
