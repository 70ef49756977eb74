"""Texts in the character sets of the server, as it makes them itself."""

from __future__ import annotations

from dataclasses import dataclass

import pymysql

from cdc_lib.errors import SourceError
from cdc_lib.mysql.connection import Session
from cdc_lib.mysql.server_facts import rows_of


@dataclass(frozen=True, slots=True)
class Encoder:
    """Lets a server encode texts.

    Args:
        connection: a session on it.
    """

    connection: Session

    def encoded(self, text: str, charset: str) -> bytes | None:
        """Return the bytes of a text in a character set; None where it has no such text.

        Raises:
            SourceError: the server refuses, or the connection broke.
        """
        plain = text.encode()
        own = f"CONVERT(_utf8mb4 X'{plain.hex()}' USING {charset})"
        try:
            ((found, back),) = rows_of(self.connection, f"SELECT HEX({own}), HEX(CONVERT({own} USING utf8mb4))")
        except pymysql.MySQLError as error:
            raise SourceError(f"a key cannot be brought into the character set {charset}: {error}") from error
        return bytes.fromhex(str(found)) if bytes.fromhex(str(back)) == plain else None
