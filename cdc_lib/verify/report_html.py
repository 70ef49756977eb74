"""A report as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from cdc_lib.model.pace import counted
from cdc_lib.model.verify import FIGURES, Report, RowDifference, TableReport

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; color: #1d2330; background: #f6f7f9; margin: 0 auto; max-width: 72rem; padding: 2rem 1rem }
h1 { font-size: 1.5rem; margin: 0 } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem }
p { margin: .3rem 0 } .dim { color: #667085 }
.state { display: inline-block; padding: .1rem .6rem; border-radius: 1rem; font-weight: 600 }
.same { background: #d9f2e3; color: #14532d } .drift { background: #fde0e0; color: #7f1d1d } .skipped { background: #e6e8ec; color: #475467 }
.wide { overflow-x: auto } table { border-collapse: collapse; background: #fff; width: 100% }
th, td { text-align: left; padding: .35rem .6rem; border-bottom: 1px solid #e6e8ec; vertical-align: top }
td.n { text-align: right; font-variant-numeric: tabular-nums } code { font-size: .85em; overflow-wrap: anywhere }
@media (prefers-color-scheme: dark) {
  body { color: #e6e8ec; background: #14171f } table { background: #1c202b } th, td { border-color: #2d3340 } .dim { color: #98a2b3 }
  .same { background: #14432a; color: #bbf7d0 } .drift { background: #5b1a1a; color: #fecaca } .skipped { background: #2d3340; color: #c0c6d2 }
}
"""

_KINDS = {
    "missing": "not in the lake",
    "extra": "not at the source",
    "different": "other values",
    "copies": "not as often",
}


def page(report: Report) -> str:
    """Return the page."""
    drift = [one for one in report.tables if not one.skipped and not one.clean]
    state = _state("drift", f"{counted(len(drift), 'table')} with drift") if drift else _state("same", "no drift")
    state = _state("skipped", "not compared") if report.compared_nothing else state
    body = [
        f"<h1>{escape(report.source)}: source and lake {state}</h1>",
        f'<p class="dim">{escape(_when(report))}</p>',
        f'<p class="dim">GTIDs: <code>{escape(report.gtid_set)}</code></p>' if report.gtid_set else "",
        _overview(report.tables),
        *(_details(one) for one in report.tables if one.rows or one.uncompared or one.unexamined or one.kept),
    ]
    title = f"{escape(report.source)}: source and lake"
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title><style>{_STYLE}</style>'
    lines = "\n".join(part for part in body if part)
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n{lines}\n</body></html>\n'


def _when(report: Report) -> str:
    times = f"from {report.started_at:%Y-%m-%d %H:%M:%S} to {report.ended_at:%H:%M:%S} UTC"
    return f"The lake was at {report.position} in epoch {report.epoch}; compared {times}."


def _state(kind: str, text: str) -> str:
    return f'<span class="state {kind}">{escape(text)}</span>'


def _overview(tables: Iterable[TableReport]) -> str:
    head = "".join(f"<th>{name}</th>" for name in ("table", "", *FIGURES))
    return f'<div class="wide"><table><tr>{head}</tr>{"".join(map(_line, tables))}</table></div>'


def _line(one: TableReport) -> str:
    name = f"<td>{escape(one.table)}<br><span class=dim>{escape(one.lake_table)}</span></td>"
    if one.skipped:
        return f'<tr>{name}<td colspan="{1 + len(FIGURES)}">{_state("skipped", "not compared")} {escape(one.skipped)}</td></tr>'
    state = _state("same", "same") if one.clean else _state("drift", "drift")
    cells = "".join(f'<td class="n">{figure}</td>' for figure in one.figures)
    return f"<tr>{name}<td>{state}</td>{cells}</tr>"


def _details(one: TableReport) -> str:
    parts = [f"<h2>{escape(one.table)}</h2>"]
    parts += [
        f"<p class=dim>Not compared: <code>{escape(column.column)}</code>, {escape(column.why)}.</p>"
        for column in one.uncompared
    ]
    if one.kept:
        parts.append(f"<p class=dim>{escape(one.kept)}.</p>")
    if one.refused:
        parts.append(f"<p>Not repaired: {escape(one.refused)}.</p>")
    if one.rows:
        shown = len(one.rows)
        more = f"<p class=dim>The first {counted(shown, 'row')}.</p>" if shown < one.drift + one.repaired else ""
        head = "<tr><th>key</th><th>what</th><th>column</th><th>source</th><th>lake</th></tr>"
        parts.append(f'{more}<div class="wide"><table>{head}{"".join(map(_row, one.rows))}</table></div>')
    return "\n".join(parts)


def _row(row: RowDifference) -> str:
    key = ", ".join(f"{name} = {_value(value)}" for name, value in row.key.items())
    what = _KINDS[row.kind]
    if row.kind == "copies":
        what = f"{row.source_copies} times at the source, {row.lake_copies} in the lake"
    if not row.cells:
        return f'<tr><td>{key}</td><td colspan="4">{what}</td></tr>'
    first, *others = (
        f"<td>{escape(cell.column)}</td><td>{_value(cell.source)}</td><td>{_value(cell.lake)}</td>"
        for cell in row.cells
    )
    span = f' rowspan="{len(row.cells)}"' if others else ""
    rest = "".join(f"<tr>{cells}</tr>" for cells in others)
    return f"<tr><td{span}>{key}</td><td{span}>{what}</td>{first}</tr>{rest}"


def _value(text: str | None) -> str:
    return "<i>NULL</i>" if text is None else f"<code>{escape(text)}</code>"
