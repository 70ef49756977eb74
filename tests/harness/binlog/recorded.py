"""The recorded streams of tests/fixtures, cut into events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cdc_lib.binlog.stream_facts import StreamFacts
from cdc_lib.model.position import Position
from cdc_lib.model.window import Window

FIXTURES = Path(__file__).parents[2] / "fixtures"
CHARSETS = {
    8: "latin1",
    11: "ascii",
    33: "utf8mb3",
    45: "utf8mb4",
    46: "utf8mb4",
    63: "binary",
    224: "utf8mb4",
    255: "utf8mb4",
}
FORMAT_DESCRIPTION, ROTATE = 15, 4
_ARTIFICIAL = 0x20


@dataclass(frozen=True, slots=True)
class Event:
    """One event as it is in the file, checksum included."""

    whole: bytes

    @property
    def kind(self) -> int:
        return self.whole[4]

    @property
    def body(self) -> bytes:
        return self.whole[19:]

    @property
    def in_file(self) -> bool:
        artificial = self.kind in (ROTATE, FORMAT_DESCRIPTION) and not any(self.whole[13:17])
        return not (int.from_bytes(self.whole[17:19], "little") & _ARTIFICIAL or artificial)

    def without_checksum(self) -> Event:
        """Return it as a server with binlog_checksum=NONE writes it; a format description keeps four unused bytes."""
        if self.kind == FORMAT_DESCRIPTION:
            return Event(self.whole[:-5] + b"\0" + self.whole[-4:])
        size = (len(self.whole) - 4).to_bytes(4, "little")
        return Event(self.whole[:9] + size + self.whole[13:-4])

    def holding(self, body: bytes, kind: int | None = None) -> Event:
        """Return it with another body, and another type if one is given."""
        size = (19 + len(body)).to_bytes(4, "little")
        kind = self.kind if kind is None else kind
        return Event(self.whole[:4] + bytes([kind]) + self.whole[5:9] + size + self.whole[13:19] + body)

    def ending_at(self, offset: int) -> Event:
        """Return it with another end position, if it has one."""
        if not any(self.whole[13:17]):
            return self
        return Event(self.whole[:13] + offset.to_bytes(4, "little") + self.whole[17:])


@dataclass(frozen=True, slots=True)
class Recorded:
    """A stream and the window that it holds."""

    flavor: str
    events: tuple[Event, ...]
    checksum: bool = True

    @property
    def wire(self) -> bytes:
        """The packets, as the server sends them."""
        return b"".join((1 + len(e.whole)).to_bytes(3, "little") + b"\0\0" + e.whole for e in self.events)

    @property
    def facts(self) -> StreamFacts:
        return StreamFacts("mysql" if self.flavor == "mysql" else "mariadb", self.checksum, CHARSETS)

    @property
    def window(self) -> Window:
        """From the first event of the stream to after its last."""
        start = next(self.offsets())
        end = start
        for position, event in zip(self.offsets(), self.events, strict=True):
            end = Position(position.file, position.offset + len(event.whole)) if event.in_file else position
        return Window("shop", 1, start, end)

    def offsets(self) -> Iterator[Position]:
        """Yield the start position of each event; for an artificial event, the current position of the file."""
        here = Position("binlog.000001", 4)
        for event in self.events:
            if event.kind == ROTATE and not event.in_file:
                tail = -4 if self.checksum else None
                here = Position(event.whole[27:tail].decode(), int.from_bytes(event.whole[19:27], "little"))
            yield here
            if event.in_file:
                here = Position(here.file, here.offset + len(event.whole))

    def laid_out(self) -> Recorded:
        """Return the same events with end positions that fit their lengths."""
        places = zip(self.offsets(), self.events, strict=True)
        events = (e.ending_at(at.offset + len(e.whole)) if e.in_file else e for at, e in places)
        return Recorded(self.flavor, tuple(events), checksum=self.checksum)

    def without_checksums(self) -> Recorded:
        """Return the same events as a server without checksums sends them, so that changed bytes reach the decoder."""
        bare, shift = [], 0
        for old in self.events:
            event = old.without_checksum()
            if old.kind == ROTATE and not old.in_file:
                shift = 0
            if old.in_file:
                shift += len(old.whole) - len(event.whole)
            end = int.from_bytes(old.whole[13:17], "little")
            bare.append(event.ending_at(end - shift) if end else event)
        return Recorded(self.flavor, tuple(bare), checksum=False)


def first_rotate() -> Event:
    """Return the artificial ROTATE event that a server sends first, without a checksum."""
    body = (4).to_bytes(8, "little") + b"binlog.000001"
    return Event(bytes(4) + bytes([ROTATE]) + bytes(8) + bytes(4) + _ARTIFICIAL.to_bytes(2, "little")).holding(body)


def recorded() -> dict[str, Recorded]:
    """Return every recorded stream by its name."""
    return {path.stem: _read(path) for path in sorted(FIXTURES.glob("*.wire"))}


def _read(path: Path) -> Recorded:
    wire, at, events = path.read_bytes(), 0, []
    while at < len(wire):
        size = int.from_bytes(wire[at : at + 3], "little")
        events.append(Event(wire[at + 5 : at + 4 + size]))
        at += 4 + size
    return Recorded(path.stem.split("_")[0], tuple(events))
