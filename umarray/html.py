"""Small HTML tables for notebooks: everything is escaped, and nothing is wider than its cell of the notebook.

What has a `_repr_html_` builds it from `page`, `pairs` and `table`, so that all of them look alike, and is a `Shown`,
so that IPython in a terminal prints its `str` and no raw repr. Colours are the notebook's own, dark ones too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

_CELL = "padding:0.15em 0.7em 0.15em 0;vertical-align:top;"
_TEXT = f"text-align:left;{_CELL}white-space:pre-line;overflow-wrap:anywhere;"
_NAME = f"text-align:left;{_CELL}white-space:nowrap;"
_FIGURE = f"text-align:right;{_CELL}white-space:nowrap;"
_TABLE = "border-collapse:collapse;margin:0 0 0.4em 0;max-width:100%;font-variant-numeric:tabular-nums;"
_PAGE = "max-width:100%;overflow-x:auto;"
_WORD = 16  # letters: longer words may break anywhere
_NUMBER = re.compile(r"[-+]?[.\d][\d,.]*( ?([KMGT]i)?B| ?[mun]?s| ?%| ?x)?")


class Shown:
    """What a notebook shows as HTML (`_repr_html_`) and a terminal as text (`__str__`)."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # In each class: IPython looks no further than one with a `__repr__` of its own.
        cls._repr_pretty_ = _text  # type: ignore[attr-defined]


def _text(shown: object, printer: Any, cycle: bool) -> None:
    printer.text(str(shown))


def page(title: str, *parts: str) -> str:
    """A title and what stands under it: `parts` are HTML from the other functions here."""
    return f'<div style="{_PAGE}"><div><b>{escape(title)}</b></div>{"".join(parts)}</div>'


def pairs(rows: Iterable[tuple[str, object]]) -> str:
    """Names and what they are, a row each.

    Examples
    --------
    >>> from umarray import html
    >>> "1 &lt; 2" in html.pairs([("so", "1 < 2")])
    True
    """
    lines = [
        f'<tr><th scope="row" style="{_NAME}font-weight:normal;opacity:0.75;">{escape(name)}</th>'
        f'<td style="{_TEXT}">{escape(str(value))}</td></tr>'
        for name, value in rows
    ]
    return f'<table style="{_TABLE}"><tbody>{"".join(lines)}</tbody></table>'


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Rows under a head; a column in which all is numbers (with or without a unit) stands to the right."""
    texts = [[str(value) for value in row] for row in rows]
    styles = [_style([row[column] for row in texts]) for column in range(len(head))]
    titles = "".join(
        f'<th scope="col" style="{style if style is _FIGURE else _NAME}">{escape(name)}</th>'
        for name, style in zip(head, styles, strict=True)
    )
    lines = "".join(
        "<tr>"
        + "".join(f'<td style="{style}">{escape(text)}</td>' for text, style in zip(row, styles, strict=True))
        + "</tr>"
        for row in texts
    )
    return f'<table style="{_TABLE}"><thead><tr>{titles}</tr></thead><tbody>{lines}</tbody></table>'


def note(text: str) -> str:
    """A line of prose."""
    return f'<div style="white-space:pre-line;overflow-wrap:anywhere;">{escape(text)}</div>'


def _style(column: list[str]) -> str:
    if column and all(_NUMBER.fullmatch(text) for text in column):
        return _FIGURE
    longest = max((len(word) for text in column for word in text.split()), default=0)
    return f"{_TEXT}min-width:{min(longest, _WORD)}ch;"  # else words are broken where there is room elsewhere
