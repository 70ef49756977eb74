"""``cdc cursor locate``: where a time, a set of GTIDs or a position lies in the binlog."""

from __future__ import annotations

from typing import Annotated

import typer

from cdc_lib import requests
from cdc_lib.cli.context import AsJson, SourceName, config_of, find
from cdc_lib.cli.output import print_json, size, table
from cdc_lib.cli.pipelines import open_pipeline
from cdc_lib.config.start import StartAt, position, timestamp
from cdc_lib.errors import ConfigError
from cdc_lib.model.results import LocatedPosition

Time = Annotated[str | None, typer.Option("--time", help="All that committed then or later: 2026-11-21T06:00:00Z.")]
Gtid = Annotated[str | None, typer.Option("--gtid", help="All transactions that are not in this set of GTIDs.")]
At = Annotated[str | None, typer.Option("--position", help="file:offset; inside a transaction: its beginning.")]


def locate(
    context: typer.Context,
    source: SourceName,
    time: Time = None,
    gtid: Gtid = None,
    at: At = None,
    as_json: AsJson = False,
) -> None:
    """Show where a time, a set of GTIDs or a position lies in the server's binlog; no cursor moves.

    Example:
        cdc cursor locate shop --time 2026-11-21T06:00:00Z
        cdc cursor locate shop --position binlog.000012:1079 --json
    """
    found = requests.locate(open_pipeline(config_of(find(context, source))), start_of(time, gtid, at))
    if as_json:
        print_json(found)
    else:
        show_located(found)


def start_of(time: str | None, gtid: str | None, at: str | None) -> StartAt:
    """Return the position that the options name.

    Raises:
        ConfigError: they name none or several, or it is not valid.
    """
    if sum(value is not None for value in (time, gtid, at)) != 1:
        raise ConfigError(
            "name exactly one position", hint="--time 2026-11-21T06:00:00Z, --gtid SET or --position binlog.000012:4."
        )
    try:
        if time is not None:
            return StartAt(timestamp=timestamp(time))
        return StartAt(position=position(at)) if at is not None else StartAt(gtid=gtid)
    except ValueError as error:
        raise ConfigError(str(error), hint="cdc cursor locate --help shows the forms.") from error


def show_located(found: LocatedPosition) -> None:
    """Print a located position as a table."""
    checkpoint = found.checkpoint
    rows = [
        ("server", str(checkpoint.identity)),
        ("position", str(checkpoint.position)),
        ("last commit before it", f"{checkpoint.time:%Y-%m-%d %H:%M:%S.%f} UTC" if checkpoint.time else "unknown"),
        ("GTIDs before it", checkpoint.gtid_set or "none"),
        ("after it", f"{size(found.bytes_to_end)} to the end of the binlog, {found.binlog_end}"),
    ]
    if found.cursor is not None:
        way = f"{'after' if found.is_after_cursor else 'before'} {found.cursor}"
        known = found.bytes_to_cursor is not None
        far = size(abs(found.bytes_to_cursor or 0)) if known else "an unknown number of bytes"
        rows.append(("from the cursor", f"{far} {way}{'' if known else ', whose file the server no longer has'}"))
    table(("", "found"), rows)
