"""How to reach a container of Azure Blob Storage."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class AzureOptions:
    """How to reach a container of Azure Blob Storage.

    Args:
        endpoint_url: URL of a server that is not Azure's; the account is the first part of its paths. None is Azure.
        secret: an account key, a SAS token or a connection string; None uses DefaultAzureCredential; never shown.
        ca: file with the authorities to trust; None for those of the client.
        connect_timeout: seconds.
        read_timeout: seconds without a byte.
        patience: seconds after which a request is not tried again.
    """

    endpoint_url: str | None = None
    secret: str | None = field(default=None, repr=False)
    ca: Path | None = None
    connect_timeout: float = 10
    read_timeout: float = 60
    patience: float = 60
