"""From arrays, and nests of them, to the page-rounded address ranges that hints act on.

An array is NumPy's, CuPy's (told by its `data.ptr`, so that CuPy need not be imported) or torch's. A hint acts on whole
pages: prefetch rounds outward, since moving a neighbour's page early harms nothing, advice rounds inward, since it
would change how a neighbour's memory behaves. Nothing here calls a driver but `find`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, NamedTuple

import numpy as np

from umarray.drivers.base import Allocation, Array, Kind

Range = tuple[int, int]
"""First byte, and the byte after the last."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How an array lies in memory: where its first element is, and how to reach the others."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int
    dtype: np.dtype[Any] | None
    device: int | None
    """Index of the device that the array belongs to, None for one of the host."""

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def range(self) -> Range:
        """From its lowest byte to the one after its highest; empty for an array without elements."""
        if self.size == 0:
            return self.address, self.address
        reach = [(n - 1) * stride for n, stride in zip(self.shape, self.strides, strict=True)]
        low = self.address + sum(one for one in reach if one < 0)
        return low, self.address + sum(one for one in reach if one > 0) + self.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements; more than its range has where they share memory."""
        return self.size * self.itemsize

    @property
    def overlaps_itself(self) -> bool:
        """Whether two elements may share bytes: a broadcast, or windows. May say so of a few odd ones that do not."""
        extent = self.itemsize
        for stride, n in self._steps():
            if stride < extent:
                return self.size > 0
            extent = stride * (n - 1) + extent
        return False

    def touched(self, page: int) -> int:
        """About how many bytes the pages hold in which it has an element: its range less gaps of a page and more."""
        if self.size == 0:
            return 0
        extent, count = self.itemsize, 1
        for stride, n in self._steps():
            if stride == 0:
                continue
            if count == 1 and stride - extent < page:
                extent = stride * (n - 1) + extent
            else:
                count *= n
        start, stop = self.range
        return min(count * max(extent, page), stop - start)

    def _steps(self) -> list[tuple[int, int]]:
        pairs = zip(self.strides, self.shape, strict=True)
        return sorted((abs(stride), n) for stride, n in pairs if n > 1)


def layout_of(x: Array) -> Layout:
    """The layout of an array of NumPy, CuPy or torch.

    Raises
    ------
    TypeError
        `x` is no such array; the text quotes it.
    """
    if isinstance(x, np.ndarray):
        address = int(x.__array_interface__["data"][0])
        return Layout(address, x.shape, x.strides, x.itemsize, x.dtype, None)
    pointer: Any = getattr(x, "data", None)
    if hasattr(pointer, "ptr") and hasattr(pointer, "device_id") and hasattr(x, "strides"):
        dtype = np.dtype(x.dtype)
        return Layout(int(pointer.ptr), tuple(x.shape), tuple(x.strides), dtype.itemsize, dtype, int(pointer.device_id))
    if hasattr(x, "data_ptr") and hasattr(x, "stride") and hasattr(x, "element_size"):
        itemsize = int(x.element_size())
        strides = tuple(int(step) * itemsize for step in x.stride())
        device = x.device.index if getattr(x.device, "type", "cpu") != "cpu" else None
        return Layout(int(x.data_ptr()), tuple(x.shape), strides, itemsize, _torch_dtype(x), device)
    raise TypeError(f"{_quote(x)} is no array: give CuPy, NumPy or torch arrays, or a dict, list or tuple of them")


def _torch_dtype(x: Array) -> np.dtype[Any] | None:
    try:
        return np.dtype(str(x.dtype).removeprefix("torch."))
    except TypeError:
        return None  # bfloat16 and others that NumPy lacks


def _quote(value: object) -> str:
    text = repr(value)
    return f"{text if len(text) <= 80 else text[:77] + '...'} (a {type(value).__name__})"


def lifted(x: Any) -> Any:
    """`x`, a NumPy scalar made the array without dimensions that CuPy gives in its place (``x.sum()``, ``x[0, 0]``)."""
    if isinstance(x, np.generic):
        x = np.asarray(x)
        x.flags.writeable = False
    return x


def arrays_in(*nests: Any) -> list[Array]:
    """The arrays of nests of dict, list and tuple, in order.

    Raises
    ------
    TypeError
        A leaf is no array.
    ValueError
        A container contains itself.
    """
    found: list[Array] = []
    _collect(nests, (), found)
    return found


_known: set[type] = {np.ndarray}
"""Types of which one was found to be an array as NumPy's and CuPy's are: the others need no look. A set of types only
grows, by one step of a C function."""


def _like_cupy(x: Array) -> bool:
    """Whether the type of `x`, and not only `x`, has what tells CuPy's arrays."""
    return all(hasattr(type(x), name) for name in ("data", "flags", "nbytes", "strides")) and hasattr(x.data, "ptr")


