"""host_view: a NumPy array over an array of any mode that is safe to touch.

Memory of the host, and managed pages that lie there, are the very memory, after waiting for the device. What lies on a
device is copied to a pinned shadow and, if written, copied back on exit: the device's pages stay where they are and
nothing faults. What is too large to be page-locked comes home instead (see `ways`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import TracebackType
from typing import Any, NoReturn

import numpy as np

from umarray import settings
from umarray.calibration import current
from umarray.drivers import get_driver
from umarray.drivers.base import Driver, Kind
from umarray.errors import ClosedError, UmarrayWarning, UnusedScopeWarning
from umarray.log import warn_once
from umarray.places import HOST
from umarray.residency.callers import calling_line
from umarray.residency.overlaps import agree, check_together
from umarray.residency.prefetching import Job, send
from umarray.residency.shadow import HostArray, Shadow, laid_over, sealed
from umarray.residency.spans import arrays_in, spans_of
from umarray.residency.staging import staged
from umarray.residency.state import State, state_of
from umarray.residency.streams import Lane
from umarray.residency.tally import Tally
from umarray.residency.telling import tell_begin, tell_end
from umarray.residency.waits import Waits, given_streams
from umarray.residency.ways import Part, Way, choose, contiguous, look, note_used, on_device_as_told, part_of, rebuilt

_MODES = ("r", "w", "r+")
_POISON = 0xDB


class host_view(Waits):
    """A `with` block in which an array is a NumPy array, safe to touch.

    Parameters
    ----------
    x : array, or dict, list or tuple of them
        CuPy, NumPy or torch arrays, views of any kind. Of a nest, the block gets a nest of the same shape; several
        arrays in one view are waited for together.
    mode : "r", "w" or "r+"
        "r" (the default) is read-only. "w" means that every element is written: what was there is not brought, and an
        element not written has no defined value. "r+" reads and writes.
    streams : stream or iterable of streams, optional
        Those on which work on `x` was queued. Without them the whole device is waited for, since launches cannot be
        seen; an empty list means that nothing is queued.
    wait : bool
        False: all work on `x`, before and after, is on the stream that is current here, or ordered with it. Then
        nothing else is waited for, and on exit copies are queued on that stream and the host goes on.

    Attributes
    ----------
    waits : int
        How often the host waited for a device, and `waited` for how many seconds.

    Raises
    ------
    TypeError, ValueError
        `x` is no array or has a type that NumPy lacks, an unknown mode, a stream that is none, a write to a read-only
        array, to one whose elements share memory (a broadcast), or to one with gaps that shares them with another.
    ClosedError
        Entered a second time.
    OutOfMemory
        No pinned memory is left for a copy of plain device memory.

    Notes
    -----
    Queue no device work on `x` while the block is open. Work queued after it, on any stream, sees what was written:
    also when the block raises. Only the elements of `x` are written, never the bytes between them. With
    `UMARRAY_DEBUG=1` a "w" view is filled with a pattern (NaN for floats) first, which shows elements not written.
    After the block the NumPy array is read-only, and may no longer be tied to `x`; slices of it that were made in the
    block stay writable, and what they write then is undefined: drop them.

    Managed pages on the host are the very memory. Those on a device are copied through pinned memory and stay where
    they are: "r" brings what is read, "w" moves no stale byte, and the next kernel faults on nothing. Over 256 MiB, or
    where calibration says so, pages come home instead. `print(view)` says which way was taken, and why.

    Examples
    --------
    >>> import numpy as np, umarray as um
    >>> x, y = np.arange(4.0), np.zeros(2)
    >>> with um.host_view(x, "r+") as h:
    ...     h[0] = 7
    >>> float(x[0])
    7.0
    >>> with um.host_view((x, y), "w") as (first, second):
    ...     first[...], second[...] = 1, 2
    """

    _phase = "broken"
    _serial = 0

    def __init__(self, x: Any, mode: str = "r", streams: Any = None, *, wait: bool = True) -> None:
        if not isinstance(mode, str) or mode not in _MODES:
            raise (ValueError if isinstance(mode, str) else TypeError)(
                f'unknown mode {mode!r} of a host view: give "r", "w" or "r+"'
            )
        self._nest, self._mode = x, mode
        self._parts = [part_of(one) for one in arrays_in(x)]
        if not self._parts:
            raise TypeError(f"there is no array in {x!r}: a host view needs one at least")
        if isinstance(streams, Iterable) and not hasattr(streams, "ptr"):
            streams = list(streams)
        self._given = streams  # kept alive until they were waited for
        if not isinstance(wait, bool):
            raise TypeError(f"wait must be True or False, not {wait!r}")
        super().__init__(None if streams is None else given_streams(streams))
        self._wait = wait
        self._shadows: list[Shadow] = []
        for part in self._parts:
            self._check(part)
        if mode != "r":
            check_together(self._parts)
        self.tally = Tally()
        self._line = calling_line()
        self._late = False  # the device is waited for on exit
        self._phase = "new"

    def _check(self, part: Part) -> None:
        x, mode, layout = part.x, self._mode, part.layout
        if layout.dtype is None:
            raise TypeError(f"NumPy has no type {x.dtype}: convert the array first")
        if mode != "r":
            if isinstance(x, np.ndarray) and not x.flags.writeable:
                raise ValueError(f'a host view "{mode}" of a read-only array cannot be written: give "r", or a copy')
            if not contiguous(x) and layout.overlaps_itself:
                raise ValueError(f'elements of this array share memory, so a host view "{mode}" would be ambiguous')

    def __enter__(self) -> Any:
        if self._phase != "new":
            raise ClosedError("this host view was entered before; make a new one for each with block")
        self._phase = "entering"
        try:
            arrays = [part.x for part in self._parts]
            self._serial = tell_begin("host_view", self._line, arrays, label=self._mode, place=HOST)
            self._open()
            poisoned = self._mode == "w" and settings.text("UMARRAY_DEBUG") is not None
            for part in self._parts:
                assert part.array is not None
                if poisoned:
                    _poison(part.array)
                if self._mode == "r":
                    part.array = sealed(part.array)
            given = rebuilt(self._nest, (part.array for part in self._parts if part.array is not None))
        except BaseException:
            self._close()
            raise
        self._phase = "open"
        return given

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._phase != "open":
            raise ClosedError(f"this host view is not open: it is {self._phase}")
        try:
            for part in self._parts:
                if part.array is not None:
                    part.array.flags.writeable = False
            if self._mode != "r":
                self._write_back()
        except Exception as failure:
            if error is None:
                raise
            where = str(self._line)
            warn_once("what was written in the host view of %s is lost", where, error=failure, about=where)
        finally:
            self._close()

    def __del__(self) -> None:
        if sys is None or sys.is_finalizing():
            return
        if self._phase == "open" and self._mode != "r":  # a finaliser may not wait for a device: tell what is lost
            kept = "lost" if self._shadows else "where it was written"
            text = f"this host view, made at {self._line}, was never left; what it holds is {kept}: use a with block"
            self._line.warn(text, UmarrayWarning)
        elif self._phase == "new":
            text = f"this host view, made at {self._line}, was never entered and did nothing: write with ... as h:"
            self._line.warn(text, UnusedScopeWarning)

    def __reduce__(self) -> NoReturn:  # a copy of an open one would write back a second time
        raise TypeError("a host view cannot be copied or pickled: make a new one, or copy the NumPy array")

    def __str__(self) -> str:
        lines = [str(part) for part in self._parts if part.why]
        return "\n".join([f'host view "{self._mode}", {self._phase}: {self.waits} waits', *(f"  {x}" for x in lines)])

    def _close(self) -> None:
        tell_end(self._serial, "host_view")
        for part in self._parts:  # what it says of them stays
            part.x = part.array = None
        self._phase, self._nest, self._given, self._shadows = "closed", None, None, []

    def _open(self) -> None:
        driver = get_driver()
        filled = [part for part in self._parts if part.start < part.stop]
        for part in self._parts:
            if part.start == part.stop:
                part.array = np.empty(part.layout.shape, part.layout.dtype)
        if not filled:
            return
        state = state_of(driver)
        for part in filled:
            look(part, state)
        if driver.device_count():
            if not self._wait and self._streams is None:
                devices = self._devices(driver)
                self._streams = [(driver.current_stream(device), device) for device in devices]
            self._late = self._mode == "w" and all(_stays(part) for part in filled)
            if not self._late:
                # ordinary memory too: a runtime may not know pinned memory as that
                self._wait_for_devices(driver, self._devices(driver))
        for part in filled:
            part.way, part.why = choose(part, self._mode, state, self._device(part, driver))
        agree(filled)
        lanes = [(part, self._lane(part, state)) for part in filled if part.way is Way.STAGED]
        self._shadows = staged(lanes, state, self._serial)
        if self._late and any(part.way is not Way.STAGED for part in filled):
            self._late = False
            self._wait_for_devices(driver, self._devices(driver))
        self._fetch(driver)
        self._bring_home([part for part in filled if part.way is Way.MANAGED], state)
        for part in filled:
            if part.array is None:
                own = isinstance(part.x, np.ndarray)
                part.array = part.x.view(np.ndarray) if own else laid_over(part.layout, part.start, part.x)
            if part.pages:
                note_used([part], state, self._device(part, driver))

    def _lane(self, part: Part, state: State) -> Lane:
        """The stream on which a part is copied."""
        device = self._device(part, state.driver)
        return state.streams.lane(device) if self._wait else Lane(state.driver.current_stream(device), device)

    def _fetch(self, driver: Driver) -> None:
        if self._mode == "w":
            return
        for shadow in self._shadows:
            shadow.fetch()
        for lane in dict.fromkeys(shadow.lane for shadow in self._shadows):
            self._wait_for(driver, lane.stream, lane.device, "a host view waits for its copy")

    def _write_back(self) -> None:
        """Copy the elements back, and wait for it: work queued afterwards, on any stream, must see them."""
        driver, shadows = get_driver(), self._shadows
        if shadows and self._late and self._wait:
            self._wait_for_devices(driver, self._devices(driver))  # whoever still reads what is overwritten now
        for shadow in shadows:
            shadow.write_back()
            if not self._wait:
                shadow.leave()
        for lane in dict.fromkeys(shadow.lane for shadow in shadows) if self._wait else ():
            self._wait_for(driver, lane.stream, lane.device, "a host view waits for its contents to be copied back")

    def _bring_home(self, parts: list[Part], state: State) -> None:
        """Ask pages to come home, and wait until they have, where that beats faulting them in."""
        driver = state.driver
        for device in dict.fromkeys(self._device(part, driver) for part in parts):
            mine = [part for part in parts if self._device(part, driver) == device]
            spans = spans_of([part.x for part in mine], driver.find, driver.page_size)
            costs, traits = current(device), driver.traits(device)
            ahead = costs.prefetch_back(spans.nbytes) if costs.prefetch_back else 0.0
            renewed = self._mode == "w" and traits.renew and all(part.gapless for part in mine)
            faults = costs.demand_back is not None and costs.demand_back(spans.nbytes) < ahead
            if not traits.prefetch or (faults and not renewed):
                continue
            lane = state.streams.lane(device)
            job = Job(state, spans, HOST, lane.stream, lane.device, True, self.tally, [], self._serial)
            if renewed:
                send(job, [], spans.inward())
            else:
                send(job, spans.outward())
            if self.tally.asked:
                self._wait_for(driver, lane.stream, lane.device, "a host view waits for pages to come home")

    def _devices(self, driver: Driver) -> list[int]:
        """The arrays' devices, and the current one."""
        return list(dict.fromkeys((*(self._device(part, driver) for part in self._parts), driver.current_device())))

    def _device(self, part: Part, driver: Driver) -> int:
        return driver.current_device() if part.layout.device is None else part.layout.device


def _stays(part: Part) -> bool:
    """Whether an array that is to be overwritten lies on a device for sure, so that its shadow can be made at once."""
    return part.kind is Kind.DEVICE or (part.kind is Kind.MANAGED and on_device_as_told(part))


def _poison(array: HostArray) -> None:
    """A pattern that shows which elements were not written: NaN for floats, 0xDB in each byte of others."""
    if array.dtype.kind in "fc":
        array[...] = np.nan
    elif not array.dtype.hasobject:
        array[...] = np.frombuffer(bytes([_POISON]) * array.dtype.itemsize, array.dtype)[0]
