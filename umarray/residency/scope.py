"""What every scope is: a `with` block, entered once and left once, whose counts can be read at any time.

A scope does nothing until it is entered, checks every target before its first call, and never replaces an exception.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import TracebackType
from typing import Any, NoReturn, TypeVar

from umarray.drivers import get_driver
from umarray.drivers.base import Array, Driver, check_place
from umarray.errors import ClosedError, SparseViewWarning, UnusedScopeWarning
from umarray.places import Place
from umarray.residency.callers import Line, calling_line
from umarray.residency.spans import Spans, arrays_in, spans_of
from umarray.residency.state import State, state_of
from umarray.residency.tally import Tally
from umarray.residency.telling import tell_begin, tell_end
from umarray.sizes import format_size

_SPARSE = 1 << 20  # bytes that no element of a view touches, from which on a scope warns if they are 3 in 4

_Self = TypeVar("_Self", bound="Scope")


class Scope:
    """What every scope is: entered once, left once, its counts readable at any time.

    Attributes
    ----------
    tally : Tally
        What was asked and what became of it.
    """

    _phase = "broken"  # until a constructor has checked everything
    _serial = 0  # of its records; 0 where nobody listened at its beginning

    def __init__(self, arrays: tuple[Any, ...], places: Iterable[Place], *, found: list[Array] | None = None) -> None:
        """`found`: the arrays of the nests, where somebody collected them already."""
        if not arrays:
            raise TypeError(f"{self._name} needs at least one array, or a dict, list or tuple of arrays")
        self._line = calling_line()
        self._arrays: list[Array] = arrays_in(*arrays) if found is None else found
        self.tally = Tally()
        driver = get_driver()
        for place in places:
            check_place(driver, place)
        self._phase = "new"

    _name = "a scope"

    def __enter__(self: _Self) -> _Self:
        if self._phase != "new":
            raise ClosedError(f"this {self._name} scope was entered before; make a new one for each with block")
        self._phase = "entering"
        try:
            state = state_of(get_driver())
            self._serial = self._tell(state)
            self._begin(state, look_up(self._arrays, state.driver, self.tally, self._line))
        except BaseException:
            self._phase, self._arrays = "closed", []
            tell_end(self._serial, self._name)
            raise
        self._phase = "open"
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._phase != "open":
            raise ClosedError(f"this {self._name} scope is not open: it is {self._phase}")
        self._phase = "closed"
        arrays, self._arrays = self._arrays, []
        self._end(arrays)
        tell_end(self._serial, self._name)

    def __del__(self) -> None:
        if sys is None or sys.is_finalizing():
            return
        if self._phase == "new":
            text = f"this {self._name} scope, made at {self._line}, was never entered and did nothing: write with ...:"
            self._line.warn(text, UnusedScopeWarning)
        elif self._phase == "open":
            self._phase = "closed"
            self._end(self._arrays)

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"this {self._name} scope cannot be copied or pickled: make a new one")

    def __str__(self) -> str:
        return f"{self._name} scope, {self._phase}: {self.tally}"

    def __repr__(self) -> str:
        return f"<{self}>"

    def _tell(self, state: State) -> int:
        """Tell listeners that it begins, and on what; its serial."""
        return tell_begin(self._name, self._line, self._arrays)

    def _begin(self, state: State, spans: Spans) -> None:
        raise NotImplementedError

    def _end(self, arrays: list[Array]) -> None:
        """Undo what is to be undone; never raises, never waits for another thread's scope."""
        raise NotImplementedError


def look_up(arrays: list[Array], driver: Driver, tally: Tally, line: Line) -> Spans:
    """The spans of arrays, counted; views that span far more than they hold are told, once a line."""
    spans = spans_of(arrays, driver.find, driver.page_size)
    tally.arrays, tally.skipped, tally.bytes_between = spans.arrays, spans.skipped, spans.bytes_between
    if spans.bytes_between >= _SPARSE and spans.bytes_between * 4 >= spans.nbytes * 3:
        held, spanned = format_size(spans.nbytes - spans.bytes_between), format_size(spans.nbytes)
        line.warn(
            f"the views given here span {spanned} and have elements in about {held} of it, and hints act on all of it: "
            "give smaller slices, or a contiguous copy",
            SparseViewWarning,
        )
    return spans
