"""Which pages moved, when and why: the emulated device's history, read from where a reader left off."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from .control import library

__all__ = ["Costs", "Happened", "costs", "mark", "read", "recorded", "start", "stop"]

KINDS = ("moved", "copied", "mapped", "made", "dropped", "used", "faulted")
CAUSES = ("fault", "prefetch", "eviction", "advice", "copy")
RECORDS = 1 << 16  # 3 MiB
_AT_ONCE = 4096


class Happened(NamedTuple):
    """What happened to a run of neighbouring pages, one after another."""

    kind: str
    """"moved" from `origin` to `to`; "copied" to `to`, beside the original; "mapped": `to` reaches it at `origin`;
    "made": first touched or prefetched, with nothing to move; "dropped": the copy at `to` was given up, because of a
    write at `origin`, or to make room; "used": first touched at `to` after a prefetch had brought it; "faulted": a
    fault at `to` that did none of these."""
    cause: str
    """"fault", "prefetch", "eviction", "advice", or "copy" (one of kind "default", which touches pages where they
    are)."""
    address: int
    nbytes: int
    origin: int
    """A device's number, or -1 for the host."""
    to: int
    write: bool
    """The touch was a write."""
    faults: int
    """How many touches waited."""
    first: float
    """`time.perf_counter` seconds of the first page, and `last` of the last."""
    last: float


class Costs(NamedTuple):
    """The model of the machine's profile: seconds, and bytes a second."""

    fault: float
    host_fault: float
    call: float
    demand: float
    to_device: float
    to_host: float
    between: float
    demand_back: float
    batch: float


class _Record(ctypes.Structure):
    _fields_ = (
        ("first", ctypes.c_uint64),
        ("last", ctypes.c_uint64),
        ("address", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("faults", ctypes.c_uint32),
        ("kind", ctypes.c_int8),
        ("cause", ctypes.c_int8),
        ("origin", ctypes.c_int8),
        ("to", ctypes.c_int8),
        ("write", ctypes.c_int8),
        ("unused", ctypes.c_int8 * 7),
    )


def start(records: int = RECORDS) -> None:
    """Begin to write the history; each call needs its `stop`.

    Parameters
    ----------
    records : int
        How many are kept, of 48 bytes each; the first call of the process decides.

    Notes
    -----
    While it is on, pages that a prefetch brought to a device stay closed until they are touched: that touch is told as
    "used", is no fault, and costs this machine some microseconds a page.
    """
    library().hipemu_history_start(ctypes.c_size_t(records))


def stop() -> None:
    """End what one `start` began."""
    library().hipemu_history_stop()


def mark() -> int:
    """Return a cursor for what happens from now on."""
    return int(_function("hipemu_history_mark")())


def read(since: int) -> tuple[list[Happened], int, int]:
    """Return what happened from the cursor `since` on, the cursor for the next time, and how many records were lost."""
    cursor, missed = ctypes.c_uint64(since), ctypes.c_uint64()
    buffer, found, lost = (_Record * _AT_ONCE)(), [], 0
    while True:
        count = int(
            _function("hipemu_history_read")(
                ctypes.byref(cursor), buffer, ctypes.c_size_t(_AT_ONCE), ctypes.byref(missed)
            )
        )
        lost += missed.value
        found += [_happened(buffer[i]) for i in range(count)]
        if count < _AT_ONCE:
            return found, cursor.value, lost


@contextmanager
def recorded(*, synchronize: bool = True) -> Iterator[list[Happened]]:
    """Write the history of a block: its value, a list, holds it once the block has ended.

    Examples
    --------
    >>> with recorded() as happened:  # doctest: +SKIP
    ...     y = 2 * x
    >>> happened[0].kind, happened[0].cause  # doctest: +SKIP
    ('moved', 'fault')
    """
    found: list[Happened] = []
    if synchronize:
        library().hipemu_synchronize()
    start()
    since = mark()
    try:
        yield found
    finally:
        if synchronize:
            library().hipemu_synchronize()
        found += read(since)[0]
        stop()


def costs() -> Costs:
    """Return what moving costs on the card of the profile: the figures that the modelled seconds are made of."""
    raw = (ctypes.c_double * len(Costs._fields))()
    library().hipemu_costs(raw)
    return Costs(*raw)


def _function(name: str) -> ctypes._NamedFuncPointer:
    function = getattr(library(), name)
    function.restype = ctypes.c_uint64
    return function  # type: ignore[no-any-return]


def _happened(raw: _Record) -> Happened:
    return Happened(
        KINDS[raw.kind],
        CAUSES[raw.cause],
        raw.address,
        raw.bytes,
        raw.origin,
        raw.to,
        bool(raw.write),
        raw.faults,
        raw.first * 1e-9,
        raw.last * 1e-9,
    )
