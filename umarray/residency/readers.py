"""Which open scopes read which pages on which device, so that another device's reads need not take them away."""

from __future__ import annotations

from umarray.residency.spans import Range, Span


class Readers:
    """Pages that open `access` scopes only read, by device.

    Notes
    -----
    Safe from any thread and from finalisers: each change is one step of a dict.
    """

    def __init__(self) -> None:
        self._open: dict[object, tuple[int, list[Range]]] = {}

    def enter(self, scope: object, device: int, ranges: list[Range]) -> None:
        """`scope`, any object of its own, reads page ranges on a device from now on."""
        self._open[scope] = (device, ranges)

    def leave(self, scope: object) -> None:
        """It does no longer; where it never did, nothing happens."""
        self._open.pop(scope, None)

    def elsewhere(self, span: Span, device: int) -> bool:
        """Whether a scope that is open reads some of `span` on another device."""
        return any(
            other != device and any(start < span.stop and span.start < stop for start, stop in ranges)
            for other, ranges in list(self._open.values())
        )
