"""Sets of addresses, against Python's sets."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from umarray.observe.ranges import Ranges

STEPS = st.lists(st.tuples(st.booleans(), st.integers(0, 30), st.integers(0, 30)), max_size=30)


@given(STEPS)
def test_it_is_a_set(steps: list[tuple[bool, int, int]]) -> None:
    ranges, model = Ranges(), set[int]()
    for put, start, stop in steps:
        part = set(range(start, stop))
        if put:
            assert ranges.put(start, stop) == len(part - model)
            model |= part
        else:
            assert ranges.take(start, stop) == len(part & model)
            model -= part
        found = list(ranges)
        assert {number for first, last in found for number in range(first, last)} == model
        assert ranges.nbytes == len(model)
        assert all(before[1] < after[0] for before, after in zip(found, found[1:], strict=False))
