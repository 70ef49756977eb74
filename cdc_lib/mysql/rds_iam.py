"""Log-in tokens of Amazon RDS and Aurora (IAM database authentication): signed on this machine, and valid for fifteen minutes."""

from __future__ import annotations

import functools
from typing import Any

import boto3.session
from botocore.exceptions import BotoCoreError, ClientError

from cdc_lib.config.server import ServerConfig
from cdc_lib.errors import ConfigError


def login_token(server: ServerConfig, region: str, user: str) -> str:
    """Return a new token, which serves as the password of one log-in.

    Args:
        server: whose ``host`` and ``port`` are those of the database instance: the token is for them alone.
        region: of the instance.
        user: of the database.

    Raises:
        ConfigError: this process has no AWS credentials.
    """
    try:
        token: str = _client(region).generate_db_auth_token(DBHostname=server.host, Port=server.port, DBUsername=user)
    except (BotoCoreError, ClientError) as error:
        raise ConfigError(
            f"no log-in token for {server.host}:{server.port} can be made: {error}",
            hint="Give this process AWS credentials whose role allows rds-db:connect, or correct server.rds_iam.region.",
            host=server.host,
            port=server.port,
        ) from error
    return token


@functools.cache
def _client(region: str) -> Any:
    """Return the client of a region; it takes the AWS credentials of this process, and renews temporary ones."""
    return boto3.session.Session().client("rds", region_name=region)
