"""Curves: between their points, below the first, above the last; what is none."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from umarray.calibration.curve import Curve

points = st.dictionaries(st.integers(1, 1 << 30), st.floats(0, 10), min_size=1, max_size=6).map(
    lambda d: list(d.items())
)


def test_between_its_points_it_is_a_straight_line_and_outside_it_goes_on() -> None:
    curve = Curve(((1000, 1.0), (3000, 2.0), (4000, 4.0)))
    assert [curve(n) for n in (1, 1000, 2000, 3000, 3500, 4000, 5000)] == [1.0, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
    assert curve.rate(4000) == 1000


def test_one_point_goes_on_at_its_own_rate_and_a_flat_end_at_its_last_points() -> None:
    assert Curve(((100, 1.0),))(300) == 3.0
    assert Curve(((100, 2.0), (200, 2.0)))(400) == 4.0
    assert Curve(((1, 0.0),))(10**9) == 0 and Curve(((1, 0.0),)).rate(5) == math.inf


def test_a_line_has_a_start_and_a_rate() -> None:
    line = Curve.line(1e-3, 1e9)
    assert line(10**9) == pytest.approx(1.001) and line(10) == pytest.approx(1e-3, rel=1e-4)


@given(points, st.integers(1, 1 << 31), st.integers(1, 1 << 31))
def test_of_points_in_any_order_more_bytes_never_take_less(found: list[tuple[int, float]], a: int, b: int) -> None:
    curve = Curve.of(found)
    low, high = sorted((a, b))
    assert curve(low) <= curve(high) * (1 + 1e-9) + 1e-12
    assert all(x[0] < y[0] and x[1] <= y[1] for x, y in pairwise(curve.points))


@pytest.mark.parametrize(
    "bad",
    [(), ((0, 1.0),), ((2, 1.0), (2, 2.0)), ((3, 1.0), (2, 2.0)), ((1, math.nan),), ((1, -1.0),), ((1, math.inf),)],
)
def test_what_is_no_curve_is_quoted(bad: tuple[tuple[int, float], ...]) -> None:
    with pytest.raises(ValueError) as caught:
        Curve(bad)
    assert repr(bad) in str(caught.value)
