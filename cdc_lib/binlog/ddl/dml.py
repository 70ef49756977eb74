"""Which tables a statement-based change writes.

Heartbeat and checksum tools set their sessions to STATEMENT; changes of tables that are not captured do no harm. Only plain
statements are understood: for an unusual one, or one that calls a stored function (which may write any table), the result
is None. No SQL library is used: one that reads ``UPDATE LOW_PRIORITY t`` as a table LOW_PRIORITY with the alias t would
hide the table that is written.
"""

from __future__ import annotations

from itertools import pairwise

from cdc_lib.binlog.ddl.history.words import CannotFollow, WordReader
from cdc_lib.model import lexer
from cdc_lib.model.lexer import DEFAULT_QUOTING, Quoting, Word

Table = tuple[str, str]

_MODIFIERS = {"LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "QUICK", "IGNORE"}
_AFTER_NAME = {"SET", "WHERE", "ORDER", "LIMIT", "RETURNING"}
_NAMES = (
    # Words of the grammar that a bracket may follow.
    "VALUES VALUE IN ON AND OR NOT XOR AS USING SELECT FROM WHERE HAVING BY SET WHEN THEN ELSE CASE ANY ALL SOME EXISTS "
    "UNION EXCEPT INTERSECT DISTINCT LIKE REGEXP RLIKE BETWEEN DIV MOD IS BINARY INTERVAL KEY INDEX PARTITION OVER JOIN INTO "
    "UPDATE LIMIT COLUMNS FIELDS ROW CHAR DECIMAL DATETIME TIME FOR "
    # Functions of the servers that change nothing.
    "ABS ACOS ADDDATE ADDTIME ASCII ASIN ATAN ATAN2 AVG BIN BIT_AND BIT_COUNT BIT_LENGTH BIT_OR BIT_XOR CAST CEIL CEILING "
    "CHARACTER_LENGTH CHAR_LENGTH COALESCE CONCAT CONCAT_WS CONNECTION_ID CONV CONVERT CONVERT_TZ COS COT COUNT CRC32 CURDATE "
    "CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER CURTIME DATABASE DATE DATEDIFF DATE_ADD DATE_FORMAT DATE_SUB "
    "DAY DAYNAME DAYOFMONTH DAYOFWEEK DAYOFYEAR DEFAULT DEGREES ELT EXP EXTRACT FIELD FIND_IN_SET FLOOR FORMAT FROM_BASE64 "
    "FROM_DAYS FROM_UNIXTIME GREATEST GROUP_CONCAT HEX HOUR IF IFNULL INET6_ATON INET6_NTOA INET_ATON INET_NTOA INSTR "
    "ISNULL JSON_ARRAY JSON_EXTRACT JSON_OBJECT JSON_SET JSON_UNQUOTE LAST_DAY LAST_INSERT_ID LCASE LEAST LEFT LENGTH LN "
    "LOCALTIME LOCALTIMESTAMP LOCATE LOG LOG10 LOG2 LOWER LPAD LTRIM MAKEDATE MAKETIME MAX MD5 MICROSECOND MID MIN MINUTE "
    "MONTH MONTHNAME NAME_CONST NOW NULLIF OCT OCTET_LENGTH ORD PERIOD_ADD PERIOD_DIFF PI POSITION POW POWER QUARTER QUOTE "
    "RADIANS RAND REPEAT REPLACE REVERSE RIGHT ROUND ROW_COUNT RPAD RTRIM SCHEMA SECOND SEC_TO_TIME SHA SHA1 SHA2 SIGN SIN "
    "SPACE SQRT STD STDDEV STR_TO_DATE STRCMP SUBDATE SUBSTR SUBSTRING SUBSTRING_INDEX SUBTIME SUM SYSDATE TAN TIMEDIFF "
    "TIMESTAMP TIMESTAMPADD TIMESTAMPDIFF TIME_FORMAT TIME_TO_SEC TO_BASE64 TO_DAYS TO_SECONDS TRIM TRUNCATE UCASE UNHEX "
    "UNIX_TIMESTAMP UPPER USER UTC_DATE UTC_TIME UTC_TIMESTAMP UUID VERSION WEEK WEEKDAY WEEKOFYEAR YEAR YEARWEEK"
)
_HARMLESS = frozenset(_NAMES.split())


def written_tables(statement: str, database: str, quoting: Quoting = DEFAULT_QUOTING) -> tuple[Table, ...] | None:
    """Return the tables that a statement writes, or None when they cannot be named for sure.

    Args:
        statement: its text.
        database: its default database, for names without one.
        quoting: of its session.
    """
    words = list(lexer.words(statement, quoting))
    while words and words[-1].key == ";":
        words.pop()
    if not words or any(word.key == ";" for word in words):
        return None
    verb = words[0].key
    at = 1
    while at < len(words) and words[at].key in _MODIFIERS:
        at += 1
    rest = words[at:]
    if verb in ("INSERT", "REPLACE"):
        found = _name(rest[1:] if rest[:1] and rest[0].key == "INTO" else rest, database)
    elif verb == "LOAD":
        keys = [word.key for word in rest]
        into = next((i for i, pair in enumerate(pairwise(keys)) if pair == ("INTO", "TABLE")), None)
        found = None if into is None else _name(rest[into + 2 :], database)
        # The list of columns is before SET; only after it something may be called.
        words = words[keys.index("SET") + at :] if "SET" in keys else []
    elif verb == "UPDATE":
        found = _alone(_name(rest, database), rest)
    elif verb == "DELETE":
        found = _alone(_name(rest[1:], database), rest[1:]) if rest[:1] and rest[0].key == "FROM" else None
    else:
        return None
    if found is None or not _calls_nothing(words, found[1]):
        return None
    return (found[0],)


_Found = tuple[Table, tuple[int, list[Word]]]
"""A table, how many words its name takes, and the words from its name on."""


def _name(words: list[Word], database: str) -> _Found | None:
    """Return the table that is at the front of the words."""
    read = WordReader(words)
    try:
        table = read.table(database)
    except CannotFollow:
        return None
    return table, (len(words) - len(read.left()), words)


def _alone(found: _Found | None, words: list[Word]) -> _Found | None:
    """Return the table if it is the only one before SET, WHERE and the like: of a join any table may be written."""
    if found is None:
        return None
    size = found[1][0]
    following = [word.key for word in words[size : size + 3]]
    if following[:1] == ["AS"]:
        following = following[2:]
    elif following and following[0] not in _AFTER_NAME and following[0] not in (",", "USING", "JOIN", "."):
        following = following[1:]
    return found if not following or following[0] in _AFTER_NAME else None


def _calls_nothing(words: list[Word], name: tuple[int, list[Word]]) -> bool:
    """Whether no bracket is after a name that may be that of a stored function; the table's own columns may."""
    size, from_name = name
    own = len(words) - len(from_name) + size
    for i in range(1, len(words)):
        before = words[i - 1]
        if words[i].key != "(" or i == own:
            continue
        if i > 1 and words[i - 2].key == ".":
            return False
        if before.kind != "sign" and before.key not in _HARMLESS:
            return False
    return True
