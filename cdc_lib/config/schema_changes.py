"""``schema_changes:`` what lake tables do when the source changes a table's definition, or removes all of its rows."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from cdc_lib.config.base import Section
from cdc_lib.config.rules import TablePattern, TableRule
from cdc_lib.model.schema_policy import Behaviour, FollowOrStop, KeepOrStop, SchemaPolicy

_ALLOWED = "follow, keep, stop or ask"
_NO_KEEP = "follow, stop or ask"
_NO_FOLLOW = "keep, stop or ask"
_DROP_TABLE = "follow, keep, stop or ask; null: mirror tables keep their rows, other modes record that they are removed"


def _refuse_keep_wider(value: object) -> object:
    if value == "keep":
        raise ValueError(
            "keep is not possible: the lake's column cannot hold the wider values; use follow, stop or ask"
        )
    return value


def _refuse_keep_name(value: object) -> object:
    if value == "keep":
        raise ValueError(
            "keep is not possible: rows would continue in a column of the new name, and older rows would lack their values "
            "there; use follow, stop or ask"
        )
    return value


def _refuse_follow_narrower(value: object) -> object:
    if value == "follow":
        raise ValueError("follow is not possible: the lake's column may hold wider values; use keep, stop or ask")
    return value


Widen = Annotated[FollowOrStop, BeforeValidator(_refuse_keep_wider)]
Narrow = Annotated[KeepOrStop, BeforeValidator(_refuse_follow_narrower)]
Rename = Annotated[FollowOrStop, BeforeValidator(_refuse_keep_name)]


class SchemaChangesTable(TableRule):
    """Other behaviours for some tables; unset keys are as for all tables."""

    tables: TablePattern = Field(description='a pattern of tables, for example "shop.orders"')
    add_column: Behaviour | None = Field(default=None, description=_ALLOWED)
    drop_column: Behaviour | None = Field(default=None, description=_ALLOWED)
    widen: Widen | None = Field(default=None, description=_NO_KEEP)
    narrow: Narrow | None = Field(default=None, description=_NO_FOLLOW)
    rename: Rename | None = Field(default=None, description=_NO_KEEP)
    drop_table: Behaviour | None = Field(default=None, description=_DROP_TABLE)
    truncate: Behaviour | None = Field(default=None, description=_ALLOWED)


class SchemaChangesConfig(Section):
    """For each kind of change whether the lake follows it, keeps what it has, stops the table until the file is changed, or asks a person.

    Args:
        add_column: ``follow``: the lake table gets the column; ``keep``: the column is ignored.
        drop_column: ``follow``: the lake's column is dropped; ``keep``: it stays, and is null in rows that are written later.
        widen: ``follow``: the lake's column gets a wider type where a new type at the source needs it.
        narrow: ``keep``: the lake's column keeps its type where a statement made the source's type narrower.
        rename: ``follow``: the lake's column gets the new name.
        drop_table: ``follow``: all rows are removed; ``keep``: they stay until a table of the same name is created.
        truncate: ``follow``: all rows are removed; ``keep``: they stay.
        tables: exceptions; the first one that covers a table wins.
    """

    add_column: Behaviour = Field(default="follow", description=_ALLOWED)
    drop_column: Behaviour = Field(default="keep", description=_ALLOWED)
    widen: Widen = Field(default="follow", description=_NO_KEEP)
    narrow: Narrow = Field(default="keep", description=_NO_FOLLOW)
    rename: Rename = Field(default="follow", description=_NO_KEEP)
    drop_table: Behaviour | None = Field(default=None, description=_DROP_TABLE)
    truncate: Behaviour = Field(default="follow", description=_ALLOWED)
    tables: tuple[SchemaChangesTable, ...] = Field(
        default=(), description="list of tables, add_column, drop_column, widen, narrow, rename, drop_table, truncate"
    )

    @property
    def asks(self) -> bool:
        """Whether a change of some table waits for a person."""
        kinds = SchemaChangesTable.model_fields.keys() - {"tables"}
        return any(getattr(one, kind) == "ask" for one in (self, *self.tables) for kind in kinds)

    def policy(self, database: str, table: str) -> SchemaPolicy:
        """Return the behaviours of a table; answers are not among them."""
        one = next((one for one in self.tables if one.covers(database, table)), None)
        # null is a value of drop_table
        drop_table = one.drop_table if one is not None and "drop_table" in one.model_fields_set else self.drop_table
        return SchemaPolicy(
            add_column=(one and one.add_column) or self.add_column,
            drop_column=(one and one.drop_column) or self.drop_column,
            widen=(one and one.widen) or self.widen,
            narrow=(one and one.narrow) or self.narrow,
            rename=(one and one.rename) or self.rename,
            drop_table=drop_table,
            truncate=(one and one.truncate) or self.truncate,
        )
