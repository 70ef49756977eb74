"""Errors that a server sends in place of an event of its binlog."""

from __future__ import annotations

from collections.abc import Mapping

from cdc_lib.binlog.framing.damaged_file import next_file, restore_or_continue
from cdc_lib.binlog.framing.event_types import is_no_file
from cdc_lib.errors import AnonymousNotSent, PositionNotFound, SourceError, SourceUnavailable

ErrorContext = Mapping[str, str | int]

_INTERRUPTED = {1053, 1317, 1927, 3169}
"""ER_SERVER_SHUTDOWN, ER_QUERY_INTERRUPTED, MariaDB's ER_CONNECTION_KILLED, MySQL's ER_SESSION_WAS_KILLED."""

_NO_EVENT = (
    "bogus data",
    "corrupted data",
    "crc check",
    "max_allowed_packet",
    "position",
    "reading log event",
    "truncated",
)
"""In the texts of both servers about a place in a file where they find no event."""

_NO_FILE = (
    "Where the file was purged, cdc step plan {source} says how to continue. Where the server lists it all the same, it is missing on its disk: "
    "put it back from a backup, or PURGE BINARY LOGS TO the file after it."
)
"""Of a file that the server cannot find or open."""


def refusal(payload: bytes, context: ErrorContext) -> SourceError:
    """Return the error for one that the server sent.

    Args:
        payload: its number, two bytes, and its text.
        context: of the error; with ``source``.
    """
    number, text = number_and_text(payload)
    if is_anonymous(text):
        return AnonymousNotSent(
            "the server does not send transactions without GTIDs while its gtid_mode is ON",
            hint="SET GLOBAL gtid_mode = 'ON_PERMISSIVE'; on the server. Set it back to ON when cdc status shows that the source has "
            "read them.",
            **context,
        )
    message = f"the server refused to send the binlog: {text} (error {number})"
    if "same server_uuid/server_id" in text:  # by which both flavors end the older of two dumps
        hint = (
            "Another attempt at this window has taken its context, or another replica has the same number: then set "
            "server.server_id. The task can be tried again."
        )
        return SourceUnavailable(message, hint=hint, **context)
    if number in _INTERRUPTED:
        return SourceUnavailable(message, hint="The task can be tried again.", **context)
    if any(words in text for words in _NO_EVENT):
        way_out = restore_or_continue(context.get("source", "{source}"), next_file(str(context["file"])))
        hint = f"Its file is damaged, or the server was reverted to an earlier state. {way_out}"
        return PositionNotFound(message, hint=hint, **context)
    hint = _NO_FILE.format(source=context.get("source", "SOURCE")) if is_no_file(number, text) else ""
    return SourceError(message, hint=hint, **context)


def number_and_text(payload: bytes) -> tuple[int, str]:
    """Return the number of an error and its text without the SQL state."""
    text = payload[2:].decode("utf-8", "replace").removeprefix("#HY000")
    return int.from_bytes(payload[:2], "little"), text


def is_anonymous(text: str) -> bool:
    """Whether MySQL refuses to send a transaction without a GTID (ER_CANT_REPLICATE_ANONYMOUS_WITH_GTID_MODE_ON in its text)."""
    return "Cannot replicate anonymous transaction" in text
