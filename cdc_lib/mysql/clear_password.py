"""Methods of log-in that show the server the password itself: only a server that is known may ask for them.

The driver sends the password to any server that asks, also without TLS: anybody between would have it. TLS alone does not help where
the certificate is not checked, and neither does an RSA key that the server itself sends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pymysql
from pymysql.connections import Connection
from pymysql.constants import CR

from cdc_lib.mysql.pymysql_private import log_in_caching_sha2, log_in_sha256, may_use_public_key, send_scramble

_FAST, _FULL = b"\x01\x03", b"\x01\x04"
"""Answers of ``caching_sha2_password`` to the scramble: the server has the password in its cache, or wants all of it."""


class PasswordWithheld(pymysql.OperationalError):
    """The server asked for the password itself, and is not known."""

    def __init__(self) -> None:
        super().__init__(
            CR.CR_AUTH_PLUGIN_CANNOT_LOAD, "the server asks for the password itself, and its certificate is not checked"
        )


class _Refusal:
    """Ends the log-in; the driver makes one for each request."""

    def __init__(self, connection: Connection[Any]) -> None:
        self._connection = connection

    def authenticate(self, _packet: Any) -> Any:
        """Refuse.

        Raises:
            PasswordWithheld: always.
        """
        raise PasswordWithheld


class _OldPassword(_Refusal):
    """``mysql_old_password``, of MySQL before 4.1; the driver has no such method."""

    def authenticate(self, _packet: Any) -> Any:
        """Refuse.

        Raises:
            pymysql.InternalError: always.
        """
        raise pymysql.InternalError("it asks for the password as MySQL before 4.1 did")


class _Sha256(_Refusal):
    """``sha256_password``: it knows no scramble, so only a key that the source file names hides the password."""

    def authenticate(self, packet: Any) -> Any:
        """Send the password for that key, and take none that the server sends.

        Raises:
            PasswordWithheld: the file names none, or the session is encrypted: the server then takes no key.
        """
        if not may_use_public_key(self._connection) or not packet.is_auth_switch_request():
            raise PasswordWithheld
        return log_in_sha256(self._connection, packet)


class _CachingSha2(_Refusal):
    """``caching_sha2_password``: the scramble, by which a server with the password in its cache knows the user."""

    def authenticate(self, packet: Any) -> Any:
        """Send the scramble, and the password itself only for a key that the source file names.

        Raises:
            PasswordWithheld: the server asks for more.
        """
        if packet.is_auth_switch_request():
            packet = send_scramble(self._connection, packet)
        answer = packet.get_all_data()
        if packet.is_ok_packet():
            return packet  # a user without a password
        if answer == _FAST or (answer == _FULL and may_use_public_key(self._connection)):
            return log_in_caching_sha2(self._connection, packet)
        raise PasswordWithheld


Methods: TypeAlias = "dict[str, Callable[[Connection[Any]], Any]]"
"""What the driver makes an object of to log in, by the name of the method."""

TO_ANY: Methods = {"mysql_old_password": _OldPassword}
"""What the driver calls for methods that no server gets."""

NOT_TO_STRANGERS: Methods = TO_ANY | {"mysql_clear_password": _Refusal, "dialog": _Refusal}
"""What the driver calls for these methods if the server's certificate is not checked; ``dialog`` is that of PAM."""

ONLY_SCRAMBLED: Methods = NOT_TO_STRANGERS | {
    "mysql_old_password": _Refusal,  # its scramble gives the password away
    "sha256_password": _Sha256,
    "caching_sha2_password": _CachingSha2,
}
"""The same if the line is not known either."""
