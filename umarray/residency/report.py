"""residency: where an array was last asked to be, on what evidence, and which advice stands on it.

Asked is not moved: no runtime says cheaply where pages are, so nothing here claims to know.
"""

from __future__ import annotations

from dataclasses import dataclass

from umarray import html
from umarray.drivers import get_driver
from umarray.drivers.base import Array, Attribute, Driver
from umarray.errors import DriverError
from umarray.places import Place
from umarray.residency.ledger import Standing
from umarray.residency.spans import Span, layout_of, lifted, spans_of
from umarray.residency.state import state_of
from umarray.sizes import format_size


@dataclass(frozen=True, slots=True)
class Residency(html.Shown):
    """What is known of an array's memory."""

    kind: str
    """"managed", "device", "pinned" or "host"; only managed memory moves."""
    nbytes: int
    """Bytes of the pages that the array spans."""
    last_asked: Place | None
    """The one place that all of it was last asked to be at; None where there is none, or several."""
    evidence: str
    """Who says so: "runtime", "umarray's own record", or "none"."""
    source: str
    """The same in words."""
    advice: tuple[Standing, ...]
    """What open scopes keep on its pages. Advice set by others is not seen here."""

    def __str__(self) -> str:
        return (
            f"{self.kind} memory, {format_size(self.nbytes)}; last asked to be at: {self._asked()} "
            f"({self.source}); advice standing: {self._said()}"
        )

    def _repr_html_(self) -> str:
        rows = [
            ("last asked to be at", self._asked()),
            ("who says so", self.source),
            ("advice standing", self._said()),
        ]
        return html.page(f"{self.kind} memory, {format_size(self.nbytes)}", html.pairs(rows))

    def _asked(self) -> str:
        return "no one place" if self.last_asked is None else str(self.last_asked)

    def _said(self) -> str:
        said = [f"{one.advice}{'' if one.place is None else f' {one.place}'}" for one in self.advice]
        return ", ".join(said) or "none"


def residency(x: Array) -> Residency:
    """What is known of where `x` was asked to be.

    Parameters
    ----------
    x : array
        A CuPy, NumPy or torch array, a view of any kind.

    Raises
    ------
    TypeError
        `x` is no array.

    Examples
    --------
    >>> import numpy as np
    >>> from umarray.residency.report import residency
    >>> residency(np.ones(3)).kind
    'host'
    """
    x = lifted(x)
    driver, layout = get_driver(), layout_of(x)
    state = state_of(driver)
    spans = spans_of([x], driver.find, driver.page_size)
    pages = spans.outward()
    if not pages:
        start, stop = layout.range
        found = driver.find(start) if stop > start else None
        kind = found.kind.value if found is not None else "host" if layout.device is None else "device"
        source = "it has no elements" if start == stop else "not managed memory, so nothing can be asked"
        return Residency(kind, stop - start, None, "none", source, ())
    span = pages[0]
    last_asked, evidence, source = _runtime_says(driver, span) or _we_say(state.asked.places(span))
    advice = state.ledger.standing([one for ranges in spans.ranges.values() for one in ranges])
    return Residency("managed", span.nbytes, last_asked, evidence, source, advice)


def _runtime_says(driver: Driver, span: Span) -> tuple[Place | None, str, str] | None:
    try:
        place = driver.read_range(span.start, span.nbytes, Attribute.LAST_PREFETCH_LOCATION)
    except DriverError:
        return None
    if place is None:
        return None
    if place is False:
        return None, "runtime", "the runtime names no last prefetch location: none, or several"
    return place, "runtime", "the runtime's last prefetch location: asked, not where it is"


def _we_say(places: dict[Place | None, int]) -> tuple[Place | None, str, str]:
    if set(places) == {None}:
        return None, "none", "the runtime cannot say, and umarray has asked for nothing"
    if len(places) == 1:
        return next(iter(places)), "umarray's own record", "what umarray asked; the runtime cannot say"
    told = ", ".join(f"{'nobody' if place is None else place}: {format_size(n)}" for place, n in places.items())
    return None, "umarray's own record", f"parts were asked differently ({told})"
