"""Erases people beside everything else; what is erased is in no place any more, however often it is drained, merged or restored."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from cdc_lib.erase.needles import Needles
from cdc_lib.erase.places import LAKE, LOST_FILE, Found
from cdc_lib.erase.search import RowSearch
from cdc_lib.model.table_name import TableName
from cdc_lib.store import layout
from tests.chaos.failovers import Failovers
from tests.chaos.people import TABLES, People
from tests.chaos.settle_and_compare import Settler
from tests.chaos.steps import Broken, Steps

TRIES = 3
"""An erasure is started again when a snapshot is open, or when it left something."""


@dataclass
class Erasures:
    """Erases people of one source.

    Args:
        steps: run the erasures.
        settler: lets the lake reach their end at the source.
        people: the tables.
        failovers: the failovers of the run.
        random: the random generator.
        say: takes a line for each erasure.

    Attributes:
        mails: those that are erased, by table; none from before a server took over, or was put back, that still had the people.
    """

    steps: Steps
    settler: Settler
    people: People
    failovers: Failovers
    random: Random
    say: Callable[[str], None]
    mails: dict[str, set[str]] = field(default_factory=dict)
    _losses: tuple[int, int] = (0, 0)

    def erase(self) -> None:
        """Delete people and erase them; the first try is killed, and the second goes on."""
        foreign, database = self.settler.foreign, self.settler.workload.database
        known = set(foreign.unchanged()).intersection(f"{database}.{table}" for table in TABLES)
        if self.failovers.pending or self.failovers.lagging or not known:
            return
        table = self.random.choice(sorted(known))
        left = self.people.leave(table.partition(".")[2])
        if not left:
            return
        self.settler.workload.repair()
        self.settler.round()
        self.say(f"erases {len(left)} of {table}")
        argument = json.dumps([table, [[str(number)] for number in left]])
        waits = {"MergeConflict"}
        self.steps.one("erase", argument=argument, sure=True, allowed=waits)
        for _ in range(TRIES):
            outcome = self.steps.alive("erase", argument, waits)
            if outcome.done or (outcome.passed and not self._left(table, left.values())):
                break
            self.settler.round()
        else:
            raise Broken(f"the erasure of {left} of {table} does not end: {outcome.message}")
        self._forget_those_who_came_back()
        self.mails.setdefault(table, set()).update(left.values())
        self.settler.laws.forget_changed()

    def check(self) -> None:
        """Check that no erased person is back.

        Raises:
            Broken: a person is.
        """
        self._forget_those_who_came_back()
        for table, mails in self.mails.items():
            if found := self._left(table, mails):
                raise Broken(f"erased people of {table} are back: " + "\n".join(map(str, found[:5])))
            self.settler.lake.events["erased people looked for"] += len(mails)

    def _forget_those_who_came_back(self) -> None:
        losses = self.failovers.losses, self.failovers.reverted
        if losses != self._losses:
            self._losses = losses
            self.mails.clear()

    def _left(self, table: str, mails: object) -> list[Found]:
        """Return places with one of the mails, except files of killed jobs that nothing names: maintenance removes them later."""
        pipeline = self.settler.pipeline
        needles = Needles((), (), {"": frozenset(mails)})
        found = RowSearch(pipeline, TableName.parse(table), needles).run().found
        return [one for one in found if one.kind != LOST_FILE and (one.kind == LAKE or self._is_named(one.place))]

    def _is_named(self, key: str) -> bool:
        folder = layout.batch_folder(key)
        return not folder or self.settler.pipeline.store.get(layout.manifest_in(folder)) is not None
