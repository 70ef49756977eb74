"""What the test of a connection answers: one line for each finding, in as many characters as Airflow takes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk import BaseHook

from cdc_lib.errors import CdcError
from cdc_lib.model.pace import counted

if TYPE_CHECKING:
    from airflow.sdk import Connection

    from cdc_lib.model.finding import Finding

MOST = 2000
"""Characters of an answer from a worker. Airflow 3.3 takes a longer one for a test that failed, and shows nothing of it."""

_LEVELS = ("error", "unknown", "warning", "info", "ok")


class TestedConnectionHook(BaseHook):
    """The hook of a connection type of this package, whose Test button tries what a run needs.

    Args:
        conn_id: id of the connection; by default the one that the type names.
    """

    __test__ = False  # pytest takes it for a class of tests
    conn_name_attr = "conn_id"
    default_conn_name: ClassVar[str]

    def __init__(self, conn_id: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.conn_id = conn_id or self.default_conn_name

    def test_connection(self) -> tuple[bool, str]:
        """Return whether a run can work with the connection, and one line for each finding."""
        try:
            return answer_of(self._findings(self.get_connection(self.conn_id)))
        except CdcError as error:
            return False, line_of("error", str(error))

    @abstractmethod
    def _findings(self, connection: Connection) -> Iterable[Finding]:
        """Test the connection."""


def answer_of(findings: Iterable[Finding]) -> tuple[bool, str]:
    """Return whether no finding is bad, and one line for each.

    If they are too many, errors come first and the last lines are counted: ``cdc doctor`` prints them all.
    """
    found = list(findings)
    lines = [line_of(one.level, f"{one.what}. {one.hint}" if one.hint else one.what) for one in found]
    if sum(len(line) + 1 for line in lines) > MOST:
        first = sorted(range(len(found)), key=lambda number: _LEVELS.index(found[number].level))
        lines = _shortened([lines[number] for number in first])
    return not any(one.is_bad for one in found), "\n".join(lines)


def line_of(level: str, text: str) -> str:
    """Return a finding as one line."""
    line = f"{level}: {' '.join(text.split())}"
    return line if len(line) <= MOST else f"{line[: MOST - 1]}…"


def _shortened(lines: list[str]) -> list[str]:
    """Return as many lines as there is room for, and how many are left out."""
    kept, room = 0, MOST - len(_left_out(len(lines)))
    while room > len(lines[kept]):  # and its line break
        room -= len(lines[kept]) + 1
        kept += 1
    if kept == 0:
        return [f"{lines[0][: room - 2]}…", _left_out(len(lines) - 1)]
    return [*lines[:kept], _left_out(len(lines) - kept)]


def _left_out(number: int) -> str:
    return f"and {counted(number, 'more line')}; cdc doctor prints all"
