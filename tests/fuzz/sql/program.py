"""A program of SQL, as a value and as a case file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

MAIN, SIDE = "fz_main", "fz_side"
"""Names of the databases in programs. Each run replaces them by names of its own; MAIN exists and is the default database."""

LAKES = ("", "version 2", "copy_on_write", "rows from the source", "version 2, rows from the source")
"""Ways in which the product writes the lake; the rows are the same. Empty for the defaults."""


@dataclass(frozen=True)
class Statement:
    """One statement of one session."""

    sql: str
    session: str = "a"


@dataclass(frozen=True)
class Part:
    """Statements after which the product runs once."""

    title: str
    statements: tuple[Statement, ...] = ()


@dataclass(frozen=True)
class Program:
    """A program.

    Args:
        flavor: ``mysql`` or ``mariadb``.
        parts: in their order; the product makes its first snapshots after the first one.
        metadata: ``binlog_row_metadata`` of the server.
        lake: how the product writes the lake; one of ``LAKES``.
        about: lines for people.
    """

    flavor: str
    parts: tuple[Part, ...]
    metadata: str = "FULL"
    lake: str = ""
    about: tuple[str, ...] = field(default=(), compare=False)

    @property
    def statements(self) -> int:
        """How many there are."""
        return sum(len(part.statements) for part in self.parts)

    def steps(self) -> Iterator[tuple[int, Statement]]:
        """Yield each statement with the number of its part."""
        for i, part in enumerate(self.parts):
            for statement in part.statements:
                yield i, statement

    def text(self) -> str:
        """Return the case file."""
        lines = [f"-- {line}" for line in self.about]
        lines += [f"-- flavor: {self.flavor}", f"-- metadata: {self.metadata}", f"-- lake: {self.lake}"]
        for part in self.parts:
            lines.append(f"-- part: {part.title}")
            session = "a"
            for statement in part.statements:
                if statement.session != session:
                    session = statement.session
                    lines.append(f"-- session: {session}")
                lines.append(f"{statement.sql};")
        return "\n".join(lines) + "\n"


def parse(text: str) -> Program:
    """Return the program of a case file; lines before its first part that are not settings are for people."""
    settings = {"flavor": "mysql", "metadata": "FULL", "lake": ""}
    parts: list[tuple[str, list[Statement]]] = []
    about, session, pending = [], "a", ""
    for line in text.split("\n"):
        word, _, value = line.removeprefix("--").strip().partition(":")
        if not pending and line.startswith("--"):
            if word == "part":
                parts.append((value.strip(), []))
                session = "a"
            elif word == "session":
                session = value.strip()
            elif word in settings:
                settings[word] = value.strip()
            elif not parts:
                about.append(line.removeprefix("--").strip())
            continue
        pending = f"{pending}\n{line}" if pending else line
        if pending.rstrip().endswith(";"):
            parts[-1][1].append(Statement(pending.rstrip()[:-1], session))
            pending = ""
        elif not pending.strip():
            pending = ""
    made = tuple(Part(title, tuple(statements)) for title, statements in parts)
    return Program(settings["flavor"], made, settings["metadata"], settings["lake"], tuple(about))
