"""Random values of the shop's columns, sometimes null."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from random import Random
from typing import Any

NAMES = ("Zoë", "李小龍", "Jürgen 🚲", "Ada", "🛒🧡 Ltd.", "O'Brien", "Null", "", "a\\b\tc\nd", "Ωmega %s")
LATIN = ("Müller", "Ångström", "€uro Shop", "plain", "", "½ £")
TIERS = ("new", "silver", "gold", "très chic")
INTERESTS = ("books", "garden", "music", "sport", "toys & games")
STATES = ("open", "paid", "sent", "returned", "cancelled")
TIMES = ("-838:59:59.000000", "00:00:00.000001", "-00:00:00.500000", "838:59:59.000000", "12:34:56.789000", "-12:00:00")
DAY_ZERO = datetime(2026, 1, 1)  # noqa: DTZ001 - the shop's clock, without a zone as DATETIME is


class Values:
    """Generates values; the same seed and the same calls give the same values."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def maybe(self, value: Any, nulls: float = 0.1) -> Any:
        """Return the value, or sometimes None."""
        return None if self.random.random() < nulls else value

    def name(self) -> str | None:
        """Return text with letters of many scripts, emoji, quotes and control characters."""
        return self.maybe(f"{self.random.choice(NAMES)} {self.random.randrange(1000)}")

    def latin(self) -> str | None:
        """Return text in latin1."""
        return self.maybe(self.random.choice(LATIN))

    def money(self, digits: int, scale: int) -> str | None:
        """Return a signed decimal with a maximum number of digits, as text."""
        units = self.random.randrange(-(10**digits) + 1, 10**digits)
        sign = "-" if units < 0 else ""
        return self.maybe(f"{sign}{abs(units) // 10**scale}.{abs(units) % 10**scale:0{scale}d}")

    def blob(self, longest: int) -> bytes | None:
        """Return random bytes, sometimes none."""
        return self.maybe(self.random.randbytes(self.random.randrange(longest + 1)))

    def document(self) -> str | None:
        """Return a JSON document with values of every type."""
        document = {
            "text": self.random.choice(NAMES),
            "number": self.random.choice((0, -1, 2**31, 2**63 - 1, 2**64 - 1, -(2**63), 1.5, -2.5e-7)),
            "flag": self.random.choice((True, False, None)),
            "list": [self.random.randrange(70_000) for _ in range(self.random.randrange(4))],
            "nested": {"größe": {"b": [], "aa": {}}, str(self.random.randrange(5)): "x" * self.random.randrange(300)},
        }
        text = self.random.choice((json.dumps(document), json.dumps(document, ensure_ascii=False), "[]", "null", '"s"'))
        return self.maybe(text)

    def interests(self) -> str | None:
        """Return some labels of the SET."""
        return self.maybe(",".join(label for label in INTERESTS if self.random.random() < 0.4))

    def moment(self, fraction: bool = True) -> datetime | None:
        """Return a DATETIME or TIMESTAMP of the shop's own year."""
        value = DAY_ZERO + timedelta(microseconds=self.random.randrange(300 * 86_400_000_000))
        return self.maybe(value if fraction else value.replace(microsecond=0))

    def day(self) -> str | None:
        """Return a DATE of some century."""
        return self.maybe((DAY_ZERO + timedelta(days=self.random.randrange(-200_000, 300_000))).date().isoformat())

    def duration(self) -> str | None:
        """Return a TIME, negative and longer than a day too."""
        return self.maybe(self.random.choice(TIMES))
