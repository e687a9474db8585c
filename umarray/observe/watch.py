"""watch: a block, or a function, and what moved while it ran."""

from __future__ import annotations

import functools
import inspect
import sys
import threading
from collections.abc import Callable
from time import perf_counter
from types import TracebackType
from typing import Any, NoReturn, TypeVar, overload

from umarray import html
from umarray.drivers import get_driver
from umarray.drivers.base import Driver, Mode
from umarray.errors import ClosedError
from umarray.observe.charge import charge
from umarray.observe.listening import MOST, Listening, quietly
from umarray.observe.recording import Recording, Stamped
from umarray.observe.report import WatchReport
from umarray.residency.state import state_of

_Function = TypeVar("_Function", bound=Callable[..., Any])
_last: watch | None = None


class watch(html.Shown):
    """A `with` block, or a decorator, that counts what moved.

    Parameters
    ----------
    sync : bool
        Wait for the devices at the beginning and at the end, so that it counts the work that was queued inside, to its
        end, and none that was queued before. Without it nothing waits, and work that is still running is in it in part.

    Attributes
    ----------
    report : WatchReport
        What happened: up to now while the block is open, frozen once it has ended.
    recording : Recording
        Every record behind the report, in order of time.

    Raises
    ------
    ClosedError
        Entered a second time.

    Notes
    -----
    Watches nest and overlap, and exceptions pass. Counts what the whole process does, in all threads; blocks are
    counted in the thread that watches, and in others where a pool tracks. Enter and leave it in one thread. As a
    decorator each call is watched anew: ``function.watch`` is that of the call that ended last. Figures by array rest
    on the last 100,000 records; the sums on all.

    Examples
    --------
    >>> import umarray as um
    >>> with um.pool("1MiB"), um.watch() as w:
    ...     x = um.zeros(1000, "f8")
    >>> w.report.allocations, w.report.peak_bytes
    (1, 8192)
    """

    def __init__(self, sync: bool = False) -> None:
        if not isinstance(sync, bool):
            raise TypeError(f"sync must be True or False, not {sync!r}: write @um.watch() to decorate a function")
        self.sync = sync
        self._state = "new"
        self._listening: Listening | None = None
        self._records: list[Stamped] = []
        self._report: WatchReport | None = None
        self._recording: Recording | None = None
        self._lock = threading.RLock()

    def __enter__(self) -> watch:
        if self._state != "new":
            raise ClosedError("this watch was entered before: make a new one for each block")
        driver = get_driver()
        if self.sync:
            _wait(driver)
        self._state = "open"
        self._listening = listening = Listening(driver)
        listening.begin(sys._getframe(1))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        global _last
        if self._state != "open" or self._listening is None:
            raise ClosedError(f"this watch is not open: it is {self._state}")
        try:
            if self.sync:
                if error is None:
                    _wait(self._listening.driver)
                else:
                    quietly(lambda: _wait(self._driver), None)
        finally:
            self._listening.end(sys._getframe(1))
            self._state = "closed"
            _last = self

    @overload
    def __call__(self, function: _Function) -> _Function: ...
    @overload
    def __call__(self, function: Any) -> Any: ...
    def __call__(self, function: Any) -> Any:
        """Watch every call of a function."""
        if not callable(function) or inspect.isclass(function):
            raise TypeError(f"watch decorates a function, not {function!r}")
        later = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
        if any(is_one(function) for is_one in later):
            name = getattr(function, "__qualname__", repr(function))
            raise TypeError(f"{name} only begins when it is called: write `with um.watch()` inside it instead")

        @functools.wraps(function)
        def watched(*args: Any, **kwargs: Any) -> Any:
            with watch(self.sync) as one:
                watched.watch = one  # type: ignore[attr-defined]
                try:
                    return function(*args, **kwargs)
                finally:
                    watched.watch = one  # type: ignore[attr-defined]  # not that of a call inside this one

        watched.watch = None  # type: ignore[attr-defined]
        return watched

    @property
    def report(self) -> WatchReport:
        with self._lock:
            if self._report is not None:
                return self._report
            report = self._make()
            if self._state == "closed":
                self._report = report
            return report

    @property
    def recording(self) -> Recording:
        with self._lock:
            if self._recording is not None:
                return self._recording
            self._take()
            recording = Recording(self._opened().header(), tuple(self._records))
            if self._state == "closed":
                self._recording = recording
            return recording

    def as_dict(self) -> dict[str, Any]:
        """The report as plain values, for JSON."""
        return self.report.as_dict()

    def __str__(self) -> str:
        return "watch, not entered yet" if self._state == "new" else str(self.report)

    def __repr__(self) -> str:
        return f"<watch, {self._state}>"

    def _repr_html_(self) -> str:
        return html.page(str(self)) if self._state == "new" else self.report._repr_html_()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a watch cannot be copied or pickled: take its report, or as_dict()")

    @property
    def _driver(self) -> Driver:
        return self._opened().driver

    def _opened(self) -> Listening:
        if self._listening is None:
            raise ClosedError("this watch was not entered yet: write `with um.watch() as w:`")
        return self._listening

    def _take(self) -> None:
        self._records += self._opened().take()
        self._records.sort(key=lambda one: one.at)
        excess = len(self._records) - 2 * MOST
        if excess > 0:
            self._opened().lost += excess
            del self._records[:excess]

    def _make(self) -> WatchReport:
        listening = self._opened()
        self._take()
        tally, blocks = listening.tally, listening.blocks
        return WatchReport(
            seconds=(listening.ended or perf_counter()) - listening.began,
            counts=listening.counts(),
            requests=tally.requests(),
            stalls=tally.stalls,
            stall_seconds=tally.stall_seconds,
            allocations=blocks.allocations,
            allocated_bytes=blocks.total_bytes,
            peak_bytes=blocks.peak_bytes,
            alive_bytes=blocks.current_bytes,
            escapes=tuple(tally.escapes),
            arrays=charge(self._records),
            sources=listening.about(),
            reasons=listening.reasons,
            lost=listening.lost,
            synchronized=self.sync or listening.driver.mode is Mode.HOST,
        )


def last_watch() -> watch | None:
    """The watch that ended last, in any thread; None before there is one."""
    return _last


def _wait(driver: Driver) -> None:
    if driver.mode is not Mode.HOST:
        for device in range(driver.device_count()):
            state_of(driver).streams.settle(device)  # where a prefetch blocks, its call may still be to come
            driver.synchronize(None, device)
