"""How to reach a bucket."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class S3Options:
    """How to reach a bucket.

    Args:
        endpoint_url: address of a server that is not Amazon's.
        region: the bucket's region; None looks where AWS clients look.
        access_key: None looks for credentials where AWS clients look.
        secret_key: goes with the access key; never shown.
        path_style: bucket in the path, not in the host name.
        connect_timeout: seconds.
        read_timeout: seconds without a byte.
        attempts: how often one request is made at most.
    """

    endpoint_url: str | None = None
    region: str | None = None
    access_key: str | None = None
    secret_key: str | None = field(default=None, repr=False)
    path_style: bool = True
    connect_timeout: float = 10
    read_timeout: float = 60
    attempts: int = 5
