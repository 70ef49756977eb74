"""GTID sets of both flavors and their set operations.

MySQL writes ``uuid:1-7:9`` and ``uuid:tag:1-3``: numbers of a source, with gaps. MariaDB writes ``domain-server-number``,
which includes all earlier transactions that the same server wrote in that domain: here numbers 1 to ``number`` of the
source ``domain-server``. (MySQL manual, "GTID Sets"; MariaDB documentation, "gtid_binlog_state".)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cdc_lib.errors import ConfigError
from cdc_lib.model.server_identity import Flavor, ServerIdentity

Interval = tuple[int, int]
"""First and last number of an interval."""

LAST_NUMBER = 2**63 - 1
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_TAG = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,31}")
_RUN = re.compile(r"(\d{1,19})(?:-(\d{1,19}))?")
_MARIADB = re.compile(r"(\d{1,10})-(\d{1,10})-(\d{1,20})")
_U32 = 2**32


@dataclass(frozen=True, slots=True)
class WindowGtids:
    """The GTIDs of a window's transactions.

    Args:
        text: the GTID set as text; empty if there are none.
        complete: whether the set is exact and the last transaction has a GTID.
    """

    text: str = ""
    complete: bool = False


NO_GTIDS = WindowGtids()
"""For a window whose transactions have no GTIDs."""


@dataclass(frozen=True, slots=True)
class GtidSet:
    """Transactions by source; intervals are sorted, disjoint and not adjacent.

    Args:
        flavor: flavor of the server that wrote them.
        runs: intervals by source: ``uuid``, ``uuid:tag``, or ``domain-server``.
    """

    flavor: Flavor
    runs: Mapping[str, tuple[Interval, ...]]

    @classmethod
    def of(cls, flavor: Flavor, runs: Iterable[tuple[str, Interval]]) -> GtidSet:
        """Return the set of intervals in any order; on MariaDB each reaches back to the first number."""
        found: dict[str, list[Interval]] = {}
        for source, (first, last) in runs:
            found.setdefault(source, []).append((1 if flavor == "mariadb" else first, last))
        return cls(flavor, {source: _joined(found[source]) for source in sorted(found)})

    @classmethod
    def parse(cls, flavor: Flavor, text: str) -> GtidSet:
        """Read a set as the servers write it.

        Raises:
            ConfigError: the text is not a valid GTID set of this flavor.
        """
        parts = [part for part in re.sub(r"\s", "", text).split(",") if part]
        read = _mariadb_part if flavor == "mariadb" else _mysql_part
        return cls.of(flavor, (run for part in parts for run in read(part, text)))

    def __str__(self) -> str:
        """Write the set as the servers do; the same set gives the same text."""
        if self.flavor == "mariadb":
            order = sorted(self.runs, key=lambda source: [int(part) for part in source.split("-")])
            return ",".join(f"{source}-{self.runs[source][-1][1]}" for source in order)
        shown = (f"{source}:{':'.join(_run_text(run) for run in runs)}" for source, runs in self.runs.items())
        return ",".join(shown)

    def __bool__(self) -> bool:
        """Whether it is not empty."""
        return bool(self.runs)

    def union(self, other: GtidSet) -> GtidSet:
        """Return the union of both sets."""
        return GtidSet.of(self.flavor, (*_flat(self.runs), *_flat(other.runs)))

    def minus(self, other: GtidSet) -> GtidSet:
        """Return the difference; on MariaDB whole sources that are further in this set."""
        left: list[tuple[str, Interval]] = []
        for source, runs in self.runs.items():
            for run in runs:
                left += [(source, part) for part in _without(run, other.runs.get(source, ()))]
        return GtidSet.of(self.flavor, left)

    def common(self, other: GtidSet) -> GtidSet:
        """Return the intersection."""
        if self.flavor == "mysql":
            return self.minus(self.minus(other))
        both = self.runs.keys() & other.runs.keys()
        return GtidSet.of(self.flavor, ((s, min(self.runs[s][-1], other.runs[s][-1])) for s in both))

    def lacks(self, other: GtidSet) -> GtidSet:
        """Return the transactions of the other set that a server with this set does not have.

        MariaDB numbers the transactions of a domain across servers. So the last transaction of a domain implies all earlier
        ones of the domain, also those of servers that are not in this set.
        """
        return other.last_of_domains().minus(self) if self.flavor == "mariadb" else other.minus(self)

    def last_of_domains(self) -> GtidSet:
        """Return only the source with the greatest number in each domain; the set itself on MySQL."""
        if self.flavor == "mysql":
            return self
        last: dict[str, str] = {}
        for source in self.runs:
            domain = source.partition("-")[0]
            best = last.setdefault(domain, source)
            if self.runs[source][-1][1] > self.runs[best][-1][1]:
                last[domain] = source
        return GtidSet(self.flavor, {source: self.runs[source] for source in sorted(last.values())})

    def widened(self, known: GtidSet) -> GtidSet:
        """Return the set with all servers that are known to have written into its domains.

        Users and ``gtid_slave_pos`` name one server for a domain, and mean all earlier transactions of the domain. A server that
        the set names keeps its number. One that is added may get a number that it never wrote: the result says which
        transactions are in the set, and must not be asked for the last one of a domain.
        """
        if self.flavor == "mysql":
            return self
        upto = {source.partition("-")[0]: runs[-1] for source, runs in self.last_of_domains().runs.items()}
        more = (
            (s, (1, min(r[-1][1], upto[d][1])))
            for s, r in known.runs.items()
            if (d := s.partition("-")[0]) in upto and s not in self.runs
        )
        return GtidSet.of(self.flavor, (*_flat(self.runs), *more))

    @property
    def count(self) -> int:
        """Number of transactions."""
        return sum(last - first + 1 for runs in self.runs.values() for first, last in runs)


def is_at_or_after(gtid: str, first: str) -> bool:
    """Whether a transaction is known to be another one, or to come after it in every binlog that has both.

    A MariaDB server numbers the transactions of a domain, a MySQL server its own. Transactions of different domains or MySQL
    servers have no order.

    Args:
        gtid: of the transaction; empty without one.
        first: of the other one; empty without one.
    """
    separator = ":" if ":" in gtid else "-"
    (source, _, number), (other, _, least) = gtid.rpartition(separator), first.rpartition(separator)
    if separator == "-":
        source, other = source.partition("-")[0], other.partition("-")[0]
    return bool(source) and source == other and int(number) >= int(least)


def was_committed_at(server: ServerIdentity, gtid: str) -> bool:
    """Whether a transaction was committed at a server first, and has its time from that server's clock."""
    if server.flavor == "mariadb":
        return gtid.split("-")[1] == str(server.server_id)
    return gtid.partition(":")[0].lower() == server.server_uuid.lower()


