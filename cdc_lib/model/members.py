"""Values of ENUM and SET that SELECT shows with the text of another value: in a key they would make two rows one; pure.

A number that INSERT gives to a text keeps it. The others are the error value 0 of an ENUM with a member ``''``, members that a
session without strict mode declared twice, and of a SET the member ``''`` alone, which looks like the empty set.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cdc_lib.model.lexer import quoted
from cdc_lib.model.schema import Column, SourceType


@dataclass(frozen=True, slots=True)
class SharedTexts:
    """Which values of a column have the text of another one.

    Args:
        numbers: such values.
        bits: SET: bits of members that are declared twice.
    """

    numbers: tuple[int, ...] = ()
    bits: int = 0

    def __bool__(self) -> bool:
        return bool(self.numbers or self.bits)

    def has(self, number: int) -> bool:
        """Whether a value is one of them."""
        return number in self.numbers or number & self.bits != 0

    def select(self, column: Column) -> str:
        """Return the SQL of a column with NULL for them."""
        name = quoted(column.name)
        conditions = [f"{name} + 0 = {number}" for number in self.numbers]
        conditions += [f"{name} & {self.bits} <> 0"] if self.bits else []
        return f"IF({' OR '.join(conditions)}, NULL, {name})"


def shared_texts(source_type: SourceType) -> SharedTexts:
    """Return which values of a type have the text of another one; none if it is no ENUM or SET."""
    members = source_type.members
    twice = tuple(_repeated(members))
    if source_type.kind == "enum":
        return SharedTexts((*twice, *([0] if "" in members else [])))
    if source_type.kind == "set":
        alone = (1 << members.index(""),) if "" in members else ()
        return SharedTexts(alone, sum(1 << (number - 1) for number in twice))
    return SharedTexts()


def member_bytes(source_type: SourceType) -> int:
    """Return the bytes of a value in a row: of the number of an ENUM's label, or of a SET's bits."""
    count = len(source_type.members)
    if source_type.kind == "enum":
        return 1 if count < 256 else 2
    size = (count + 7) // 8
    return size if size <= 4 else 8


def _repeated(members: tuple[str, ...]) -> Iterator[int]:
    """Yield the numbers, from 1, of members that an earlier one equals."""
    seen: set[str] = set()
    for number, member in enumerate(members, 1):
        if member in seen:
            yield number
        seen.add(member)
