"""What a lake table does when the source changes the definition of a table, or removes its rows with a statement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cdc_lib.model.position import Point
from cdc_lib.model.schema_question import SchemaAnswer, SchemaChangeKind

Behaviour = Literal["follow", "keep", "stop", "ask"]
"""follow: the lake does as the source; keep: the lake keeps what it has; stop: the merge of the table stops; ask: it stops until a
person has answered."""

FollowOrStop = Literal["follow", "stop", "ask"]
"""The behaviours of changes that the lake cannot leave out and keep its rows right."""

KeepOrStop = Literal["keep", "stop", "ask"]
"""The behaviours of changes that the lake cannot follow."""


@dataclass(frozen=True, slots=True)
class SchemaPolicy:
    """The behaviours of one source table.

    Args:
        add_column: a column that the source added.
        drop_column: a column that the source dropped.
        widen: a column whose new type needs a wider type in the lake.
        narrow: a column whose type a statement made narrower than the lake's column.
        rename: columns that the source renamed.
        drop_table: DROP TABLE, or DROP DATABASE; None as the mode does: ``mirror`` tables keep their rows, the others record
            that they are removed.
        truncate: TRUNCATE.
        answers: about single statements of the table, where the behaviour is ``ask``.
    """

    add_column: Behaviour = "follow"
    drop_column: Behaviour = "keep"
    widen: FollowOrStop = "follow"
    narrow: KeepOrStop = "keep"
    rename: FollowOrStop = "follow"
    drop_table: Behaviour | None = None
    truncate: Behaviour = "follow"
    answers: tuple[SchemaAnswer, ...] = ()

    def of(self, kind: SchemaChangeKind) -> Behaviour | None:
        """Return what the source file says about a kind of change."""
        behaviours: dict[SchemaChangeKind, Behaviour | None] = {
            "add_column": self.add_column,
            "drop_column": self.drop_column,
            "widen": self.widen,
            "narrow": self.narrow,
            "rename": self.rename,
            "drop_table": self.drop_table,
            "truncate": self.truncate,
        }
        return behaviours[kind]

    def at(self, kind: SchemaChangeKind, point: Point) -> Behaviour | None:
        """Return what the table does at a statement: the answer takes the place of ``ask``."""
        behaviour = self.of(kind)
        if behaviour != "ask":
            return behaviour
        given = (one for one in self.answers if (one.question.kind, one.question.point) == (kind, point))
        return next((one.decision for one in given), behaviour)

    @property
    def watches_columns(self) -> bool:
        """Whether the marker must remember the source's columns."""
        return (self.add_column, self.drop_column) != ("follow", "keep")


DEFAULT_POLICY = SchemaPolicy()
"""The policy of a table that the source file does not name."""