def _flat(runs: Mapping[str, tuple[Interval, ...]]) -> list[tuple[str, Interval]]:
    return [(source, run) for source, found in runs.items() for run in found]


def _joined(runs: Iterable[Interval]) -> tuple[Interval, ...]:
    joined: list[Interval] = []
    for first, last in sorted(runs):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return tuple(joined)


def _without(run: Interval, others: Iterable[Interval]) -> list[Interval]:
    first, last = run
    left: list[Interval] = []
    for begin, end in others:
        if end < first or begin > last:
            continue
        if begin > first:
            left.append((first, begin - 1))
        first = end + 1
    return [*left, (first, last)] if first <= last else left


def _run_text(run: Interval) -> str:
    return str(run[0]) if run[0] == run[1] else f"{run[0]}-{run[1]}"


def _mysql_part(source_set: str, text: str) -> list[tuple[str, Interval]]:
    source, *rest = source_set.split(":")
    if not _UUID.fullmatch(source) or not rest:
        raise _wrong(text, "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-77")
    uuid = source.lower()
    name, intervals = uuid, []
    for part in rest:
        if match := _RUN.fullmatch(part):
            run = int(match[1]), int(match[2] or match[1])
            if not 1 <= run[0] <= run[1] < LAST_NUMBER:
                raise _wrong(text, "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-77")
            intervals.append((name, run))
        elif _TAG.fullmatch(part):
            name = f"{uuid}:{part.lower()}"
        else:
            raise _wrong(text, "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-77")
    return intervals


def _mariadb_part(part: str, text: str) -> list[tuple[str, Interval]]:
    match = _MARIADB.fullmatch(part)
    if match is None or int(match[1]) >= _U32 or int(match[2]) >= _U32 or not 1 <= int(match[3]) <= LAST_NUMBER:
        raise _wrong(text, "0-1-77")
    return [(f"{int(match[1])}-{int(match[2])}", (1, int(match[3])))]


def _wrong(text: str, example: str) -> ConfigError:
    return ConfigError(f"{text[:200]!r} is not a set of GTIDs of this server", hint=f"It looks like {example}.")
