"""How the sizes of roots are learned, against streams whose need is known."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from umarray.memory.owners import Owner
from umarray.memory.shares import LEAST_ROOT, Shares

ROOM = 1 << 30
UNIT = 512


def epoch(shares: Shares, needs: dict[Owner, int], laid: dict[Owner, int]) -> tuple[int, bool]:
    """Streams that allocate up to their need in pieces of a sixteenth; what was missed, and whether to make anew."""
    misses = 0
    peaks = {}
    for owner, need in needs.items():
        used = 0
        while used < need:
            piece = min(need - used, max(UNIT, need // 16 // UNIT * UNIT))
            held = laid.get(owner, 0)
            if used + piece > held:
                misses += 1
                free = ROOM - sum(laid.values()) - piece
                laid[owner] = held + piece + min(free, shares.share(owner, piece, held, free)) // UNIT * UNIT
            used += piece
        peaks[owner] = laid[owner]
    anew = shares.learn(peaks)
    if anew:
        laid.clear()
    return misses, anew


def test_one_stream_gets_all_there_is_and_never_asks_again() -> None:
    shares, laid, needs = Shares(), {}, {Owner(0, 1): 40 << 20}
    assert epoch(shares, needs, laid)[1]
    assert epoch(shares, needs, laid) == (1, False)
    assert laid[Owner(0, 1)] > ROOM * 0.9
    assert epoch(shares, needs, laid) == (0, False)


@given(st.lists(st.integers(1 << 16, 1 << 26), min_size=2, max_size=5))
@settings(max_examples=60, deadline=None)
def test_several_streams_are_learned_to_a_few_percent_and_then_left_alone(sizes: list[int]) -> None:
    shares, laid = Shares(), {}
    needs = {Owner(0, index): nbytes // UNIT * UNIT for index, nbytes in enumerate(sizes)}
    for _ in range(24):
        misses, anew = epoch(shares, needs, laid)
    assert (misses, anew) == (0, False)
    for owner, need in needs.items():
        assert need <= laid[owner] <= need * 1.02 + 2 * LEAST_ROOT


def test_a_stream_that_grows_is_learned_anew_and_one_that_went_is_forgotten() -> None:
    shares, laid = Shares(), {}
    first, second, third = (Owner(0, index) for index in range(3))
    for _ in range(24):
        epoch(shares, {first: 8 << 20, second: 8 << 20}, laid)
    for _ in range(24):
        misses, _ = epoch(shares, {first: 32 << 20, second: 8 << 20}, laid)
    assert misses == 0
    assert 32 << 20 <= laid[first] <= 34 << 20
    assert shares.learn({third: 0}) in (True, False)
    laid.clear()
    shares._active.clear()
    epoch(shares, {third: 1 << 20}, laid)
    assert set(shares._wants) == {third}


@pytest.mark.parametrize("free", [0, 100, LEAST_ROOT])
def test_a_share_is_never_more_than_what_is_free(free: int) -> None:
    shares = Shares()
    for owner in (Owner(0, 1), Owner(0, 2)):
        assert 0 <= shares.share(owner, UNIT, 0, free) <= free
