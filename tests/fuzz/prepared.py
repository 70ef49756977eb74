"""XA transactions: sequences of them whose meaning is known as they are made, and the same with something broken."""

from __future__ import annotations

import random
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from cdc_lib.binlog.framing import event_types
from cdc_lib.binlog.rows.row_groups import ReadOptions
from tests.fuzz.streams import Kept, Outcome, outcome
from tests.fuzz.transactions import bent
from tests.harness.binlog.recorded import Event, Recorded, first_rotate
from tests.harness.binlog.streams import SID

_NUMBERS = (0, 1, 7, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**40 + 7, 2**63 - 1)
_EVENT_BITS = 2**32 - 1
"""Of a format that stand in the event; only MySQL takes larger ones."""
_TABLE = b"\2db\0\1a\0\2\x03\xfc\1\2\2\1\1\0\2\1\x3f\4\5\2id\1v\x08\1\0"


@dataclass(frozen=True)
class Xid:
    """An id: both parts and the format."""

    gtrid: bytes
    bqual: bytes
    number: int

    @property
    def text(self) -> str:
        return f"X'{self.gtrid.hex()}',X'{self.bqual.hex()}',{self.number}"


@dataclass
class Story:
    """Events, and what follows from them when nothing is broken.

    Args:
        flavor: of the server.
        parts: type and body of each event, flags of a MariaDB group among them.
        plain: keys of the rows that count at once.
        prepared: keys of the rows that wait.
        logged: xid, whether it is a preparation, whether there are rows or a commit, in order; what cancels out left out.
    """

    flavor: str
    parts: list[tuple[int, bytes]] = field(default_factory=list)
    plain: list[int] = field(default_factory=list)
    prepared: list[int] = field(default_factory=list)
    logged: list[tuple[str, bool, bool]] = field(default_factory=list)

    def stream(self) -> Recorded:
        """Return it as a stream without checksums."""
        like = Event(struct.pack("<IBIIIH", 1_700_000_000, 0, 1, 19, 1, 0))
        laid = [like.holding(body, kind) for kind, body in self.parts]
        return Recorded(self.flavor, (first_rotate(), *laid), checksum=False).laid_out()


def story(chosen: random.Random) -> Story:
    """Return some transactions in a row, prepared ones among them, and their decisions in any order."""
    made = Story(chosen.choice(["mysql", "mariadb"]))
    xids = [_xid(chosen, _NUMBERS if made.flavor == "mysql" else _NUMBERS[:4]) for _ in range(4)]
    waiting: dict[str, int] = {}
    key = 0
    for number in range(1, 1 + chosen.randint(1, 10)):
        xid = chosen.choice(xids)
        rows = [key + i for i in range(chosen.choice([0, 1, 1, 3]))]
        key += len(rows)
        if chosen.random() < 0.3:
            _group(made, number, b"BEGIN", rows, [(event_types.XID, bytes(8))])
            made.plain += rows
        elif xid.text not in waiting and chosen.random() < 0.6:
            _prepare(made, number, xid, rows, waiting, one_phase=chosen.random() < 0.2)
        else:
            _decide(made, number, xid, waiting, committed=chosen.random() < 0.6)
    return made


def _xid(chosen: random.Random, numbers: tuple[int, ...]) -> Xid:
    sizes = [chosen.choice([0, 1, 3, 63, 64]) for _ in range(2)]
    return Xid(chosen.randbytes(sizes[0]), chosen.randbytes(sizes[1]), chosen.choice(numbers))


def _group(
    made: Story, number: int, begin: bytes, rows: list[int], end: list[tuple[int, bytes]], flags: int = 0
) -> None:
    """Add a group; MariaDB's begins with flags where MySQL's begins with a statement."""
    if made.flavor == "mysql":
        made.parts.append((event_types.GTID, b"\0" + SID + struct.pack("<Q", number) + b"\2" + bytes(16)))
        made.parts.append((event_types.QUERY, _query(begin)))
    else:
        made.parts.append((event_types.MARIADB_GTID, struct.pack("<QIB", number, 0, flags) + bytes(6)))
    for row in rows:
        made.parts.append((event_types.TABLE_MAP, (7).to_bytes(6, "little") + b"\1\0" + _TABLE))
        image = b"\0" + struct.pack("<IH", row, 1) + b"x"
        made.parts.append((event_types.WRITE_ROWS_V1, (7).to_bytes(6, "little") + b"\1\0\2\3" + image))
    made.parts += end


def _query(text: bytes) -> bytes:
    return struct.pack("<IIBHH", 1, 0, 2, 0, 0) + b"db\0" + text


def _prepare(made: Story, number: int, xid: Xid, rows: list[int], waiting: dict[str, int], *, one_phase: bool) -> None:
    sizes = struct.pack("<BIII", one_phase, xid.number & _EVENT_BITS, len(xid.gtrid), len(xid.bqual))
    end = [(event_types.XA_PREPARE, sizes + xid.gtrid + xid.bqual)]
    if made.flavor == "mysql":
        end.insert(0, (event_types.QUERY, _query(f"XA END {xid.text}".encode())))
    _group(made, number, f"XA START {xid.text}".encode(), rows, end, flags=0x40)
    made.prepared += rows
    waiting[xid.text] = len(made.logged)
    made.logged.append((xid.text, True, bool(rows)))
    if one_phase:
        _record_decision(made, xid, waiting, committed=True)


def _decide(made: Story, number: int, xid: Xid, waiting: dict[str, int], *, committed: bool) -> None:
    text = f"XA {'COMMIT' if committed else 'ROLLBACK'} {xid.text}".encode()
    if made.flavor == "mysql":
        _group(made, number, text, [], [])
    else:
        _group(made, number, b"", [], [(event_types.QUERY, _query(text))], flags=0x80 | 1)
    _record_decision(made, xid, waiting, committed=committed)


