"""ProgressDisplay of the demo: a live table in a terminal, else a line from time to time."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

LINE_SECONDS = 10


@dataclass
class Figures:
    """The progress at one moment.

    Args:
        doing: what the demo waits for.
        workload: transactions that the workload has done.
        windows: windows of the binlog that are drained.
        chunks: snapshot chunks that are drained.
        rows: changes and snapshot rows in the batches.
        merged: tables in the last cut.
        lag: seconds between the last commit at the source and the last one in the lake; None before the first cut.
        not_merged: bytes of binlog that the lake does not have.
        runs: scheduled runs of the DAG: when, state, seconds.
    """

    doing: str = ""
    workload: int = 0
    windows: int = 0
    chunks: int = 0
    rows: int = 0
    merged: int = 0
    lag: float | None = None
    not_merged: int | None = None
    runs: list[tuple[str, str, float | None]] = field(default_factory=list)

    def line(self) -> str:
        """Return it as one line."""
        good = sum(state == "success" for _, state, _ in self.runs)
        return (
            f"{self.doing}: {self.workload:,} transactions done, {self.windows} windows and {self.chunks} chunks drained, "
            f"{self.rows:,} rows, {self.merged} tables in the lake, lag {seconds(self.lag)}, {good} good runs"
        )


class ProgressDisplay:
    """Shows figures until the ``with`` block ends."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.began = time.monotonic()
        self._last_line = 0.0
        self._live = Live(console=console, refresh_per_second=4, transient=True) if console.is_terminal else None
        self._spinner = Spinner("dots")

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._live:
            self._live.stop()

    def show(self, figures: Figures) -> None:
        """Show the newest figures."""
        if self._live:
            self._live.update(self._picture(figures))
        elif time.monotonic() - self._last_line > LINE_SECONDS:
            self._last_line = time.monotonic()
            self.console.print(
                f"[{self._last_line - self.began:4.0f} s] {figures.line()}", markup=False, soft_wrap=True
            )

    def print(self, text: str) -> None:
        """Print permanent text."""
        self.console.print(text, markup=False, soft_wrap=True, style="yellow")

    def _picture(self, figures: Figures) -> Group:
        self._spinner.update(text=Text(f" {figures.doing} ({time.monotonic() - self.began:.0f} s)", style="bold"))
        now = Table(box=None, padding=(0, 3, 0, 0), header_style="dim")
        row = {
            "shop transactions": f"{figures.workload:,}",
            "windows": str(figures.windows),
            "snapshot chunks": str(figures.chunks),
            "rows drained": f"{figures.rows:,}",
            "lake tables": str(figures.merged),
            "binlog not merged": f"{figures.not_merged / 2**20:.1f} MiB" if figures.not_merged is not None else "?",
            "lag": seconds(figures.lag),
        }
        for name in row:
            now.add_column(name, justify="right")
        now.add_row(*row.values())
        runs = [
            Text(f"  run of {when}  {state}" + (f" in {took:.0f} s" if took else ""), style=_STYLES.get(state, ""))
            for when, state, took in figures.runs[-6:]
        ]
        return Group(self._spinner, now, *runs)


_STYLES = {"success": "green", "failed": "red", "running": "cyan"}


def seconds(value: float | None) -> str:
    """Format a lag; a dash if there is none yet."""
    return "-" if value is None else f"{value:.0f} s"
