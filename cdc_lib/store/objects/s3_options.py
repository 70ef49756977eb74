"""How to reach a bucket."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class S3Options:
    """How to reach a bucket.

    Args:
        endpoint_url: URL of a server that is not Amazon's.
        region: the bucket's region; None uses the AWS configuration.
        access_key: None uses the AWS credential chain.
        secret_key: secret of the access key; never shown.
        ca: file with the authorities to trust; None trusts the system's.
        path_style: bucket in the path, not in the host name.
        connect_timeout: seconds.
        read_timeout: seconds without a byte.
        session_token: of temporary keys; never shown.
        attempts: maximum number of attempts for one request.
    """

    endpoint_url: str | None = None
    region: str | None = None
    access_key: str | None = None
    secret_key: str | None = field(default=None, repr=False)
    ca: Path | None = None
    path_style: bool = True
    connect_timeout: float = 10
    read_timeout: float = 60
    attempts: int = 5
    session_token: str | None = field(default=None, repr=False)
