"""Tables for notebooks: well formed, escaped, no wider than their cell."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from typing import Any

import pytest

import umarray as um
from umarray import drivers, html
from umarray.calibration import Calibration, Curve
from umarray.drivers.host import HostDriver
from umarray.memory import Pool

EVIL = "<script>alert('x')</script>&\"'"


class Checked(HTMLParser):
    """Every tag is closed in its turn; the text of every cell."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.cells: list[str] = []
        self.styles: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.seen.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")
            self.styles.append(dict(attrs)["style"] or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("td", "th"):
            self.cells[-1] += data


def test_everything_is_escaped() -> None:
    text = html.page(EVIL, html.pairs([(EVIL, EVIL)]), html.table([EVIL], [[EVIL]]), html.note(EVIL))
    found = Checked(text)
    assert "script" not in found.seen
    assert found.cells == [EVIL] * 4


def test_long_words_break_and_lines_are_kept() -> None:
    name, value, head, cell = Checked(html.pairs([("a", "x" * 10_000)]) + html.table(["b"], [["y\nz"]])).styles
    for style in (value, cell):
        assert "overflow-wrap:anywhere" in style and "white-space:pre-line" in style
    assert "nowrap" in name and "nowrap" in head  # short words of ours: broken, they cannot be read
    assert "max-width:100%" in html.page("t")


def test_a_column_of_numbers_stands_to_the_right_and_another_to_the_left() -> None:
    rows = [["a", 1, "3.0 MiB", "1.5 ms", "4 of them"], ["b", 2_000, "512 B", "-2%", 7]]
    found = Checked(html.table(["name", "count", "size", "time", "mixed"], rows))
    sides = ["right" if "text-align:right" in style else "left" for style in found.styles]
    assert sides == ["left", "right", "right", "right", "left"] * 3


def test_a_table_of_no_rows_has_its_head() -> None:
    assert Checked(html.table(["a", "b"], [])).cells == ["a", "b"]


def test_rows_that_do_not_fit_are_refused() -> None:
    with pytest.raises((ValueError, IndexError)):
        html.table(["a", "b"], [["only one"]])


def test_a_terminal_gets_the_text() -> None:
    class Thing(html.Shown):
        def __repr__(self) -> str:
            return "Thing(raw=...)"

        def __str__(self) -> str:
            return "a thing"

    pretty = pytest.importorskip("IPython.lib.pretty")
    assert pretty.pretty(Thing()) == "a thing"


# What people print and notebooks show: as text and as HTML, never as a raw repr


@pytest.fixture
def host() -> Iterator[None]:
    before = drivers.set_driver(HostDriver(("a test wants it",)))
    yield
    drivers.set_driver(before)


def pool_with_an_escape() -> Pool:
    made: Pool = um.pool("1MiB", track=True)
    with made, made.epoch("<b>"):
        kept.append(um.zeros(1000))
    return made


def a_pipeline() -> um.Pipeline:
    with um.Pipeline([1, 2], lambda item, slot: None, lambda batch: 0, like=um.Spec(3)) as pipeline:
        list(pipeline)
    return pipeline


def a_watch() -> um.watch:
    with um.watch() as watched:
        kept.append(um.zeros(10))
    return watched


kept: list[object] = []
SHOWN: dict[str, Callable[[], Any]] = {
    "capabilities": um.capabilities,
    "pool": pool_with_an_escape,
    "statistics": lambda: pool_with_an_escape().statistics(),
    "residency": lambda: um.residency(um.zeros(3)),
    "report": lambda: a_pipeline().report(),
    "calibration": lambda: Calibration("a card", True, prefetch=Curve(((4096, 1e-5), (1 << 20, 1e-4)))),
    "tally": lambda: um.move(um.zeros(3), to=um.HOST),
    "watch": a_watch,
    "watch's report": lambda: a_watch().report,
    "explanation": lambda: um.explain(a_watch()),
}


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize("name", SHOWN)
def test_what_is_shown(name: str) -> None:
    pretty = pytest.importorskip("IPython.lib.pretty")
    shown = SHOWN[name]()
    found = Checked(shown._repr_html_())
    assert "b" in found.seen and all(one in ALLOWED for one in found.seen)
    text = "".join([pretty.pretty(shown), str(shown), *found.cells])
    assert "object at 0x" not in text and not re.search(r"\w\(\w+=", text.replace("max_", ""))
    assert all(len(line) < 400 for line in pretty.pretty(shown).splitlines())
    kept.clear()


ALLOWED = {"div", "b", "table", "thead", "tbody", "tr", "th", "td"}


@pytest.mark.usefixtures("host")
def test_an_escape_is_told_where_a_pool_is_shown() -> None:
    pool = pool_with_an_escape()
    cells = Checked(pool._repr_html_()).cells
    assert "<b>" in cells and "8.0 KiB" in cells
    assert repr(pool) == "<closed host pool, 1.0 MiB in 1 arena>"
    assert "escaped     8.0 KiB in 1" in str(pool.statistics())
    kept.clear()


def test_a_pool_that_could_not_be_made_has_a_repr() -> None:
    class Half(Pool):
        def __init__(self) -> None:
            raise ValueError("no")

    assert repr(object.__new__(Half)) == "<a pool that could not be made>"
