"""The name of a table at the source: a pair, whose text is never taken for that of another pair.

The text is ``shop.orders``. A part that could be misread is in backticks, as MySQL writes it: ``w.`y.z` `` is table ``y.z`` of
database ``w``, and ``` `w.y`.z ``` is table ``z`` of ``w.y``. One pair has one text and one text one pair, so that texts may be
compared, sorted, shown and used as keys. What a person writes is read by :meth:`TableName.parse`; nothing else takes a
name apart.
"""

from __future__ import annotations

import re
import shlex
from typing import Any, Self

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from cdc_lib.errors import ConfigError

EVERY_TABLE = ""
"""Instead of a table's name: all tables of the database. No server allows it as a name."""

_NEEDS_NO_QUOTES = re.compile(r"[^.`*?,\s/\\\x00-\x1f\x7f'\"][^.`*?,\s\x00-\x1f\x7f]*")
_LISTED = re.compile(r"(?:`(?:[^`]|``)*`|[^,`])+")
_PART = re.compile(r"`((?:[^`]|``)*)`|([^.`]+)")


class TableName(str):
    """Database and table; as ``str`` it is the text of the pair, see the module.

    Args:
        database: as the server has it.
        table: as the server has it, or :data:`EVERY_TABLE`.
    """

    __slots__ = ("database", "table")
    database: str
    table: str

    def __new__(cls, database: str, table: str) -> Self:
        """Make the name and its text."""
        last = "*" if table == EVERY_TABLE else quoted_part(table)
        made = super().__new__(cls, f"{quoted_part(database)}.{last}")
        made.database, made.table = database, table
        return made

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        """Rebuild from the pair when copied or unpickled."""
        return self.database, self.table

    @property
    def pair(self) -> tuple[str, str]:
        """Database and table."""
        return self.database, self.table

    @property
    def in_shell(self) -> str:
        """The text quoted for a shell: a name may contain what a shell would run."""
        return shlex.quote(self)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a name that a person wrote, or its text: ``shop.orders``, ``w.`y.z` ``.

        Raises:
            ConfigError: it is not two names with a dot between them.
        """
        if isinstance(text, cls):
            return text
        parts = parts_of(text)
        if parts is None or "" in (name for name, _ in parts):
            raise ConfigError(
                f"{text!r} is not database.table",
                hint="For example shop.orders. Put a name that holds a dot or a backtick in backticks: w.`y.z`",
            )
        (database, _), (table, in_backticks) = parts
        return cls(database, EVERY_TABLE if table == "*" and not in_backticks else table)

    @classmethod
    def listed(cls, text: str) -> list[Self]:
        """Read the texts of several names with commas between them; raises ConfigError as :meth:`parse` does."""
        return [cls.parse(one.removeprefix(" ")) for one in _LISTED.findall(text)]

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        """Serialize in documents as ``["shop", "orders"]``."""
        pair = core_schema.list_schema(core_schema.str_schema(), min_length=2, max_length=2)
        read = core_schema.no_info_after_validator_function(lambda found: cls(*found), pair)
        return core_schema.json_or_python_schema(
            json_schema=read,
            python_schema=core_schema.no_info_plain_validator_function(_validated),
            serialization=core_schema.plain_serializer_function_ser_schema(lambda name: list(cls.parse(name).pair)),
        )


def _validated(value: object) -> TableName:
    if isinstance(value, list | tuple) and len(value) == 2:
        return TableName(*value)
    return TableName.parse(str(value))


def quoted_part(name: str) -> str:
    """Return a name as a part of a dotted text: in backticks if it could be misread."""
    return name if _NEEDS_NO_QUOTES.fullmatch(name) else f"`{name.replace('`', '``')}`"


def parts_of(text: str) -> tuple[tuple[str, bool], tuple[str, bool]] | None:
    """Return the two parts of a text, each with whether it was in backticks; None if there are not exactly two."""
    first = _PART.match(text)
    if first is None or text[first.end() : first.end() + 1] != ".":
        return None
    second = _PART.fullmatch(text, first.end() + 1)
    return None if second is None else (_part(first), _part(second))


def _part(match: re.Match[str]) -> tuple[str, bool]:
    inside, unquoted = match[1], match[2]
    return (unquoted, False) if inside is None else (inside.replace("``", "`"), True)
