"""The rule by which the changes of a row become its versions, each from one change to the next.

All changes of a key make a timeline, in which the lake's existing versions are events at their own places: each begins one, and
ends it where nothing began. The result follows from the events alone, not from the order of merges: so a window that is merged
again, or a chunk that comes late, changes nothing. The rule is written as SQL with nothing of one engine in it, so that Spark runs
it and a quicker engine checks it.

Commit times may go back where clocks do. A version is never given an earlier time than one before it, so that exactly one version of
a row is at any time.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from cdc_lib.merge.collapse import DELETE, READ, Quote
from cdc_lib.model.lake_table import ORDER
from cdc_lib.model.manifest import GTID, OP
from cdc_lib.model.table_mode import IS_CURRENT, TO_GTID, TO_ORDER, VALID_FROM, VALID_TO

EXISTING = "cdc_existing"
"""Whether an event is of a version that the lake has."""

CUT = "cdc_cut"
"""What takes a row without a change of its own: a statement, a snapshot that does not have it; empty for changes."""

BY_STATEMENT, BY_SNAPSHOT = "statement", "snapshot"

SAME = "cdc_same"
"""Whether a version is in the lake just so already."""


def versions_sql(
    events: str,
    key: Sequence[str],
    own: Sequence[str],
    quote: Quote,
    *,
    replayed: bool,
    unfinished: Collection[int] = (),
    carried: Sequence[str] = (),
) -> str:
    """Return a SELECT of the versions of each key: key, own and carried columns, those of the mode, and :data:`SAME`.

    Args:
        events: relation of the changes, of those that began and ended existing versions, and of cuts, as it is written in SQL: with
            key, own columns, ``_op``, the order columns by the lake's names, ``_gtid``, ``_valid_from`` for the time of each,
            :data:`EXISTING`, :data:`CUT`, and where a version ended: ``_to_*`` and ``_valid_to``.
        key: names of the primary key's columns.
        own: names of the others of the row.
        quote: quotes a name for the engine.
        replayed: whether some of the changes may be known already from an earlier epoch.
        unfinished: epochs that ended before an earlier one; see :func:`cdc_lib.merge.scd2.epochs.unfinished_epochs`.
        carried: names of other columns of the row, in which equal changes may differ.
    """
    rule = _Rule(key, own, carried, quote)
    steps = {"cdc_due": rule.due(events), "cdc_ends": rule.ends("cdc_due")}
    steps["cdc_new"] = rule.new("cdc_ends", unfinished) if replayed else "SELECT * FROM cdc_ends"
    steps |= {"cdc_once": rule.once("cdc_new"), "cdc_chain": rule.chain("cdc_once")}
    named = ", ".join(f"{name} AS ({sql})" for name, sql in steps.items())
    return f"WITH {named} {rule.versions('cdc_chain')}"


class _Rule:
    """The steps, each a SELECT over the one before."""

    def __init__(self, key: Sequence[str], own: Sequence[str], carried: Sequence[str], quote: Quote) -> None:
        self.key = ", ".join(map(quote, key))
        self.row = [quote(name) for name in (*key, *own, *carried)]
        self.own = [quote(name) for name in own]
        self.order = [quote(name) for name in ORDER]
        self.op, self.gtid, self.time = quote(OP), quote(GTID), quote(VALID_FROM)
        self.is_delete = f"({self.op} = '{DELETE}')"
        # Of one event, the row that it deletes comes before the row that it writes.
        self.sort_key = ", ".join((*self.order, f"CASE WHEN {self.is_delete} THEN 0 ELSE 1 END"))
        self.quote = quote

    def due(self, events: str) -> str:
        """Leave out the rows that a snapshot has among those that it ends."""
        read = f"(NOT {EXISTING} AND {CUT} = '' AND {self.op} = '{READ}')"
        counted = f"max(CASE WHEN {read} THEN 1 ELSE 0 END) OVER (PARTITION BY {self.key}) AS cdc_read"
        return (
            f"SELECT * FROM (SELECT *, {counted} FROM {events}) AS e"
            f" WHERE NOT ({CUT} = '{BY_SNAPSHOT}' AND cdc_read = 1)"
        )

    def ends(self, events: str) -> str:
        """Leave out the ends of existing versions where the next one begins."""
        begins = f"CASE WHEN {EXISTING} AND NOT {self.is_delete} THEN 1 ELSE 0 END"
        at = ", ".join((self.key, *self.order))
        return (
            f"SELECT * FROM (SELECT *, max({begins}) OVER (PARTITION BY {at}) AS cdc_begins FROM {events}) AS e"
            f" WHERE NOT ({EXISTING} AND {self.is_delete} AND cdc_begins = 1)"
        )

    def new(self, events: str, unfinished: Collection[int]) -> str:
        """Leave out changes of a later epoch that an earlier one brought: the same transaction did the same to the row.

        Without a GTID, the same commit time identifies the same transaction. The rule holds from the first such change of a row to
        the first one that is not known, such as one that a snapshot replaced: it brings an older state of the row, and all changes
        after it must come again. The same holds after the row ended in the later epoch, as by a TRUNCATE that is read again, and
        only then: whether a merge holds that TRUNCATE or an earlier one did makes no difference.

        A version or an end of an unfinished epoch is such an older state too, which the lake has already: the changes that the
        epoch did not read again come with a later one, so that what earlier epochs brought of the row is not known.
        """
        epoch, ended = self.order[0], self.quote(TO_ORDER[0])
        of_key = f"OVER (PARTITION BY {self.key})"
        last_epoch = f"max(CASE WHEN NOT {EXISTING} THEN {epoch} END) {of_key} AS cdc_epoch"
        is_open = f"CASE WHEN {EXISTING} AND NOT {self.is_delete} AND {ended} IS NULL THEN 1 ELSE 0 END"
        has_open = f"max({is_open}) {of_key} AS cdc_open"
        older = ", ".join(map(str, sorted(unfinished)))
        older = f"{EXISTING} AND {epoch} < cdc_epoch AND {epoch} IN ({older})" if unfinished else "false"
        known_since = f"max(CASE WHEN {older} THEN {epoch} ELSE 0 END) {of_key} AS cdc_since"
        seen = f"SELECT *, {known_since} FROM (SELECT *, {last_epoch}, {has_open} FROM {events}) AS e"
        sides = (
            f"SELECT *, CASE WHEN {EXISTING} AND {epoch} >= cdc_since AND {epoch} < cdc_epoch AND coalesce({ended}, 0) < cdc_epoch"
            f" THEN 1 WHEN {EXISTING} OR {CUT} <> '' OR {self.op} = '{READ}' THEN 2 ELSE 3 END AS cdc_side FROM ({seen}) AS e"
        )
        cells = [f"CASE WHEN {self.is_delete} THEN NULL ELSE {name} END" for name in self.own]
        time = f"CASE WHEN {self.gtid} IS NULL THEN {self.time} END"
        deed = ", ".join((self.key, self.gtid, time, self.is_delete, *cells))
        numbered = (
            f"SELECT *, row_number() OVER (PARTITION BY {deed}, cdc_side ORDER BY {self.sort_key}) AS cdc_number"
            f" FROM ({sides}) AS e"
        )
        found = f"max(CASE WHEN cdc_side = 1 THEN 1 ELSE 0 END) OVER (PARTITION BY {deed}, cdc_number) AS cdc_known"
        known = f"SELECT *, {found} FROM ({numbered}) AS e"
        until = (
            f"OVER (PARTITION BY {self.key} ORDER BY {self.sort_key} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
        )
        news = f"(cdc_side = 3 AND cdc_known = 0) OR ({EXISTING} AND {epoch} = cdc_epoch)"
        news = f"max(CASE WHEN {news} THEN 1 ELSE 0 END) {until} AS cdc_behind"
        cuts = f"max(CASE WHEN {CUT} <> '' AND cdc_open = 1 THEN 1 ELSE 0 END) {until} AS cdc_cleared"
        return (
            f"SELECT * FROM (SELECT *, {news}, {cuts} FROM ({known}) AS e) AS e"
            f" WHERE cdc_side <> 3 OR cdc_known = 0 OR cdc_cleared = 1 OR cdc_behind = 1"
        )

    def once(self, events: str) -> str:
        """Leave out what is already; a row that is read once more is taken as it is now."""
        at = ", ".join((self.key, *self.order, self.is_delete))
        fresh = f"CASE WHEN {EXISTING} THEN 1 WHEN {self.op} = '{READ}' THEN 0 ELSE 2 END"
        rank = f"row_number() OVER (PARTITION BY {at} ORDER BY {fresh}) AS cdc_rank"
        return f"SELECT * FROM (SELECT *, {rank} FROM {events}) AS e WHERE cdc_rank = 1"

    def chain(self, events: str) -> str:
        """Let each event last until the next."""
        over = f"OVER (PARTITION BY {self.key} ORDER BY {self.sort_key})"
        running = (
            f"max({self.time}) OVER (PARTITION BY {self.key} ORDER BY {self.sort_key} ROWS BETWEEN UNBOUNDED PRECEDING"
        )
        timed = f"SELECT *, {running} AND CURRENT ROW) AS cdc_at FROM {events}"
        ends = [f"lead({name}) {over} AS cdc_to_{i}" for i, name in enumerate(self.order)]
        ends += [f"lead({self.gtid}) {over} AS cdc_to_gtid", f"lead(cdc_at) {over} AS cdc_until"]
        return f"SELECT *, {', '.join(ends)} FROM ({timed}) AS e"

    def versions(self, chain: str) -> str:
        """Name the columns as the lake does."""
        ends = [f"cdc_to_{i}" for i in range(len(ORDER))]
        same = [EXISTING, _alike(self.time, "cdc_at"), _alike(self.quote(VALID_TO), "cdc_until")]
        same += [_alike(self.quote(name), end) for name, end in zip(TO_ORDER, ends, strict=True)]
        found = dict(zip((*TO_ORDER, TO_GTID), (*ends, "cdc_to_gtid"), strict=True))
        found |= {VALID_FROM: "cdc_at", VALID_TO: "cdc_until", IS_CURRENT: "(cdc_to_0 IS NULL)"}
        named = [f"{value} AS {self.quote(name)}" for name, value in found.items()]
        kept = (*self.row, self.op, *self.order, self.gtid, *named, f"coalesce({' AND '.join(same)}, false) AS {SAME}")
        return f"SELECT {', '.join(kept)} FROM {chain} WHERE NOT {self.is_delete}"


def _alike(one: str, other: str) -> str:
    return f"({one} = {other} OR ({one} IS NULL AND {other} IS NULL))"
