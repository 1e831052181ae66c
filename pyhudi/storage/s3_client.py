"""S3: Hadoop's keys (`fs.s3a.*`) as arguments of the two clients, pyarrow's S3FileSystem and obstore's S3Store."""

from __future__ import annotations

from collections.abc import Mapping

from pyhudi.storage.base import ClientArguments

__all__ = ["s3_arguments", "s3_store_arguments"]

_STORE_NAMES = {"access_key": "access_key_id", "secret_key": "secret_access_key"}


def s3_arguments(options: Mapping[str, str]) -> ClientArguments:
    """Arguments of pyarrow's S3FileSystem."""
    endpoint = options.get("fs.s3a.endpoint")
    arguments: ClientArguments = {
        "access_key": options.get("fs.s3a.access.key"),
        "secret_key": options.get("fs.s3a.secret.key"),
        "session_token": options.get("fs.s3a.session.token"),
        "region": options.get("fs.s3a.endpoint.region"),
    }
    if endpoint:
        scheme, separator, host = endpoint.rpartition("://")
        secure = options.get("fs.s3a.connection.ssl.enabled", "true").lower() == "true"
        arguments["endpoint_override"] = host
        arguments["scheme"] = scheme if separator else ("https" if secure else "http")
        arguments["force_virtual_addressing"] = options.get("fs.s3a.path.style.access", "true").lower() == "false"
    return {name: value for name, value in arguments.items() if value is not None}


def s3_store_arguments(options: Mapping[str, str]) -> ClientArguments:
    """Arguments of obstore's S3Store."""
    settings = s3_arguments(options)
    names = ("access_key", "secret_key", "session_token", "region")
    arguments: ClientArguments = {_STORE_NAMES.get(name, name): settings[name] for name in names if name in settings}
    if "endpoint_override" in settings:
        arguments["endpoint"] = f"{settings['scheme']}://{settings['endpoint_override']}"
        arguments["virtual_hosted_style_request"] = settings["force_virtual_addressing"]
        if settings["scheme"] == "http":
            arguments["client_options"] = {"allow_http": True}
    return arguments
