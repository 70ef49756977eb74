"""Which server a position belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Flavor = Literal["mysql", "mariadb"]


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """Identifies a server, also if several servers use one address.

    Args:
        flavor: ``mysql`` or ``mariadb``.
        server_uuid: MySQL's ``@@server_uuid``; empty on MariaDB, which has none.
        server_id: ``@@server_id``.
        gtid_domain: MariaDB's ``@@gtid_domain_id``; 0 on MySQL.
        host: address used to reach it; kept for people, not compared.
        port: TCP port used to reach it; kept for people, not compared.
    """

    flavor: Flavor
    server_uuid: str
    server_id: int
    gtid_domain: int = 0
    host: str = ""
    port: int = 3306

    def is_same_server(self, other: ServerIdentity) -> bool:
        """Whether positions of one can be used on the other."""
        if self.flavor != other.flavor:
            return False
        if self.flavor == "mysql":
            return self.server_uuid == other.server_uuid
        return (self.server_id, self.gtid_domain) == (other.server_id, other.gtid_domain)

    def __str__(self) -> str:
        """Short text for messages."""
        name = self.server_uuid or f"server_id {self.server_id}, domain {self.gtid_domain}"
        return f"{self.flavor} {name} at {self.host}:{self.port}"
