"""What a lake table does when the source changes the definition of a table, or removes its rows with a statement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Behaviour = Literal["follow", "keep", "stop"]
"""follow: the lake does as the source; keep: the lake keeps what it has; stop: the merge of the table stops."""

FollowOrStop = Literal["follow", "stop"]
"""The behaviours of changes that the lake cannot leave out and keep its rows right."""

SchemaChangeKind = Literal["add_column", "drop_column", "widen", "rename", "drop_table", "truncate"]
"""The kinds of changes that have a behaviour, named like their keys in the source file."""


@dataclass(frozen=True, slots=True)
class SchemaPolicy:
    """The behaviours of one source table.

    Args:
        add_column: a column that the source added.
        drop_column: a column that the source dropped.
        widen: a column whose new type needs a wider type in the lake.
        rename: columns that the source renamed.
        drop_table: DROP TABLE, or DROP DATABASE; None as the mode does: ``mirror`` tables keep their rows, the others record
            that they are removed.
        truncate: TRUNCATE.
    """

    add_column: Behaviour = "follow"
    drop_column: Behaviour = "keep"
    widen: FollowOrStop = "follow"
    rename: FollowOrStop = "follow"
    drop_table: Behaviour | None = None
    truncate: Behaviour = "follow"

    @property
    def watches_columns(self) -> bool:
        """Whether the marker must remember the source's columns."""
        return (self.add_column, self.drop_column) != ("follow", "keep")


DEFAULT_POLICY = SchemaPolicy()
"""The policy of a table that the source file does not name."""
