"""Sets of addresses, as sorted ranges that do not touch."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

Range = tuple[int, int]
"""First byte, and the byte after the last."""


class Ranges:
    """A set of addresses that others can be put into and taken out of.

    Examples
    --------
    >>> some = Ranges([(0, 10)])
    >>> some.take(4, 6)
    2
    >>> some.nbytes, list(some)
    (8, [(0, 4), (6, 10)])
    """

    def __init__(self, ranges: Iterable[Range] = ()) -> None:
        self._starts: list[int] = []
        self._stops: list[int] = []
        self.nbytes = 0
        """How many addresses."""
        for start, stop in ranges:
            self.put(start, stop)

    def __iter__(self) -> Iterator[Range]:
        return zip(self._starts, self._stops, strict=True)

    def put(self, start: int, stop: int) -> int:
        """Put a range in; how many bytes of it were not in yet."""
        if start >= stop:
            return 0
        first, last = bisect_left(self._stops, start), bisect_right(self._starts, stop)  # those that it touches
        inside = self._overlap(first, last, start, stop)
        low = min(start, self._starts[first]) if first < last else start
        high = max(stop, self._stops[last - 1]) if first < last else stop
        self._starts[first:last], self._stops[first:last] = [low], [high]
        self.nbytes += stop - start - inside
        return stop - start - inside

    def take(self, start: int, stop: int) -> int:
        """Take a range out; how many bytes of it were in."""
        first, last = bisect_right(self._stops, start), bisect_left(self._starts, stop)  # those that it overlaps
        if start >= stop or first >= last:
            return 0
        inside = self._overlap(first, last, start, stop)
        left = [(self._starts[first], start)] if self._starts[first] < start else []
        right = [(stop, self._stops[last - 1])] if stop < self._stops[last - 1] else []
        self._starts[first:last] = [one[0] for one in left + right]
        self._stops[first:last] = [one[1] for one in left + right]
        self.nbytes -= inside
        return inside

    def _overlap(self, first: int, last: int, start: int, stop: int) -> int:
        return sum(max(0, min(self._stops[i], stop) - max(self._starts[i], start)) for i in range(first, last))
