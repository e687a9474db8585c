"""Records of what scopes begin and end, for whoever listens: `events.Began` and `events.Ended`."""

from __future__ import annotations

from collections.abc import Iterable

from umarray import events
from umarray.drivers.base import Array
from umarray.places import Place
from umarray.residency.callers import Line
from umarray.residency.spans import layout_of


def tell_begin(
    action: str,
    line: Line,
    arrays: Iterable[Array],
    *,
    label: str = "",
    place: Place | None = None,
    stream: int | None = None,
) -> int:
    """Tell that something begins, to listeners that are there; its serial, 0 where nobody listens."""
    if not events.listeners:
        return 0
    serial = events.next_serial()
    operands = tuple(operand_of(x) for x in arrays)
    events.emit(events.Began(serial, action, label, str(line), place, stream, operands))
    return serial


def tell_end(serial: int, action: str) -> None:
    """Tell the end of what `tell_begin` gave a serial."""
    if serial and events.listeners:
        events.emit(events.Ended(serial, action))


def operand_of(x: Array) -> events.Operand:
    """An array as records describe it."""
    layout = layout_of(x)
    start, stop = layout.range
    return events.Operand(start, stop - start, layout.shape, str(x.dtype))