def _collect(value: Any, above: tuple[int, ...], found: list[Array]) -> None:
    if type(value) in _known:
        found.append(value)
        return
    if not isinstance(value, (dict, list, tuple)):
        value = lifted(value)
        layout_of(value)
        if isinstance(value, np.ndarray) or _like_cupy(value):
            _known.add(type(value))
        found.append(value)
        return
    if id(value) in above:
        raise ValueError(f"a {type(value).__name__} contains itself: no nest of arrays")
    for one in value.values() if isinstance(value, dict) else value:
        _collect(one, (*above, id(value)), found)


def merge(ranges: Iterable[Range]) -> list[Range]:
    """Sorted ranges, those that touch or overlap made one; empty ones dropped.

    Examples
    --------
    >>> merge([(8, 12), (0, 4), (4, 6), (9, 10), (20, 20)])
    [(0, 6), (8, 12)]
    """
    merged: list[Range] = []
    for start, stop in sorted(one for one in ranges if one[0] < one[1]):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        else:
            merged.append((start, stop))
    return merged


class Span(NamedTuple):
    """A range that one call can be made on, and the allocation that it lies in."""

    start: int
    stop: int
    allocation: Allocation

    @property
    def nbytes(self) -> int:
        return self.stop - self.start


@dataclass(slots=True)
class Spans:
    """What hints on some arrays can act on: byte ranges in managed memory, grouped by driver allocation."""

    page: int
    ranges: dict[Allocation, list[Range]] = field(default_factory=dict)
    """Merged ranges of the arrays' bytes, by the allocation that they lie in."""
    arrays: int = 0
    skipped: int = 0
    """Arrays in plain, pinned or ordinary memory, which no hint can act on."""
    bytes_between: int = 0
    """Bytes of the ranges in gaps of a page and more, in which their array has no element."""

    @property
    def nbytes(self) -> int:
        """Bytes in the ranges, before rounding."""
        return sum(stop - start for ranges in self.ranges.values() for start, stop in ranges)

    def outward(self) -> list[Span]:
        """Whole pages that hold the ranges, merged; never past an allocation."""
        page = self.page
        return self._rounded(lambda start, stop, within: (start // page * page, -(-stop // page) * page))

    def inward(self) -> list[Span]:
        """Whole pages inside the ranges. The end of an allocation counts as the end of a page: nobody else is there."""
        page = self.page

        def round_inward(start: int, stop: int, within: Range) -> Range:
            whole = within[0] % page == 0  # else it is a part of somebody's allocation, as far as anybody knows
            return (
                start if whole and start == within[0] else -(-start // page) * page,
                stop if whole and stop == within[1] else stop // page * page,
            )

        return self._rounded(round_inward)

    def _rounded(self, rule: Callable[[int, int, Range], Range]) -> list[Span]:
        spans = []
        for allocation, ranges in sorted(self.ranges.items(), key=lambda item: item[0].address):
            within = (allocation.address, allocation.address + allocation.nbytes)
            rounded = (rule(start, stop, within) for start, stop in ranges)
            merged = merge((max(start, within[0]), min(stop, within[1])) for start, stop in rounded)
            spans += [Span(start, stop, allocation) for start, stop in merged]
        return spans


def spans_of(arrays: Iterable[Array], find: Callable[[int], Allocation | None], page: int) -> Spans:
    """Find the managed memory under arrays.

    Parameters
    ----------
    arrays : iterable of arrays
        Views of any kind; those without elements take no part.
    find : callable
        The driver's `find`.
    page : int
        Bytes of the driver's page.
    """
    spans = Spans(page)
    ranges: list[Range] = []
    first = last = end = 0  # of the allocation, which an array mostly shares with the one before it
    for x in arrays:
        spans.arrays += 1
        start, stop, layout = _range_of(x)
        if start == stop:
            continue
        if not first <= start < last:
            allocation = find(start)
            if allocation is None or allocation.kind is not Kind.MANAGED:
                spans.skipped += 1
                continue
            first, last = allocation.address, allocation.address + allocation.nbytes
            if first == last:  # somebody else's, of unknown extent: a page beyond, so that no end of it is ours
                begin = start // page * page - page
                allocation = replace(allocation, address=begin, nbytes=-(-stop // page) * page + page - begin)
            end = allocation.address + allocation.nbytes
            ranges = spans.ranges.setdefault(allocation, [])
        stop = min(stop, end)
        ranges.append((start, stop))
        if layout is not None:
            spans.bytes_between += max(0, stop - start - layout.touched(page))
    spans.ranges = {allocation: merge(ranges) for allocation, ranges in spans.ranges.items()}
    return spans


def _range_of(x: Array) -> tuple[int, int, Layout | None]:
    """The range of an array, and its layout unless it is one without gaps, as nearly all are: that takes a third."""
    if type(x) in _known and x.flags.c_contiguous:
        start: int = x.__array_interface__["data"][0] if isinstance(x, np.ndarray) else x.data.ptr
        return start, start + x.nbytes, None
    layout = layout_of(x)
    return *layout.range, layout
