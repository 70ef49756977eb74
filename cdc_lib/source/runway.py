"""What there is to say of the time until the server purges what the drain needs next."""

from __future__ import annotations

from cdc_lib.model.runway import Keeping, Runway
from cdc_lib.source.facts import ServerFacts
from cdc_lib.source.keeping import enlarge, lengthen
from cdc_lib.source.preflight import Finding

_DRAIN = "Let the source drain. And on the server: "


def judge_runway(facts: ServerFacts, keeping: Keeping, runway: Runway, hours: float) -> Finding:
    """Return a finding: a warning when little is left or nobody can say, an error when the file is gone.

    Args:
        facts: of the server.
        keeping: what makes it purge files.
        runway: of the drain cursor.
        hours: what counts as little; three times what catching up takes does as well.
    """
    file = f"{runway.position.file}, where the drain cursor stands"
    if runway.purged:
        return Finding(
            "error", f"the server no longer has {file}", "Plan: its error names the ways out. " + _statement(facts, keeping, runway)
        )  # fmt: skip
    if runway.is_short(hours):
        return Finding(
            "warning", f"{_left(runway)} {file}; {_backlog(runway)}", _DRAIN + _statement(facts, keeping, runway)
        )
    if runway.unknown:
        hidden = "Ask who runs the server how long it keeps binlog files."
        mend = (
            hidden
            if keeping.seconds is None
            else "Look at the user's grants: REPLICATION SLAVE lets it read binlog files."
        )
        return Finding("warning", f"nobody can say when the server purges {file}: {runway.unknown}", mend)
    if runway.shortest is None:
        return Finding("ok", f"the server does not purge {file} by itself, as far as it tells; {_backlog(runway)}")
    return Finding("ok", f"{_left(runway)} {file}; {_backlog(runway)}")


def _left(runway: Runway) -> str:
    left = runway.shortest or 0.0
    if runway.room_seconds is not None and left == runway.room_seconds:
        return f"by its size limit the server may purge in {_span(left)}, at the pace at which it writes now,"
    if left == 0:
        return "with its next rotation the server may purge"
    return f"in {_span(left)}{' at the earliest' if runway.still_written else ''} the server may purge"


def _backlog(runway: Runway) -> str:
    text = f"{runway.bytes_behind / 2**20:.1f} MiB are not drained"
    if runway.catch_up_seconds is None:
        return text
    return f"{text}, {_span(runway.catch_up_seconds)} of work at the rate of the last backlog"


def _statement(facts: ServerFacts, keeping: Keeping, runway: Runway) -> str:
    by_size = runway.room_seconds is not None and runway.shortest == runway.room_seconds
    if by_size or (keeping.seconds is None and keeping.size_variable):
        return enlarge(keeping)
    return lengthen(facts, keeping.seconds or 0.0)


def _span(seconds: float) -> str:
    if seconds < 7200:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.1f} hours" if seconds < 172_800 else f"{seconds / 86_400:.1f} days"
