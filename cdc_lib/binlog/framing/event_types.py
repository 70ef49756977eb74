"""Names and numbers of binlog event types, and what the drain does with each.

Numbers: MySQL ``libs/mysql/binlog/event/binlog_event.h`` and MariaDB ``sql/log_event.h``.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from cdc_lib.binlog.framing.packets import ASK, LOOK, PASS, REFUSE

QUERY: Final = 2
STOP: Final = 3
ROTATE: Final = 4
FORMAT_DESCRIPTION: Final = 15
XID: Final = 16
EXECUTE_LOAD_QUERY: Final = 18
TABLE_MAP: Final = 19
WRITE_ROWS_V1: Final = 23
UPDATE_ROWS_V1: Final = 24
DELETE_ROWS_V1: Final = 25
INCIDENT: Final = 26
HEARTBEAT: Final = 27
WRITE_ROWS: Final = 30
UPDATE_ROWS: Final = 31
DELETE_ROWS: Final = 32
GTID: Final = 33
ANONYMOUS_GTID: Final = 34
PREVIOUS_GTIDS: Final = 35
XA_PREPARE: Final = 38
PARTIAL_UPDATE_ROWS: Final = 39
TRANSACTION_PAYLOAD: Final = 40
HEARTBEAT_V2: Final = 41
GTID_TAGGED: Final = 42
ANNOTATE_ROWS: Final = 160
MARIADB_GTID: Final = 162
GTID_LIST: Final = 163
START_ENCRYPTION: Final = 164
QUERY_COMPRESSED: Final = 165

ROWS: Final = (*range(23, 26), *range(30, 33), PARTIAL_UPDATE_ROWS, *range(166, 172))
"""Row events: insert, update, delete of both versions, the update that may hold differences of JSON documents, and the
compressed ones of MariaDB."""

ARTIFICIAL: Final = 0x20
"""Header flag of an artificial event: the server made it for the stream, it is not in the file."""

IGNORABLE: Final = 0x80
"""Header flag of an event that a reader may ignore if it does not know its type."""

EE_FILENOTFOUND: Final = 29
"""MariaDB's error for a missing file; all other dump errors are ER_MASTER_FATAL_ERROR_READING_BINLOG (1236)."""

PASSED_OVER: Final = (
    5,  # INTVAR, before a statement that is handled itself; RAND and USER_VAR too
    9,  # APPEND_BLOCK, a part of the file of a LOAD DATA
    11,  # DELETE_FILE, of a LOAD DATA that failed
    13,  # RAND
    14,  # USER_VAR
    17,  # BEGIN_LOAD_QUERY, the first part of the file of a LOAD DATA
    HEARTBEAT,
    28,  # IGNORABLE
    29,  # ROWS_QUERY, the statement after the rows
    36,  # TRANSACTION_CONTEXT of group replication
    37,  # VIEW_CHANGE of group replication
    HEARTBEAT_V2,
    161,  # MariaDB BINLOG_CHECKPOINT
    START_ENCRYPTION,  # the server sends the events after it decrypted
)
"""Types without information about rows, schemas or transaction boundaries."""

LOOKED_AT: Final = (QUERY, XID, TABLE_MAP, GTID, ANONYMOUS_GTID, GTID_TAGGED, ANNOTATE_ROWS, MARIADB_GTID, *ROWS)
"""Types that the kernels handle; they pass only unusual ones to Python."""

NEVER_IGNORED: Final = (INCIDENT,)
"""Types that stop the window even if flagged as ignorable: they are never harmless."""

_NOT_INSIDE: Final = (
    *(STOP, ROTATE, FORMAT_DESCRIPTION, INCIDENT, HEARTBEAT, HEARTBEAT_V2),
    *(GTID, ANONYMOUS_GTID, GTID_TAGGED, MARIADB_GTID, TRANSACTION_PAYLOAD, PREVIOUS_GTIDS),
)
"""Types that are not valid inside a compressed transaction."""

NAMES: Final[dict[int, str]] = {
    1: "START_V3",
    2: "QUERY",
    3: "STOP",
    4: "ROTATE",
    5: "INTVAR",
    6: "LOAD",
    7: "SLAVE",
    8: "CREATE_FILE",
    9: "APPEND_BLOCK",
    10: "EXEC_LOAD",
    11: "DELETE_FILE",
    12: "NEW_LOAD",
    13: "RAND",
    14: "USER_VAR",
    15: "FORMAT_DESCRIPTION",
    16: "XID",
    17: "BEGIN_LOAD_QUERY",
    18: "EXECUTE_LOAD_QUERY",
    19: "TABLE_MAP",
    23: "WRITE_ROWS_V1",
    24: "UPDATE_ROWS_V1",
    25: "DELETE_ROWS_V1",
    26: "INCIDENT",
    27: "HEARTBEAT",
    28: "IGNORABLE",
    29: "ROWS_QUERY",
    30: "WRITE_ROWS",
    31: "UPDATE_ROWS",
    32: "DELETE_ROWS",
    33: "GTID",
    34: "ANONYMOUS_GTID",
    35: "PREVIOUS_GTIDS",
    36: "TRANSACTION_CONTEXT",
    37: "VIEW_CHANGE",
    38: "XA_PREPARE",
    39: "PARTIAL_UPDATE_ROWS",
    40: "TRANSACTION_PAYLOAD",
    41: "HEARTBEAT_V2",
    42: "GTID_TAGGED",
    160: "ANNOTATE_ROWS",
    161: "BINLOG_CHECKPOINT",
    162: "MARIADB_GTID",
    163: "GTID_LIST",
    164: "START_ENCRYPTION",
    165: "QUERY_COMPRESSED",
    166: "WRITE_ROWS_COMPRESSED_V1",
    167: "UPDATE_ROWS_COMPRESSED_V1",
    168: "DELETE_ROWS_COMPRESSED_V1",
    169: "WRITE_ROWS_COMPRESSED",
    170: "UPDATE_ROWS_COMPRESSED",
    171: "DELETE_ROWS_COMPRESSED",
}

HINTS: Final[dict[int, str]] = {
    26: "The server lost events here.",
    **dict.fromkeys((1, 6, 7, 8, 10, 12), "A server older than 5.0 wrote this file."),
}


def name(event_type: int) -> str:
    """Return the event type's name, or its number if unnamed."""
    return NAMES.get(event_type, f"type {event_type}")


def hint(event_type: int) -> str:
    """Return what to do about an event type that stops the window."""
    return HINTS.get(event_type, "This release does not know it: upgrade to one that does.")


def actions() -> npt.NDArray[np.uint8]:
    """Return the action for each of the 256 event types; unknown ones are passed to Python."""
    table = np.full(256, ASK, np.uint8)
    table[list(PASSED_OVER)] = PASS
    table[list(LOOKED_AT)] = LOOK
    return table


def actions_inside() -> npt.NDArray[np.uint8]:
    """Return the actions inside a compressed transaction."""
    table = actions()
    table[list(_NOT_INSIDE)] = REFUSE
    return table


def is_no_file(number: int, text: str) -> bool:
    """Whether a server ended a dump because it cannot open a binlog file; only MariaDB has an error number for it."""
    return number == EE_FILENOTFOUND or "log file" in text.lower()
