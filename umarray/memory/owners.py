"""Owners: the streams that ranges of memory belong to, and how one is ordered after another."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from time import perf_counter

from umarray import events
from umarray.drivers.base import Driver
from umarray.errors import DriverError

PER_THREAD = 2  # the handle of every thread's own default stream
DEFAULT_STREAMS = (0, 1, PER_THREAD)  # handles that mean a stream of the current device

_thread = threading.local()


class _ThreadToken:
    """Stands for one thread; unlike the thread's number it is not given to another one later."""

    __slots__ = ("__weakref__",)


@dataclass(frozen=True, slots=True)
class Owner:
    """A stream of a device as the owner of memory.

    Attributes
    ----------
    device, stream : int
        The device's index and the stream's handle.
    thread : object
        Tells apart the threads that share the handle of the per-thread default stream; None for any other stream.
    keep : object
        What keeps the stream from being destroyed, so that its handle cannot come back as another stream.
    lasting : bool
        The stream cannot be destroyed while `keep` lives. Otherwise (an external stream) it is never named again
        and the whole device is waited for instead: recording on a destroyed handle may crash a runtime. Part of
        what tells owners apart: a set that kept only one of two with the same handle would forget a fence.
    """

    device: int
    stream: int
    thread: object = None
    keep: object = field(default=None, compare=False, repr=False)
    lasting: bool = True
    lane: str = ""
    """Which of a pool's parts carves: its lanes learn their sizes apart."""

    def same_stream(self, other: Owner) -> bool:
        """Work of both surely runs in one order (a stream that may be destroyed can come back as another one)."""
        return (
            (self.device, self.stream) == (other.device, other.stream)
            and self.thread is other.thread
            and self.lasting
            and other.lasting
        )


def owner_of(device: int, stream: int, *, keep: object = None, lasting: bool = True, lane: str = "") -> Owner:
    """The owner that allocates on `stream` from the calling thread."""
    return Owner(device, stream, _token() if stream == PER_THREAD else None, keep, lasting, lane)


def order_after(driver: Driver, before: Owner, after: Owner) -> None:
    """Let work queued on `after` from now on wait for all that is queued on `before`.

    Notes
    -----
    No wait on the host, unless the stream of `before` cannot be named from here: then its device is waited for.
    """
    if before.same_stream(after):
        return
    if before.lasting and (before.thread is None or before.thread is _token()):
        try:
            driver.wait(after.stream, driver.record(before.stream, before.device))
            return
        except DriverError:
            pass  # the stream is gone
    start = perf_counter()
    driver.synchronize(device=before.device)
    if events.listeners:
        reason = "a pool waits for a device: the stream that its memory was used on cannot be named any more"
        events.emit(events.Waited(perf_counter() - start, reason, before.device))


def _token() -> _ThreadToken:
    try:
        return _thread.token  # type: ignore[no-any-return]
    except AttributeError:
        _thread.token = token = _ThreadToken()
        return token
