"""Elements of an HTML page: tables, paragraphs, pictures."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from html import escape

import numpy as np
import pandas as pd

from tsrnn.evaluation import format_p_value

_STYLE = """
:root { --ink: #222; --grey: #666; --line: #ddd; --best: #eef4fa; }
* { box-sizing: border-box; }
body { color: var(--ink); font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 56rem;
  padding: 1rem; background: #fff; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0.5rem 0; }
h2 { font-size: 1.2rem; margin: 2rem 0 0.5rem; border-top: 1px solid var(--line);
  padding-top: 1rem; }
h3 { font-size: 1rem; margin: 1rem 0 0.25rem; }
p, li { max-width: 44rem; }
.small { color: var(--grey); font-size: 0.85rem; }
.picture { overflow-x: auto; }
.panels { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 0.85rem;
  margin: 0.5rem 0; }
th, td { padding: 0.2rem 0.6rem; text-align: right; white-space: nowrap; }
th, td.text { white-space: normal; overflow-wrap: anywhere; }
td.text { text-align: left; }
th { font-weight: 600; }
thead th { border-bottom: 1px solid var(--ink); }
tbody th, th.stub { text-align: left; }
tbody th { font-weight: 500; }
tbody tr + tr { border-top: 1px solid var(--line); }
td.best { background: var(--best); font-weight: 600; }
img { display: block; max-width: 100%; height: auto; margin: 0.5rem 0; }
pre { font-size: 0.75rem; line-height: 1.35; overflow-x: auto; padding: 0.5rem;
  border: 1px solid var(--line); }
@media screen and (max-width: 57rem) {
  thead { display: none; }
  table, tbody { display: block; }
  tr { display: grid; grid-template-columns: repeat(auto-fill, minmax(8.5rem, 1fr));
    column-gap: 1rem; padding: 0.3rem 0; }
  th, td.text { grid-column: 1 / -1; }
  th, td { padding: 0.05rem 0; }
  td { display: flex; justify-content: space-between; gap: 0.5rem; }
  td::before, tbody th::before { content: attr(data-label); color: var(--grey);
    font-weight: 400; white-space: normal; overflow-wrap: anywhere; text-align: left; }
  tbody th:first-child { font-weight: 600; }
  tbody th::before { margin-right: 0.5rem; }
  .picture img { max-width: none; min-width: min(100%, 30rem); width: 34rem; }
}
@media print {
  body { font-size: 10pt; max-width: none; padding: 0; }
  h2 { break-after: avoid; }
  table, img, tr { break-inside: avoid; }
  .picture, pre { overflow: visible; }
  .panels { grid-template-columns: 1fr 1fr; }
  pre { white-space: pre-wrap; font-size: 7pt; }
  table { font-size: 8pt; }
  th, td { padding: 0.1rem 0.35rem; }
}
"""

_NOTHING = "–"
# In letters: width of the page, padding of a cell, longest unwrapped text.
_PAGE, _GAP, _LONG = 104, 3, 40


def page(title: str, body: Iterable[str]) -> str:
    """Self-contained page."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{escape(title)}</h1>\n" + "\n".join(body) + "\n</body>\n</html>\n"
    )


def heading(text: str, level: int = 2) -> str:
    """Heading of a section."""
    return f"<h{level}>{escape(text)}</h{level}>"


def paragraph(text: str, *, small: bool = False) -> str:
    """Paragraph, optionally in small print."""
    return f'<p class="small">{escape(text)}</p>' if small else f"<p>{escape(text)}</p>"


def bullets(sentences: Iterable[str]) -> str:
    """List of sentences; empty if there are none."""
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    return f"<ul>{items}</ul>" if items else ""


def text_block(text: str) -> str:
    """Preformatted text."""
    return f"<pre>{escape(text)}</pre>"


def picture(svg: str, alt: str) -> str:
    """Embedded drawing with the description `alt`."""
    return f'<div class="picture">{_image(svg, alt)}</div>'


def panels(drawings: Iterable[tuple[str, str]]) -> str:
    """Drawings side by side, or below one another on a narrow page."""
    return f'<div class="panels">{"".join(_image(svg, alt) for svg, alt in drawings)}</div>'


def _image(svg: str, alt: str) -> str:
    data = base64.b64encode(svg.encode()).decode()
    return f'<img alt="{escape(alt)}" src="data:image/svg+xml;base64,{data}">'


def table(frame: pd.DataFrame, best: pd.DataFrame | None = None, digits: int = 4) -> str:
    """Table of a frame, with highlighted cells where `best` is true.

    The largest number of a column has `digits` digits. Columns that do not fit the page go into
    further tables; on a phone each row is a block.
    """
    marks = np.zeros(frame.shape, dtype=bool) if best is None else best.to_numpy()
    columns = [_format_column(frame.iloc[:, j], digits) for j in range(frame.shape[1])]
    names = [escape(str(name)) for name in frame.columns]
    front = [escape(str(name or "")) for name in frame.index.names]
    labels = [label if isinstance(label, tuple) else (label,) for label in frame.index]
    stub = sum(
        max(len(name), *(min(len(str(label[k])), _LONG) for label in labels)) + _GAP
        for k, name in enumerate(front)
    )
    widths = [
        max(min(len(name), _LONG), min(max(map(len, column)), _LONG)) + _GAP
        for name, column in zip(names, columns, strict=True)
    ]
    lines = []
    for part in _fit_columns(widths, _PAGE - stub):
        head = "".join(f'<th class="stub">{name}</th>' for name in front)
        head += "".join(f"<th>{names[j]}</th>" for j in part)
        lines.append(f"<table><thead><tr>{head}</tr></thead>\n<tbody>")
        for i, label in enumerate(labels):
            cells = [
                f'<th scope="row" data-label="{name}">{escape(str(value))}</th>'
                for name, value in zip(front, label, strict=True)
            ]
            for j in part:
                kind = " best" * bool(marks[i, j]) + " text" * (widths[j] == _LONG + _GAP)
                kind = f' class="{kind.strip()}"' if kind else ""
                cells.append(f'<td{kind} data-label="{names[j]}">{escape(columns[j][i])}</td>')
            lines.append(f"<tr>{''.join(cells)}</tr>")
        lines.append("</tbody></table>")
    return "\n".join(lines)


def _fit_columns(widths: list[int], room: int) -> list[list[int]]:
    """Group column indices into parts that are no wider than `room`."""
    parts: list[list[int]] = [[]]
    for j, width in enumerate(widths):
        if parts[-1] and sum(widths[i] for i in parts[-1]) + width > room:
            parts.append([])
        parts[-1].append(j)
    return parts


def _format_column(column: pd.Series, digits: int) -> list[str]:
    values = column.tolist()
    if not pd.api.types.is_float_dtype(column.dtype):
        words = ("no", "yes")
        return [words[int(v)] if isinstance(v, bool | np.bool_) else str(v) for v in values]
    finite = np.abs([value for value in values if np.isfinite(value)])
    largest = finite.max(initial=0.0)
    if largest >= 1e6 or 0 < largest < 1e-3:
        return [_NOTHING if np.isnan(v) else f"{v:.{digits}g}" for v in values]
    decimals = max(0, digits - 1 - int(np.floor(np.log10(max(largest, 1e-3)))))
    return [_NOTHING if np.isnan(v) else f"{v:.{decimals}f}" for v in values]


def p_values(frame: pd.DataFrame) -> pd.DataFrame:
    """Format p-values with three decimals, or as a bound."""
    return frame.map(format_p_value, missing=_NOTHING)