def _record_decision(made: Story, xid: Xid, waiting: dict[str, int], *, committed: bool) -> None:
    """Note a decision, unless the transaction has no rows of a captured table; then its preparation is left out too."""
    at = waiting.pop(xid.text, None)
    if at is None or made.logged[at][2]:
        made.logged.append((xid.text, False, committed))
        return
    del made.logged[at]
    for other, index in waiting.items():
        waiting[other] = index - (index > at)


# --- the cases


def prepared(seed: int, first: int, cases: int, done: np.ndarray) -> None:
    """Run cases; those that nothing was broken in must tell what their story says, the others must lose no row."""
    for case in range(first, first + cases):
        done[0] = case
        chosen = random.Random(seed << 40 | case)
        made = story(chosen)
        broken = chosen.random() < 0.7
        for _ in range(chosen.randint(1, 3) if broken else 0):
            _break(made, chosen)
        found = outcome(made.stream(), chosen, options=ReadOptions(group_rows=chosen.choice([1, 1 << 17])))
        if broken:
            _look_at(made, found)
        elif found.summary is None:
            raise AssertionError(f"a story that is not understood: {found.error}")
        elif _observed(found) != (made.plain, made.prepared, _preparations(made), _decisions(made)):
            raise AssertionError(f"another story: {_observed(found)} for {made}")


def _observed(found: Outcome) -> tuple[object, ...]:
    assert found.summary is not None
    keys = [[row["id"] for rows in sink.rows().values() for row in rows.to_pylist()] for sink in _sinks(found)]
    preparations = [(one.xid, one.tables) for one in found.summary.prepared]
    return *keys, preparations, [(one.xid, one.committed) for one in found.summary.xa_decisions]


def _sinks(found: Outcome) -> tuple[Kept, Kept]:
    return found.plain, found.prepared


def _preparations(made: Story) -> list[tuple[str, tuple[str, ...]]]:
    return [(xid, ("db.a",) if rows else ()) for xid, prepares, rows in made.logged if prepares]


def _decisions(made: Story) -> list[tuple[str, bool]]:
    return [(xid, committed) for xid, prepares, committed in made.logged if not prepares]


def _look_at(made: Story, found: Outcome) -> None:
    """Look that no row is lost, and that those which wait belong to a transaction that is logged or was rolled back."""
    if found.summary is None:
        return
    rows = [rows for sink in _sinks(found) for rows in sink.rows().values()]
    expected = sum(kind == event_types.WRITE_ROWS_V1 for kind, _ in made.parts)
    if sum(map(len, rows)) != expected:
        raise AssertionError(f"{expected} rows in the stream, {sum(map(len, rows))} came out")
    waiting = {offset for rows in found.prepared.rows().values() for offset in rows["_offset"].to_pylist()}
    begins = {one.start.offset for one in found.summary.prepared if one.tables}
    if not waiting <= begins and not any(b"ROLLBACK" in body for _, body in made.parts):
        raise AssertionError(f"rows of transactions that are not logged: {waiting - begins}")
    for one in (*found.summary.prepared, *found.summary.xa_decisions):
        if not _XID.fullmatch(one.xid):
            raise AssertionError(f"an id that no server gives: {one.xid}")


def _break(made: Story, chosen: random.Random) -> None:
    """Change one event that has no rows, or the order of them."""
    at = chosen.randrange(len(made.parts))
    kind, body = made.parts[at]
    in_log = kind not in (event_types.WRITE_ROWS_V1, event_types.TABLE_MAP)
    match chosen.randrange(8):
        case 0:
            del made.parts[at : at + 1 + chosen.randrange(2)]
            made.parts = made.parts or [(event_types.XID, bytes(8))]
        case 1:
            made.parts.insert(chosen.randrange(len(made.parts) + 1), chosen.choice(made.parts))
        case 2:
            made.parts.insert(chosen.randrange(len(made.parts)), made.parts.pop(at))
        case 3 if in_log:
            made.parts[at] = (
                chosen.choice([event_types.QUERY, event_types.XID, event_types.XA_PREPARE, event_types.GTID, 0]),
                body,
            )
        case 4 if kind == event_types.QUERY:
            made.parts[at] = kind, body[:16] + chosen.choice(_SPELLINGS)(body[16:])
        case 5 if kind in (event_types.QUERY, event_types.XA_PREPARE):
            others = [other for one, other in made.parts if one == kind]
            made.parts[at] = kind, chosen.choice(others)
        case _ if in_log:
            made.parts[at] = kind, bent(body, chosen)
        case _:
            pass


_XID = re.compile(r"X'((?:[0-9a-f]{2}){0,64})',X'((?:[0-9a-f]{2}){0,64})',[0-9]{1,19}")
_SPELLINGS: tuple[Callable[[bytes], bytes], ...] = (
    lambda text: text.lower(),
    lambda text: text + b" ",
    lambda text: text + b" ONE PHASE",
    lambda text: b"/* x */ " + text,
    lambda text: text.replace(b"XA ", b"XA  "),
    lambda text: text.replace(b"X'", b"'"),
    lambda text: text.replace(b",X''", b""),
    lambda text: text.replace(b"',X'", b"00',X'"),
    lambda text: text[:-1] + "\u0663".encode(),
    lambda text: text + b"0" * 9,
    lambda text: text + b"1" * 5000,
    lambda text: text.replace(b"COMMIT", b"ROLLBACK"),
    lambda text: text.replace(b"ROLLBACK", b"COMMIT"),
    lambda text: text.replace(b"START", b"END"),
    lambda text: text.replace(b"END", b"START"),
    lambda text: text.replace(b"END", b"PREPARE"),
    lambda text: text[:0],
)
