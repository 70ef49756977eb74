"""How to reach a bucket of Google Cloud Storage."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class GcsOptions:
    """How to reach a bucket of Google Cloud Storage.

    Args:
        endpoint_url: URL of a server that is not Google's; one at ``http:`` gets no credentials unless there is a key.
        key: JSON key of a service account; None uses the application default credentials; never shown.
        connect_timeout: seconds.
        read_timeout: seconds without a byte.
        patience: seconds after which a request is not tried again.
    """

    endpoint_url: str | None = None
    key: str | None = field(default=None, repr=False)
    connect_timeout: float = 10
    read_timeout: float = 60
    patience: float = 60
