"""How a lake table follows a change of its mode in the source file: every pair of modes, decided without a lake."""

from __future__ import annotations

from collections.abc import Iterable
from typing import get_args

from cdc_lib.errors import ConfigError, MergeError
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.table_mode import Mode, ModeChange
from cdc_lib.model.table_name import TableName

MODES: tuple[Mode, ...] = get_args(Mode)

_NONE = ModeChange("none", "it continues as it is")
_IN_PLACE: dict[tuple[Mode, Mode], str] = {
    (
        "mirror",
        "soft_delete",
    ): "rows that are deleted from now on stay, marked; those deleted before are not restored",
    ("soft_delete", "mirror"): "the rows that are marked as deleted are removed by the next merge",
}
_REBUILD: dict[Mode, str] = {
    "mirror": "its rows alone do not show what was deleted, or which version is the last",
    "soft_delete": "its rows alone do not show what was deleted, or which version is the last",
    "append": "the changes of before are not in it",
    "scd2": "the versions of before are not in it",
}
"""By the new mode: why a table of another mode cannot change to it."""


def mode_change(old: Mode, new: Mode) -> ModeChange:
    """Return how a lake table changes from one mode to another."""
    if old == new:
        return _NONE
    if description := _IN_PLACE.get((old, new)):
        return ModeChange("in_place", description)
    return ModeChange("rebuild", _REBUILD[new])


def mode_of(schema: TableSchema, configured: Mode | None = None) -> Mode:
    """Return the mode of a table: a table without a primary key is in append mode."""
    return (configured or "mirror") if schema.primary_key else "append"


def one_mode(lake_table: str, configured: Iterable[tuple[str, Mode | None]]) -> Mode | None:
    """Return the mode of a lake table, from its source tables and the configured mode of each.

    Raises:
        ConfigError: two of them have different ones.
    """
    modes = {mode or "mirror": table for table, mode in configured}
    if len(modes) > 1:
        listed = ", ".join(sorted(f"{table} {mode}" for mode, table in modes.items()))
        raise ConfigError(
            f"tables that share a lake table have different modes: {listed}",
            hint="Give them one mode under modes or routes in the source file, or a lake table each.",
            lake_table=lake_table,
        )
    return next(iter(modes), None)


def refuse_change(old: Mode, new: Mode, table: str, lake_table: str) -> None:
    """Refuse a change of the mode that the lake table cannot follow.

    Raises:
        MergeError: it cannot; the table is unchanged.
    """
    change = mode_change(old, new)
    if change.how == "rebuild":
        raise MergeError(
            f"the lake table has the mode {old}, and the source file says {new}: {change.description}",
            hint=f"Give the table its old mode again; or drop the lake table, and take a new snapshot: "
            f"cdc snapshot {{source}} {TableName.parse(table).in_shell}. "
            "A route into a lake table of another name keeps the old one.",
            table=table,
            lake_table=lake_table,
        )
