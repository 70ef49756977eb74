"""The grants of the setup guide, and a user who has them and no other."""

from __future__ import annotations

import re

from tests.harness.docs.pages import ROOT, blocks
from tests.harness.servers import SqlServer

USER, PASSWORD = "least", "l3ast-of-all"


def documented(flavor: str) -> list[str]:
    """Return the privileges that docs/guides/mysql-setup.md grants on a server of a flavor."""
    page = (ROOT / "docs" / "guides" / "mysql-setup.md").read_text()
    block = blocks(page, "sql")[("mysql", "mariadb").index(flavor)]
    granted = re.findall(r"^GRANT (.+) ON \*\.\* TO cdc@'%';", block, re.MULTILINE)
    return [privilege.strip() for line in granted for privilege in line.split(",")]


def make_user(server: SqlServer, privileges: list[str], database: str | None = None) -> None:
    """Create the user.

    Args:
        server: where.
        privileges: of the guide.
        database: if given, SELECT is granted on it alone.
    """
    server.execute(f"CREATE USER {USER}@'%' IDENTIFIED BY '{PASSWORD}'")
    for privilege in privileges:
        where = f"`{database}`.*" if database and privilege == "SELECT" else "*.*"
        server.execute(f"GRANT {privilege} ON {where} TO {USER}@'%'")
