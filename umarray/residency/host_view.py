"""host_view: a NumPy array over an array of any mode that is safe to touch.

In managed memory it is the very memory, after waiting for the device. Plain device memory is copied to a pinned shadow
and, if written, copied back on exit. Memory of the host is the memory itself.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable
from time import perf_counter
from types import TracebackType
from typing import Any, NoReturn

import numpy as np

from umarray import events, settings
from umarray.drivers import get_driver
from umarray.drivers.base import Array, Driver, Kind
from umarray.drivers.streams import as_stream
from umarray.errors import ClosedError, UmarrayWarning, UnusedScopeWarning
from umarray.places import HOST
from umarray.residency.callers import calling_line
from umarray.residency.prefetching import Job, issue
from umarray.residency.shadow import HostArray, Shadow, laid_over, sealed
from umarray.residency.spans import layout_of, lifted, spans_of
from umarray.residency.state import state_of
from umarray.residency.tally import Tally

_MODES = ("r", "w", "r+")
_PAYS_FROM = 256 << 10
"""Bytes from which on a prefetch home beats faulting: a call costs about 70 us, the faults of 341 KiB 120 us (H200)."""
_POISON = 0xDB

_log = logging.getLogger("umarray")


class host_view:
    """A `with` block in which an array is a NumPy array, safe to touch.

    Parameters
    ----------
    x : array
        A CuPy, NumPy or torch array, a view of any kind.
    mode : "r", "w" or "r+"
        "r" (the default) is read-only. "w" means that every element is written: what was there need not be brought, and
        an element not written has no defined value. "r+" reads and writes.
    streams : stream or iterable of streams, optional
        Those on which work on `x` was queued. Without them the whole device is waited for, since launches cannot be
        seen; an empty list means that nothing is queued.

    Attributes
    ----------
    waits : int
        How often the host waited for a device, and `waited` for how many seconds.

    Raises
    ------
    TypeError, ValueError
        `x` is no array or has a type that NumPy lacks, an unknown mode, a stream that is none, a write to a read-only
        array or to one whose elements share memory (a broadcast).
    ClosedError
        Entered a second time.

    Notes
    -----
    Queue no device work on `x` while the block is open. Work queued after it, on any stream, sees what was written:
    also when the block raises. Only the elements of `x` are written, never the bytes between them. With
    `UMARRAY_DEBUG=1` a "w" view is filled with a pattern (NaN for floats) first, which shows elements not written.
    After the block the NumPy array is read-only, and in `explicit` mode no longer tied to `x`; slices of it that were
    made in the block stay writable, and what they write then is undefined: drop them.

    Examples
    --------
    >>> import numpy as np, umarray as um
    >>> x = np.arange(4.0)
    >>> with um.host_view(x, "r+") as h:
    ...     h[0] = 7
    >>> float(x[0])
    7.0
    """

    _phase = "broken"

    def __init__(self, x: Array, mode: str = "r", streams: Any = None) -> None:
        if not isinstance(mode, str) or mode not in _MODES:
            raise (ValueError if isinstance(mode, str) else TypeError)(
                f'unknown mode {mode!r} of a host view: give "r", "w" or "r+"'
            )
        x = lifted(x)
        self._x, self._mode = x, mode
        self._layout = layout_of(x)
        if isinstance(streams, Iterable) and not hasattr(streams, "ptr"):
            streams = list(streams)
        self._given = streams  # kept alive until they were waited for
        self._streams = None if streams is None else _streams(streams)
        if self._layout.dtype is None:
            raise TypeError(f"NumPy has no type {x.dtype}: convert the array first")
        if mode != "r":
            if isinstance(x, np.ndarray) and not x.flags.writeable:
                raise ValueError(f'a host view "{mode}" of a read-only array cannot be written: give "r", or a copy')
            if self._layout.overlaps_itself:
                raise ValueError(f'elements of this array share memory, so a host view "{mode}" would be ambiguous')
        self.waits, self.waited = 0, 0.0
        self.tally = Tally()
        self._line = calling_line()
        self._shadow: Shadow | None = None
        self._array: HostArray | None = None
        self._phase = "new"

    def __enter__(self) -> HostArray:
        if self._phase != "new":
            raise ClosedError("this host view was entered before; make a new one for each with block")
        self._phase = "entering"
        try:
            array = self._open()
            if self._mode == "w" and settings.text("UMARRAY_DEBUG") is not None:
                _poison(array)
            if self._mode == "r":
                array = sealed(array)
        except BaseException:
            self._close()
            raise
        self._array, self._phase = array, "open"
        return array

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._phase != "open" or self._array is None:
            raise ClosedError(f"this host view is not open: it is {self._phase}")
        try:
            self._array.flags.writeable = False
            if self._shadow is not None and self._mode != "r":
                self._write_back(self._shadow)
        except Exception:
            if error is None:
                raise
            _log.exception("a host view could not be written back; the exception of its block goes on")
        finally:
            self._close()

    def __del__(self) -> None:
        if sys is None or sys.is_finalizing():
            return
        if self._phase == "open" and self._mode != "r":  # a finaliser may not wait for a device: tell what is lost
            kept = "where it was written" if self._shadow is None else "lost"
            text = f"this host view, made at {self._line}, was never left; what it holds is {kept}: use a with block"
            self._line.warn(text, UmarrayWarning)
        elif self._phase == "new":
            text = f"this host view, made at {self._line}, was never entered and did nothing: write with ... as h:"
            self._line.warn(text, UnusedScopeWarning)

    def __reduce__(self) -> NoReturn:  # a copy of an open one would write back a second time
        raise TypeError("a host view cannot be copied or pickled: make a new one, or copy the NumPy array")

    def _close(self) -> None:
        self._phase, self._x, self._array, self._shadow, self._given = "closed", None, None, None, None

    def _open(self) -> HostArray:
        driver, layout = get_driver(), self._layout
        if layout.size == 0:
            return np.empty(layout.shape, layout.dtype)
        found = driver.find(layout.range[0])
        kind = found.kind if found is not None else Kind.HOST if layout.device is None else Kind.DEVICE
        if driver.device_count():
            self._wait_for_device(driver)  # ordinary memory too: a runtime may not know pinned memory for what it is
            if kind is Kind.MANAGED:
                self._bring_home(driver)
            elif kind is Kind.DEVICE:
                return self._fetch(driver)
        if isinstance(self._x, np.ndarray):
            return self._x.view(np.ndarray)
        return laid_over(layout, layout.range[0], self._x)

    def _fetch(self, driver: Driver) -> HostArray:
        state = state_of(driver)
        lane = state.streams.lane(self._device(driver))
        self._shadow = Shadow(driver, self._x, self._layout, lane, state.pinned)
        if self._mode != "w":
            self._shadow.fetch()
            self._wait_for(driver, lane.stream, lane.device, "a host view waits for its copy")
        return self._shadow.array

    def _write_back(self, shadow: Shadow) -> None:
        """Copy the elements back and wait for it: work queued afterwards, on any stream, must see them."""
        shadow.write_back()
        lane = shadow.lane
        self._wait_for(get_driver(), lane.stream, lane.device, "a host view waits for its contents to be copied back")

    def _bring_home(self, driver: Driver) -> None:
        """Ask the pages to come home, and wait until they have, where that beats faulting them in."""
        spans = spans_of([self._x], driver.find, driver.page_size)
        device = self._device(driver)
        traits = driver.traits(device)
        if spans.nbytes < _PAYS_FROM or not traits.prefetch or traits.unified:
            return
        state = state_of(driver)
        lane = state.streams.lane(device)
        issue(Job(state, spans, HOST, lane.stream, lane.device, True, self.tally, []))
        if self.tally.asked:
            self._wait_for(driver, lane.stream, lane.device, "a host view waits for pages to come home")

    def _device(self, driver: Driver) -> int:
        return driver.current_device() if self._layout.device is None else self._layout.device

    def _wait_for_device(self, driver: Driver) -> None:
        """Wait for the streams told, else for the array's device and the current one."""
        if self._streams is not None:
            for stream, device in self._streams:
                device = self._device(driver) if device is None else device
                self._wait_for(driver, stream, device, "a host view waits for a stream")
        else:
            for device in dict.fromkeys((self._device(driver), driver.current_device())):
                state_of(driver).streams.settle(device)
                self._wait_for(driver, None, device, "a host view waits for the whole device")

    def _wait_for(self, driver: Driver, stream: int | None, device: int, reason: str) -> None:
        start = perf_counter()
        driver.synchronize(stream, device)
        seconds = perf_counter() - start
        self.waits += 1
        self.waited += seconds
        if events.listeners:
            events.emit(events.Waited(seconds, reason))


def _streams(streams: Any) -> list[tuple[int, int | None]]:
    """Handles and devices of one stream or of several."""
    if isinstance(streams, Iterable) and not hasattr(streams, "ptr"):
        return [as_stream(one) for one in streams]
    return [as_stream(streams)]


def _poison(array: HostArray) -> None:
    """A pattern that shows which elements were not written: NaN for floats, 0xDB in each byte of others."""
    if array.dtype.kind in "fc":
        array[...] = np.nan
    elif not array.dtype.hasobject:
        array[...] = np.frombuffer(bytes([_POISON]) * array.dtype.itemsize, array.dtype)[0]
