"""Credentials for AWS, by Hudi's own keys: of Glue, and of the locks in DynamoDB.

Source: Hudi's documented keys (HoodieAWSConfig).
"""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.model.options.declare import option
from pyhudi.model.options.spec import Kind

__all__ = ["AwsOptions"]


@dataclass(frozen=True, slots=True)
class AwsOptions:
    """Unset: the credentials of the environment, as boto3 finds them. `role_arn`: those take this role on."""

    access_key: str | None = option(
        "hoodie.aws.access.key",
        None,
        "Glue, DYNAMODB: id of an access key. Unset: the credentials of the environment.",
        Kind.TEXT,
        secret=True,
    )
    secret_key: str | None = option(
        "hoodie.aws.secret.key", None, "Glue, DYNAMODB: the secret of the access key.", Kind.TEXT, secret=True
    )
    session_token: str | None = option(
        "hoodie.aws.session.token", None, "Glue, DYNAMODB: the token of a temporary access key.", Kind.TEXT, secret=True
    )
    role_arn: str | None = option(
        "hoodie.aws.role.arn", None, "Glue, DYNAMODB: the role that the credentials take on.", Kind.TEXT
    )
    role_session_name: str = option(
        "hoodie.aws.role.session.name", "hoodie", "Glue, DYNAMODB: what that session is called."
    )
    role_external_id: str | None = option(
        "hoodie.aws.role.external.id", None, "Glue, DYNAMODB: the external id that the role asks for.", Kind.TEXT
    )
