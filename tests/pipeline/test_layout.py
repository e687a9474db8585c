"""Where arrays lie in a slot, and what may be copied in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from umarray.drivers.host import HostDriver
from umarray.pipeline.layout import ALIGNMENT, Layout
from umarray.pipeline.structure import Spec

shapes = st.lists(st.integers(0, 5), max_size=3).map(tuple)
specs = st.lists(st.builds(Spec, shapes, st.sampled_from(["u1", "f4", "i8", "c16"])), min_size=1, max_size=5)


@given(specs, st.data())
def test_arrays_lie_apart_and_hold_what_is_written(like: list[Spec], data: st.DataObject) -> None:
    layout = Layout(like)
    memory = np.zeros(layout.nbytes, np.uint8)
    address, driver = memory.ctypes.data, HostDriver()
    arrays = layout.host_arrays(address, memory)
    assert [(array.shape, array.dtype) for array in arrays] == [(spec.shape, spec.dtype) for spec in like]
    assert all(start % ALIGNMENT == 0 for start in layout.offsets)
    for number, array in enumerate(arrays):
        array[...] = number + 1
    assert all((array == number + 1).all() for number, array in enumerate(arrays))

    length = data.draw(st.integers(0, layout.capacity))
    memory[:] = 255
    for start, nbytes in layout.used([length]):
        memory[start : start + nbytes] = 0  # as a copy of a short batch would
    for array in layout.arrays(driver, address, memory, 0, length):
        assert not array.any()
        assert array.ndim == 0 or array.shape[0] in (length, *(spec.shape[0] for spec in like if spec.shape))


@given(specs, st.data())
def test_a_group_is_one_range_that_holds_its_batches(like: list[Spec], data: st.DataObject) -> None:
    layout = Layout(like)
    lengths = data.draw(st.lists(st.integers(0, layout.capacity), min_size=2, max_size=5))
    memory = np.full(len(lengths) * layout.stride, 255, np.uint8)
    [(start, nbytes)] = layout.used(lengths)
    memory[start : start + nbytes] = 0
    for number, length in enumerate(lengths):
        address = memory.ctypes.data + number * layout.stride
        assert not any(one.any() for one in layout.arrays(HostDriver(), address, memory, 0, length))


@pytest.mark.parametrize("like", [{}, [1, "a"], None, 3])
def test_a_slot_without_arrays_is_refused(like: Any) -> None:
    with pytest.raises(ValueError, match="holds no array"):
        Layout(like)


def test_an_absurd_slot_is_refused() -> None:
    with pytest.raises(ValueError, match=r"2\*\*63"):
        Layout([Spec(2**62, "u1"), Spec(2**62, "u1")])


@pytest.mark.parametrize(
    ("item", "error", "words"),
    [
        ((np.zeros((5, 2)), np.zeros(5)), ValueError, r"item\[0\] has shape \(5, 2\); the slot takes at most \(4, 2\)"),
        ((np.zeros((4, 3)), np.zeros(4)), ValueError, r"item\[0\] has shape \(4, 3\)"),
        ((np.zeros((3, 2)), np.zeros(4)), ValueError, r"item\[1\] has 4 samples where the arrays before it have 3"),
        ((np.zeros((4, 2)), np.zeros(4, "c16")), TypeError, r"item\[1\] has dtype complex128"),
        ((Spec((4, 2)), np.zeros(4)), TypeError, r"item\[0\] must be a NumPy array .* not Spec"),
    ],
)
def test_an_item_that_does_not_fit_is_refused_before_anything_is_written(item: Any, error: Any, words: str) -> None:
    layout = Layout((Spec((4, 2)), Spec(4)))
    targets = [np.full((4, 2), 9.0), np.full(4, 9.0)]
    with pytest.raises(error, match=words):
        layout.fill(targets, item)
    assert all((target == 9).all() for target in targets)


def test_an_item_is_copied_in_and_gives_the_length() -> None:
    layout = Layout((Spec((4, 2)), "x", Spec(())))
    targets = [np.full((4, 2), 9.0), np.array(9.0)]
    assert layout.fill(targets, (np.ones((3, 2), "f4"), "y", np.array(2))) == (3, ["y"])
    assert (targets[0][:3] == 1).all() and (targets[0][3] == 9).all() and targets[1] == 2
