"""Arrays of one host view that share memory: what is written through one must be seen by the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from umarray.residency.ways import Part, Way

_MOST_WORK: Any = 10_000  # of NumPy's search for an element two arrays share (its annotation knows 0 and -1 only)


def check_together(parts: Iterable[Part]) -> None:
    """Refuse to write arrays that share elements where one has gaps, since it would be copied by itself.

    Raises
    ------
    ValueError
        There are such; the text gives their shapes.
    """
    parts = list(parts)
    if all(part.gapless for part in parts):
        return
    elements = _Elements()
    for first, second in _pairs(parts):
        if not (first.gapless and second.gapless) and elements.shared(first, second):
            raise ValueError(
                f"arrays of shapes {first.layout.shape} and {second.layout.shape} share elements, and one has gaps:"
                " to write them take a host view of the array that holds both, and slice that"
            )


def agree(parts: Iterable[Part]) -> None:
    """Let arrays that share memory be the very memory all of them, unless all of them are copies on one device."""
    apart = [part for part in parts if part.gapless]  # the others share no element
    changed = len({_copied_on(part) for part in apart}) > 1
    while changed:
        changed = False
        for pair in _pairs(apart):
            for one, other in (pair, pair[::-1]):
                if one.way is Way.STAGED and _copied_on(one) != _copied_on(other):
                    one.way, one.why, changed = Way.MANAGED, "it shares memory with an array of another way", True


def _copied_on(part: Part) -> tuple[bool, int | None]:
    staged = part.way is Way.STAGED
    return staged, part.layout.device if staged else None


def _pairs(parts: Iterable[Part]) -> Iterator[tuple[Part, Part]]:
    """Those whose ranges overlap, by growing start."""
    open_: list[Part] = []
    for part in sorted((one for one in parts if one.start < one.stop), key=lambda one: one.start):
        open_ = [one for one in open_ if one.stop > part.start]
        yield from ((one, part) for one in open_)
        open_.append(part)


class _Elements:
    """The bytes of parts' elements as arrays that are never read: they may be on a device."""

    def __init__(self) -> None:
        self._arrays: dict[int, np.ndarray[Any, np.dtype[np.uint8]]] = {}

    def shared(self, first: Part, second: Part) -> bool:
        try:
            return np.shares_memory(self._of(first), self._of(second), max_work=_MOST_WORK)
        except RuntimeError:  # too hard to say
            return True

    def _of(self, part: Part) -> np.ndarray[Any, np.dtype[np.uint8]]:
        found = self._arrays.get(id(part))
        if found is None:
            layout = part.layout
            interface = {
                "version": 3,
                "typestr": "|u1",
                "shape": (*layout.shape, layout.itemsize),
                "strides": (*layout.strides, 1),
                "data": (layout.address, False),
            }
            found = np.asarray(SimpleNamespace(__array_interface__=interface))
            self._arrays[id(part)] = found
        return found
