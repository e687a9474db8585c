"""Seconds by bytes: a few measured points, and straight lines between them."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Curve:
    """How long something takes for so many bytes.

    Parameters
    ----------
    points : tuple of (bytes, seconds)
        At least one, by growing bytes; positive bytes, finite seconds of 0 or more.

    Raises
    ------
    ValueError
        Points that cannot be such.

    Notes
    -----
    Between points it is a straight line. Below the first it is the first's seconds: what is small costs its call. Above
    the last it goes on at the rate of the last segment, or of the last point where there is one only, or where the last
    segment does not rise.

    Examples
    --------
    >>> from umarray.calibration import Curve
    >>> curve = Curve(((1000, 1.0), (3000, 2.0)))
    >>> curve(10), curve(2000), curve(5000)
    (1.0, 1.5, 3.0)
    """

    points: tuple[tuple[int, float], ...]

    def __post_init__(self) -> None:
        sizes = [nbytes for nbytes, _ in self.points]
        if not sizes or sizes[0] <= 0 or any(a >= b for a, b in zip(sizes, sizes[1:], strict=False)):
            raise ValueError(f"a curve needs points of growing, positive bytes, not {self.points!r}")
        if not all(math.isfinite(seconds) and seconds >= 0 for _, seconds in self.points):
            raise ValueError(f"a curve needs finite seconds of 0 or more, not {self.points!r}")

    @classmethod
    def line(cls, seconds: float, rate: float) -> Curve:
        """So many seconds before a byte moves, and then so many bytes a second."""
        return cls(((1, seconds), (1 << 30, seconds + (1 << 30) / rate)))

    @classmethod
    def of(cls, points: Iterable[tuple[int, float]]) -> Curve:
        """A curve of measured points in any order; one that is faster than a smaller one counts as taking as long."""
        rising: list[tuple[int, float]] = []
        for nbytes, seconds in sorted(points):
            rising.append((nbytes, max(seconds, rising[-1][1]) if rising else seconds))
        return cls(tuple(rising))

    def __call__(self, nbytes: int) -> float:
        """Seconds for `nbytes`."""
        points = self.points
        at = bisect_right(points, (nbytes, math.inf))
        if at == 0:
            return points[0][1]
        if at == len(points):
            last_bytes, last = points[-1]
            before_bytes, before = points[-2] if at > 1 and points[-2][1] < last else (0, 0.0)
            return last + (nbytes - last_bytes) * (last - before) / (last_bytes - before_bytes)
        (left, low), (right, high) = points[at - 1], points[at]
        return low + (nbytes - left) * (high - low) / (right - left)

    def rate(self, nbytes: int) -> float:
        """Bytes a second at that size; infinite where it takes no time."""
        seconds = self(nbytes)
        return nbytes / seconds if seconds else math.inf
