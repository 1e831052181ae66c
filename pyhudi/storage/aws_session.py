"""boto3's session by Hudi's own keys (`hoodie.aws.*`): for Glue, and for the locks in DynamoDB."""

from __future__ import annotations

import importlib
from typing import Any

from pyhudi.errors import ConfigError, StorageError
from pyhudi.model.options.aws import AwsOptions

__all__ = ["aws_session"]


def aws_session(options: AwsOptions, region: str | None, what: str) -> Any:
    """A session with the credentials that the options name, else with those of the environment.

    Args:    what: who needs it, for messages.
    Raises:  ConfigError for one of the two keys without the other, StorageError when the role can't be taken on;
             ImportError without boto3, and errors of botocore.
    """
    if bool(options.access_key) != bool(options.secret_key):
        raise ConfigError(f"{what} needs both of hoodie.aws.access.key and hoodie.aws.secret.key, found one of them.")
    boto, errors = importlib.import_module("boto3.session"), importlib.import_module("botocore.exceptions")
    session = boto.Session(
        aws_access_key_id=options.access_key,
        aws_secret_access_key=options.secret_key,
        aws_session_token=options.session_token,
        region_name=region,
    )
    if not options.role_arn:
        return session
    external = {"ExternalId": options.role_external_id} if options.role_external_id else {}
    try:
        answer = session.client("sts").assume_role(
            RoleArn=options.role_arn, RoleSessionName=options.role_session_name, **external
        )
    except errors.ClientError as error:
        raise StorageError(f"{what}: the role {options.role_arn} can't be taken on: {error}") from error
    credentials = answer["Credentials"]
    return boto.Session(
        aws_access_key_id=credentials["AccessKeyId"],
        aws_secret_access_key=credentials["SecretAccessKey"],
        aws_session_token=credentials["SessionToken"],
        region_name=session.region_name,
    )
