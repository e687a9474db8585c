"""annotate: epochs, scopes, host views and pipeline stages as named ranges in Nsight and rocprof."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, NoReturn

from umarray import events
from umarray.drivers import get_driver, ranges
from umarray.errors import ClosedError


class annotate:
    """A `with` block in which the vendor's profiler sees what umarray does, by name.

    Parameters
    ----------
    library : RangeLibrary, optional
        Whose ranges; by default NVTX on NVIDIA (the package `nvtx`) and roctx on AMD.

    Raises
    ------
    NotSupported
        There is no such library here, or no device.
    ClosedError
        Entered a second time.

    Notes
    -----
    Ranges are called "umarray: prefetch", "umarray: epoch train", "umarray: prep 3" and so on. They show when the host
    was in them, as every range does: where the pages are on their way, the profiler shows itself.

    Examples
    --------
    >>> import umarray as um
    >>> with um.annotate():  # doctest: +SKIP
    ...     train()
    """

    def __init__(self, library: ranges.RangeLibrary | None = None) -> None:
        self._library = library
        self._open: dict[int, Any] = {}
        self._lock = threading.Lock()
        self._stop: Callable[[], None] | None = None
        self._entered = False

    def __enter__(self) -> annotate:
        if self._entered:
            raise ClosedError("this was entered before: make a new one for each block")
        if self._library is None:
            self._library = ranges.nvtx() if get_driver().name == "cuda" else ranges.roctx()
        self._entered = True
        self._stop = events.listen(self.hear)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._stop is None or self._library is None:
            raise ClosedError("this is not open")
        self._stop()
        self._stop = None
        with self._lock:
            left, self._open = list(self._open.values()), {}
        for one in reversed(left):
            self._library.stop(one)

    def hear(self, record: events.Record) -> None:
        """Begin or end the range of a record."""
        library = self._library
        assert library is not None
        if isinstance(record, events.Began):
            one = library.start(f"umarray: {record.action} {record.label}".rstrip())
            with self._lock:
                self._open[record.serial] = one
        elif isinstance(record, events.Ended):
            with self._lock:
                one = self._open.pop(record.serial, None)
            if one is not None:
                library.stop(one)

    def __reduce__(self) -> NoReturn:
        raise TypeError("this cannot be copied or pickled: make a new one")
