"""Spans against a brute-force set of bytes, for views of every kind."""

from __future__ import annotations

from collections import namedtuple
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from umarray.drivers.base import Allocation, Kind
from umarray.places import HOST, Device
from umarray.residency.spans import Layout, arrays_in, layout_of, merge, spans_of

PAGE = 64
SIZE = 40 * PAGE
MEMORY = np.zeros(SIZE + PAGE, np.uint8)
START = -(-MEMORY.ctypes.data // PAGE) * PAGE
BASE = MEMORY[START - MEMORY.ctypes.data :][:SIZE]


def bytes_of(x: np.ndarray[Any, Any]) -> set[int]:
    """Every byte that an element of `x` occupies, one element at a time."""
    found = set[int]()
    for index in np.ndindex(x.shape):
        first = x.__array_interface__["data"][0] + sum(i * s for i, s in zip(index, x.strides, strict=True))
        found |= set(range(first, first + x.itemsize))
    return found


def as_bytes(ranges: Any) -> set[int]:
    return {byte for one in ranges for byte in range(one[0], one[1])}


@st.composite
def views(draw: st.DrawFn) -> np.ndarray[Any, Any]:
    """A view into BASE: sliced, reversed, transposed, broadcast, of several types, perhaps without elements."""
    dtype = np.dtype(draw(st.sampled_from(["u1", "i2", "f4", "c16", "V3"])))
    count = draw(st.integers(0, SIZE // dtype.itemsize))
    first = draw(st.integers(0, SIZE - count * dtype.itemsize))
    x: np.ndarray[Any, Any] = np.ndarray((count,), dtype, BASE, first)
    if count and draw(st.booleans()):
        rows = draw(st.sampled_from([n for n in range(1, 9) if count % n == 0]))
        x = x.reshape(rows, -1)
    slices = []
    for n in x.shape:
        step = draw(st.sampled_from([1, 1, 2, 5, 30, -1, -3]))
        low, high = sorted((draw(st.integers(0, n)), draw(st.integers(0, n))))
        slices.append(slice(low, high, step) if step > 0 else slice(high - 1 if high else None, low or None, step))
    x = x[tuple(slices)]
    if draw(st.booleans()):
        x = x.T
    if draw(st.integers(0, 9)) == 0:
        x = np.broadcast_to(x, (3, *x.shape))
    return x


class Memory:
    """What a driver would find: allocations that tile BASE."""

    def __init__(self, cuts: list[int], kinds: list[Kind]) -> None:
        edges = [0, *cuts, SIZE]
        self.all = [
            Allocation(START + low, high - low, kind, HOST, serial)
            for serial, (low, high, kind) in enumerate(zip(edges, edges[1:], kinds, strict=False))
        ]

    def find(self, address: int) -> Allocation | None:
        return next((one for one in self.all if one.address <= address < one.address + one.nbytes), None)


ONE = Memory([], [Kind.MANAGED])


@given(views())
def test_a_layout_reaches_from_the_first_to_the_last_byte(x: np.ndarray[Any, Any]) -> None:
    layout, held = layout_of(x), bytes_of(x)
    start, stop = layout.range
    assert (start, stop) == (min(held), max(held) + 1) if held else start == stop
    assert layout.nbytes == x.size * x.itemsize
    if len(held) < x.size * x.itemsize:
        assert layout.overlaps_itself
    if not layout.overlaps_itself:
        assert len(held) == layout.nbytes


@given(views())
def test_gaps_of_a_page_are_told_and_smaller_ones_are_not(x: np.ndarray[Any, Any]) -> None:
    layout, held = layout_of(x), bytes_of(x)
    start, stop = layout.range
    touched = layout.touched(PAGE)
    assert touched <= stop - start
    if held and len({byte // PAGE for byte in held}) == (stop - 1) // PAGE - start // PAGE + 1:
        steps = sorted(abs(step) for step, n in zip(x.strides, x.shape, strict=True) if n > 1)
        if not steps or steps[-1] < PAGE:
            assert touched == stop - start  # every page holds an element: nothing is between


def test_a_column_of_wide_rows_is_told() -> None:
    x = np.ndarray((10, 4 * PAGE), np.uint8, BASE)
    assert layout_of(x[:, :3]).touched(PAGE) == 10 * PAGE
    assert spans_of([x[:, :3]], ONE.find, PAGE).bytes_between == 9 * 4 * PAGE + 3 - 10 * PAGE
    assert spans_of([x[:, ::2], x.T], ONE.find, PAGE).bytes_between == 0


@given(st.lists(views(), max_size=4), st.lists(st.integers(0, 39), unique=True, max_size=3), st.data())
def test_outward_covers_inward_lies_within_and_neither_leaves_the_allocation(
    arrays: list[np.ndarray[Any, Any]], pages: list[int], data: st.DataObject
) -> None:
    ends_in_page = data.draw(st.integers(0, 1)) * data.draw(st.integers(0, PAGE - 1))
    cuts = sorted(page * PAGE for page in pages if page)
    kinds = data.draw(st.lists(st.sampled_from(Kind), min_size=4, max_size=4))
    memory = Memory(cuts, kinds)
    memory.all[-1] = Allocation(
        memory.all[-1].address, memory.all[-1].nbytes - ends_in_page, memory.all[-1].kind, HOST, memory.all[-1].serial
    )
    spans = spans_of(arrays, memory.find, PAGE)
    expected, skipped = set[int](), 0
    for x in arrays:
        held = bytes_of(x)
        if not held:
            continue
        allocation = memory.find(min(held))
        if allocation is None or allocation.kind is not Kind.MANAGED:
            skipped += 1
            continue
        end = min(max(held) + 1, allocation.address + allocation.nbytes)
        expected |= set(range(min(held), end))
    managed = [one for one in memory.all if one.kind is Kind.MANAGED]
    inside = {byte for one in managed for byte in range(one.address, one.address + one.nbytes)}
    whole = {byte // PAGE for byte in inside}

    assert (spans.arrays, spans.skipped) == (len(arrays), skipped)
    assert spans.nbytes == len(expected)
    touched = {byte // PAGE for byte in expected}
    assert as_bytes(spans.outward()) == {byte for byte in inside if byte // PAGE in touched}
    full = {page for page in whole if {b for b in range(page * PAGE, page * PAGE + PAGE) if b in inside} <= expected}
    assert as_bytes(spans.inward()) == {byte for byte in inside if byte // PAGE in full}
    for found in (spans.outward(), spans.inward()):
        for one in found:
            assert one.allocation.address <= one.start < one.stop <= one.allocation.address + one.allocation.nbytes
        for before, after in zip(found, found[1:], strict=False):
            assert before.stop < after.start or before.allocation != after.allocation  # merged: one call a span


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=12))
def test_merge_keeps_the_bytes_and_leaves_gaps(ranges: list[tuple[int, int]]) -> None:
    merged = merge(ranges)
    assert as_bytes(merged) == as_bytes(ranges)
    assert all(before[1] < after[0] for before, after in zip(merged, merged[1:], strict=False))


def test_memory_of_unknown_extent_rounds_within_its_pages_and_is_nobodys_end() -> None:
    def find(address: int) -> Allocation:
        return Allocation(address, 0, Kind.MANAGED, Device(0), 0)

    x = np.ndarray((3 * PAGE,), np.uint8, BASE, PAGE + 8)
    spans = spans_of([x], find, PAGE)
    assert [(one.start - START, one.stop - START) for one in spans.outward()] == [(PAGE, 5 * PAGE)]
    assert [(one.start - START, one.stop - START) for one in spans.inward()] == [(2 * PAGE, 4 * PAGE)]


def test_an_allocation_that_starts_within_a_page_is_not_the_end_of_one() -> None:
    part = Allocation(START + 8, 2 * PAGE, Kind.MANAGED, Device(0), 1)
    x = np.ndarray((2 * PAGE,), np.uint8, BASE, 8)
    spans = spans_of([x], lambda address: part, PAGE)
    assert [(one.start - START, one.stop - START) for one in spans.inward()] == [(PAGE, 2 * PAGE)]
    assert [(one.start - START, one.stop - START) for one in spans.outward()] == [(8, 2 * PAGE + 8)]


def test_cupy_is_told_by_its_pointer_and_needs_no_import() -> None:
    x = SimpleNamespace(
        data=SimpleNamespace(ptr=4096, device_id=1), shape=(2, 3), strides=(-12, 4), dtype=np.dtype("f4")
    )
    assert layout_of(x) == Layout(4096, (2, 3), (-12, 4), 4, np.dtype("f4"), 1)
    assert layout_of(x).range == (4084, 4108)


@pytest.mark.parametrize(("kind", "index", "device"), [("cuda", 1, 1), ("cpu", None, None)])
def test_torch_tensors_by_their_own_methods(kind: str, index: int | None, device: int | None) -> None:
    x = SimpleNamespace(
        data_ptr=lambda: 4096,
        stride=lambda: (3, 1),
        element_size=lambda: 2,
        shape=(2, 3),
        dtype="torch.bfloat16",
        device=SimpleNamespace(type=kind, index=index),
    )
    assert layout_of(x) == Layout(4096, (2, 3), (6, 2), 2, None, device)
    x.dtype = "torch.float16"
    assert layout_of(x).dtype == np.float16


def test_a_view_of_more_than_2_gib_has_64_bit_ends() -> None:
    x = SimpleNamespace(
        data=SimpleNamespace(ptr=1 << 40, device_id=0), shape=(1 << 29,), strides=(16,), dtype=np.dtype("f8")
    )
    assert layout_of(x).range == ((1 << 40), (1 << 40) + ((1 << 29) - 1) * 16 + 8)


def test_nests_in_order() -> None:
    a, b, c, d = (np.zeros(n) for n in range(4))
    pair = namedtuple("pair", "first second")
    assert [id(x) for x in arrays_in({"a": a, "b": [b, (c,)]}, pair([], d))] == [id(x) for x in (a, b, c, d)]


@pytest.mark.parametrize("leaf", [None, 3, 2.5, "host", b"1", Device(0), {1, 2}, object])
def test_a_leaf_that_is_no_array_is_quoted(leaf: object) -> None:
    with pytest.raises(TypeError, match="is no array") as caught:
        arrays_in([np.zeros(3), {"x": leaf}])
    assert repr(leaf)[:40] in str(caught.value)


def test_a_container_in_itself_is_refused_and_one_twice_is_not() -> None:
    x = [np.zeros(1)]
    assert len(arrays_in([x, x])) == 2
    x.append(x)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="contains itself"):
        arrays_in(x)


class Counting:
    """A driver's `find` that tells how often it was asked."""

    def __init__(self, *allocations: Allocation) -> None:
        self.allocations, self.asked = allocations, 0

    def __call__(self, address: int) -> Allocation | None:
        self.asked += 1
        inside = (one for one in self.allocations if one.address <= address < one.address + max(one.nbytes, 1))
        return next(inside, None)


def test_neighbours_in_one_allocation_are_looked_for_once() -> None:
    first, second = (Allocation(START + k * PAGE, PAGE, Kind.MANAGED, HOST, k) for k in range(2))
    find = Counting(first, second)
    spans = spans_of([BASE[k : k + 8] for k in (0, 8, 32, PAGE, PAGE + 8, 16)], find, PAGE)
    assert find.asked == 3  # the first, the second, and the first again
    assert spans.ranges == {
        first: [(START, START + 24), (START + 32, START + 40)],
        second: [(START + PAGE, START + PAGE + 16)],
    }


def test_an_allocation_of_unknown_extent_is_looked_for_each_time() -> None:
    find = Counting(*(Allocation(START + k, 0, Kind.MANAGED, HOST, k) for k in (0, 8)))
    spans = spans_of([BASE[:8], BASE[8:16]], find, PAGE)
    assert find.asked == 2 and len(spans.ranges) == 2
