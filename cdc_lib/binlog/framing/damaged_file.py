"""What to do about a binlog file that is damaged, cut off, or holds what is not understood."""

from __future__ import annotations

from collections.abc import Mapping

from cdc_lib.model.position import file_number

_AGAIN = (
    "If it stops here each time, the file is damaged at the source: mysqlbinlog --verify-binlog-checksum checks it."
)

EDITED_CURSOR = "If somebody edited the cursor, put an exported one back: cdc cursor restore."


def next_file(file: str) -> str:
    """Return the name of the file after a binlog file."""
    return file_of_number(file, file_number(file) + 1)


def file_of_number(file: str, number: int) -> str:
    """Return the name of another file of the same binlog."""
    base, _, digits = file.rpartition(".")
    return f"{base}.{number:0{len(digits)}d}"


def continue_in(source: object, follower: str) -> str:
    """Return the commands that continue at the beginning of a file, with new snapshots of all tables."""
    return f"cdc cursor rewind {source} --position {follower}:4, then cdc snapshot {source} '*.*'"


def restore_or_continue(source: object, follower: str) -> str:
    """Return the hint of an error about a file that lost a part."""
    return (
        "Put the whole file back at the server from a backup and restart it; or cdc cursor failover to a standby. If "
        f"nobody has it: {continue_in(source, follower)}."
    )


def continue_after(context: Mapping[str, object]) -> str:
    """Return how to continue after the file of an event.

    Args:
        context: of the error: the source, and the file of the event.
    """
    follower = next_file(str(context["file"]))
    return (
        f"To continue after this file: {continue_in(context['source'], follower)}. "
        f"If {follower} has not begun, FLUSH BINARY LOGS at the server begins it."
    )


def skip_event(context: Mapping[str, object]) -> str:
    """Return how to continue after a single event; ``context`` as for :func:`continue_after`, with its offset."""
    if not {"source", "file", "offset"} <= context.keys():
        return "cdc cursor rewind to the position after it"
    file = context["file"]
    shown = f"SHOW BINLOG EVENTS IN '{file}' FROM {context['offset']} LIMIT 1"
    return f"cdc cursor rewind {context['source']} --position {file}:END, where END is its End_log_pos in {shown}"


def hint_of_damage(context: Mapping[str, object]) -> str:
    """Return the hint of an error at an event whose bytes are wrong; ``context`` as for :func:`continue_after`."""
    return f"{_AGAIN} {continue_after(context)}" if {"source", "file"} <= context.keys() else _AGAIN


def upgrade_or_continue(context: Mapping[str, object]) -> str:
    """Return the hint of an error at what only a newer release reads; ``context`` as for :func:`continue_after`."""
    upgrade = "This release does not know it: upgrade to one that does."
    return f"{upgrade} {continue_after(context)}" if {"source", "file"} <= context.keys() else upgrade


def hint_without_beginning(context: Mapping[str, object]) -> str:
    """Return the hint of an error about a transaction whose beginning was not read; ``context`` as above."""
    return f"{EDITED_CURSOR} {hint_of_damage(context)}"
