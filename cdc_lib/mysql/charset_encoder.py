"""Text encoded in the server's character sets, by the server itself."""

from __future__ import annotations

from dataclasses import dataclass

import pymysql

from cdc_lib.errors import SourceError
from cdc_lib.mysql.connection import Session
from cdc_lib.mysql.statements import rows_of


@dataclass(frozen=True, slots=True)
class Encoder:
    """Encodes text on the server.

    Args:
        connection: a session on it.
    """

    connection: Session

    def encoded(self, text: str, charset: str) -> bytes | None:
        """Return the bytes of a text in a character set; None if the character set cannot represent it.

        Raises:
            SourceError: the server refuses, or the connection broke.
        """
        plain = text.encode()
        converted = f"CONVERT(_utf8mb4 X'{plain.hex()}' USING {charset})"
        try:
            ((encoded, decoded),) = rows_of(
                self.connection, f"SELECT HEX({converted}), HEX(CONVERT({converted} USING utf8mb4))"
            )
        except pymysql.MySQLError as error:
            raise SourceError(f"a key cannot be converted to the character set {charset}: {error}") from error
        return bytes.fromhex(str(encoded)) if bytes.fromhex(str(decoded)) == plain else None
