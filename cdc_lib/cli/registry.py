"""The list of commands; each is imported only when it is used.

The module of a command is its path: ``cdc cursor show`` is ``cdc_lib/cli/cursor/show.py``. Listing commands imports none of
them. The help lines here equal the commands' docstrings; a test compares them.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command


@dataclass(frozen=True, slots=True)
class Entry:
    """One command.

    Args:
        help: first paragraph of its help.
        function: name of its function; empty if it has the name of the command.
    """

    help: str
    function: str = ""


@dataclass(frozen=True, slots=True)
class GroupEntry:
    """Commands under one name.

    Args:
        help: the line about the group, which is the first paragraph of its own command's help.
        commands: by name.
        own: module of the command that the name alone is; it takes every argument that does not begin with one of the names.
    """

    help: str
    commands: Mapping[str, Entry | GroupEntry]
    own: str = ""


_ACK = {
    "drain": Entry("Move the drain cursor over the windows and chunks whose batches are durable.", "ack_drain"),
    "lake": Entry("Move the lake cursor to the cut that the last merge published.", "ack_lake"),
}

_STEP: dict[str, Entry | GroupEntry] = {
    "plan": Entry(
        "Show the units to drain: those in flight, or else new windows and snapshots, which then are in flight."
    ),
    "drain": Entry(
        "Read units and write their batches; a unit that is already drained is not read again. Snapshots are read to their end."
    ),
    "ack": GroupEntry("Move a cursor over the work that is found done in the store.", _ACK),
    "merge": Entry("Merge what is drained into the lake tables, in Spark."),
    "rollback": Entry(
        "Remove the merge in flight from the lake cursor; the next merge is planned again from the lake cursor. The lake keeps its rows."
    ),
}

_CURSOR = {
    "show": Entry("Show the cursors of a source, what is in flight, and their last moves."),
    "locate": Entry("Show where a time, a set of GTIDs or a position lies in the server's binlog; no cursor moves."),
    "rewind": Entry(
        "Move the drain cursor to a time, a set of GTIDs or a position; asks first, and records where it was."
    ),
    "failover": Entry(
        "Continue at another server of the source, exactly by GTIDs or a little earlier, in a new epoch."
    ),
    "export": Entry("Print cursors as a JSON list of documents, which restore takes."),
    "restore": Entry("Replace cursors by exported ones; a copy of what is replaced stays in the store."),
}

_QUARANTINE = {
    "list": Entry("List the quarantined tables of a source, with the error and what to do.", "list_tables"),
    "resume": Entry("Follow a quarantined table again from here, with a new snapshot that the next run takes."),
}

_SPARK = {
    "serve": Entry("Run the Spark jobs of many sources in one Spark that stays up: no job starts Java."),
    "jobs": Entry(
        "List the jobs of the Spark server that a source's file names: those of all sources that wait, run or ended lately."
    ),
}

_SCHEMA = {
    "questions": Entry("List the schema changes at which tables of a source wait for an answer (schema_changes: ask)."),
    "answer": Entry(
        "Answer the schema change at which a table waits; the next merge applies it to this statement only."
    ),
}

_BATCHES = {
    "list": Entry("List the last batches of a source, in the order of the binlog.", "list_batches"),
    "gc": Entry("Remove batches that every consumer has acknowledged and that are older than store.keep_batches_for."),
    "replay": Entry(
        "Drain a part of the binlog again into another store; the source's cursors and batches do not change."
    ),
    "refill": Entry(
        "Write acknowledged batches again that are missing or damaged, in place, so that the lake can continue."
    ),
}

_LAKE = {
    "preview": Entry("Show some rows of a lake table, in no particular order: a line each, with the columns that fit."),
    "maintain": Entry(
        "Rewrite small files, and files with many deleted rows, in key order; remove old snapshots and orphan files."
    ),
    "cuts": Entry("List the last cuts of a source: positions at which all its lake tables are consistent."),
    "tables": Entry(
        "List the lake tables of a source, with mode, key, number of rows and files, and what waits for maintenance."
    ),
    "schema": Entry("Show the columns of a lake table."),
    "find": Entry(
        "Find every place in the store and the lake that holds values of a row, also of one that was deleted."
    ),
    "erase": Entry(
        "Remove rows that the source deleted from the lake and the store, in every mode, and search for what is left."
    ),
    "drop": Entry(
        "Remove the lake table of a source table from its catalog, also if its files are lost. What is left of its files stays."
    ),
}

_VERIFY = {
    "ranges": Entry("Compare the key ranges that are due by verify.cover_every; exits with 1 when rows are wrong."),
    "windows": Entry(
        "Decode drained windows a second time, and compare every change with the batch; exits with 1 when some differ."
    ),
}

_CONSUMERS = {
    "list": Entry("List the consumers of a source's batches, the lake included.", "list_consumers"),
    "drop": Entry("Remove the cursor of a consumer; a copy of it stays in the store."),
}

COMMANDS: dict[str, Entry | GroupEntry] = {
    "init": Entry("Write the file of a new source and check it."),
    "doctor": Entry("Check files, servers, stores, lake and Java before a run."),
    "run": Entry("Drain and merge what is new, as a run of the DAG does."),
    "status": Entry("Show cursors, lag and pending work of each source."),
    "metrics": Entry("Print figures of the sources for Prometheus (OpenMetrics)."),
    "verify": GroupEntry(
        "Compare tables with the lake, row by row.",
        _VERIFY,
        own="tables",
    ),
    "snapshot": Entry("Take a new snapshot of tables, or of a part of one."),
    "backfill": Entry("Merge stored batches again, in place or into other tables."),
    "tail": Entry("Print changes as JSON lines of alibaba canal's shape."),
    "get": Entry("Show the row of a key in a lake table, or its versions."),
    "explain": Entry("Show what made each version of a row."),
    "scan": Entry("Show rows of a lake table in key order."),
    "changes": Entry("Show rows that differ between two cuts of the lake."),
    "sql": Entry("Run a query over the lake tables, all as of one cut."),
    "serve": Entry("Serve the lake as a read-only Iceberg REST catalog."),
    "step": GroupEntry("One step of cdc run at a time.", _STEP),
    "cursor": GroupEntry("Show and move the cursors of a source.", _CURSOR),
    "quarantine": GroupEntry("Tables that are left out of the lake because of an error.", _QUARANTINE),
    "schema": GroupEntry("Schema changes that wait for a person.", _SCHEMA),
    "batches": GroupEntry("The batches of a source in the store.", _BATCHES),
    "lake": GroupEntry("The lake tables of a source.", _LAKE),
    "spark": GroupEntry("The Spark server, which runs the jobs of many sources.", _SPARK),
    "consumers": GroupEntry("Who reads the batches of a source.", _CONSUMERS),
}
"""Daily commands first, then groups, in the order of the help."""


class LazyGroup(TyperGroup):
    """A group that imports its commands when they are used, and not when they are listed."""

    entries: Mapping[str, Entry | GroupEntry] = COMMANDS
    path: tuple[str, ...] = ()
    _listing = False

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names of all commands, in the order of the help."""
        return list(self.entries)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - click's signature
        """Import a command; a list of commands only needs the help line."""
        entry = self.entries.get(cmd_name)
        if entry is None:
            return None
        if not self._listing:
            return load(*self.path, cmd_name)
        is_group = isinstance(entry, GroupEntry) and not entry.own
        return TyperCommand(cmd_name, help=entry.help, rich_help_panel="Groups of commands" if is_group else None)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Show the options and a line for each command."""
        self._listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._listing = False


class CommandWithMore(TyperCommand):
    """A command that hands its arguments to another one if the first of them is its name.

    ``cdc verify SOURCE`` compares, ``cdc verify ranges SOURCE`` too; ``cdc verify -- ranges`` takes ``ranges`` for a source.
    """

    entries: Mapping[str, Entry | GroupEntry] = {}
    path: tuple[str, ...] = ()

    def inner(self, word: str) -> Any:
        """Import the command of a name; None if there is none."""
        return load(*self.path, word) if word in self.entries else None

    def make_context(self, info_name: Any, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Parse the arguments, for the command that they name."""
        if args and (command := self.inner(args[0])) is not None:
            return command.make_context(f"{info_name} {args[0]}", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Show the options, and a line for each of the other commands."""
        super().format_help(ctx, formatter)
        with formatter.section("More commands"):
            formatter.write_dl([(f"{ctx.command_path} {name}", entry.help) for name, entry in self.entries.items()])


def load(*path: str) -> Any:
    """Import a command and return it.

    Args:
        path: the words after ``cdc``, such as ``cursor`` and ``show``; they name a command or a group.
    """
    entries: Mapping[str, Entry | GroupEntry] = COMMANDS
    for word in path[:-1]:
        outer = entries[word]
        entries = outer.commands if isinstance(outer, GroupEntry) else {}
    entry = entries[path[-1]]
    if isinstance(entry, GroupEntry) and not entry.own:
        group = LazyGroup(name=path[-1], help=entry.help, no_args_is_help=True)
        group.entries, group.path = entry.commands, path
        return group
    own = (entry.own, "") if isinstance(entry, GroupEntry) else ("", entry.function)
    module = importlib.import_module(".".join(filter(None, ("cdc_lib.cli", *_module_of(path), own[0]))))
    function = getattr(module, own[1] or path[-1])
    alone = typer.Typer(add_completion=False)
    text, examples = divided(function.__doc__ or "")
    kind = CommandWithMore if isinstance(entry, GroupEntry) else TyperCommand
    alone.command(path[-1], cls=kind, help=text, epilog="\n\n".join(f"Example: {one}" for one in examples))(function)
    command: Any = get_command(alone)
    command.name = path[-1]
    if isinstance(entry, GroupEntry):
        command.entries, command.path = entry.commands, path
    return command


def _module_of(path: tuple[str, ...]) -> tuple[str, ...]:
    """Return the module of a command below ``cdc_lib.cli``; ``ack drain`` and ``ack lake`` are both in ``ack``."""
    return path[:2]


def divided(docstring: str) -> tuple[str, list[str]]:
    """Split the docstring of a command into its help and the lines of its ``Example:``."""
    text, _, examples = inspect.cleandoc(docstring).partition("\n\nExample:\n")
    return text, [line.strip() for line in examples.splitlines() if line.strip()]
