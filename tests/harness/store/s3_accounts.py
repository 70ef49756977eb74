"""Accounts of an S3 server that may use one folder of a bucket each, as the policy of a bucket that several teams share says."""

from __future__ import annotations

import json
import secrets
import subprocess
from dataclasses import dataclass, field

from tests.harness.servers.s3 import S3Server, versitygw


@dataclass(frozen=True, slots=True)
class Account:
    """Keys of an account.

    Args:
        folder: the only one that it may read and write.
        access_key: of the account.
        secret_key: of the account.
    """

    folder: str
    access_key: str
    secret_key: str = field(repr=False)


def share_bucket(server: S3Server, bucket: str, *folders: str) -> list[Account]:
    """Make an account for each folder of a bucket; each may list the bucket, and use the objects of its own folder alone."""
    accounts = [Account(folder, f"{folder}{secrets.token_hex(6)}", secrets.token_hex(20)) for folder in folders]
    statements = []
    for one in accounts:
        _make(server, one)
        principal, name = {"AWS": [one.access_key]}, f"arn:aws:s3:::{bucket}"
        listing = ["s3:ListBucket", "s3:GetBucketLocation", "s3:ListBucketMultipartUploads"]
        for actions, resource in ((["s3:*"], f"{name}/{one.folder}/*"), (listing, name)):
            statements.append({"Effect": "Allow", "Principal": principal, "Action": actions, "Resource": [resource]})
    policy = {"Version": "2012-10-17", "Statement": statements}
    server.client().put_bucket_policy(Bucket=bucket, Policy=json.dumps(policy))
    return accounts


def _make(server: S3Server, account: Account) -> None:
    admin = ["--access", server.access_key, "--secret", server.secret_key, "--endpoint-url", server.endpoint]
    user = ["--access", account.access_key, "--secret", account.secret_key, "--role", "user"]
    subprocess.run([str(versitygw()), "admin", *admin, "create-user", *user], check=True, capture_output=True)
