"""All finders together: order, what is worth a line, and that nothing is told twice."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.observe.findings.made_up import GPU, PAGE, case, moved, named, there_and_back
from umarray.observe.facts import Escaped, Move
from umarray.observe.findings import LEAST, found_in
from umarray.places import HOST, Device

PLACES = [HOST, GPU, Device(1)]


def test_the_costliest_comes_first_and_memory_last() -> None:
    arrays = [named("small", 0, 20), named("large", 20, 200)]
    one = case(
        moved(0, 20, HOST, GPU), moved(20, 200, HOST, GPU), arrays=arrays, escapes=[Escaped("a.py:1", 1, 4096, "step")]
    )
    found = found_in(one.facts)
    assert [finding.title for finding in found] == ["on-demand faults", "on-demand faults", "escapes"]
    assert [finding.subject.name for finding in found[:2] if finding.subject] == ["large", "small"]


def test_what_saves_next_to_nothing_is_not_told() -> None:
    assert found_in(case(moved(0, 2, HOST, GPU)).facts) == ()
    assert found_in(case(moved(0, 100, HOST, GPU, cause="prefetch"), sees_uses=False).facts) == ()


def test_the_particular_comes_before_the_general() -> None:
    found = found_in(case(*there_and_back(4, 100, write=True)).facts)
    assert [finding.title for finding in found] == ["bouncing"]


moves = st.builds(
    lambda first, pages, origin, to, cause, write: moved(first, pages, origin, to, cause=cause, write=write),
    st.integers(0, 60),
    st.integers(1, 12),
    st.sampled_from(PLACES),
    st.sampled_from(PLACES),
    st.sampled_from(["fault", "prefetch", "eviction"]),
    st.booleans(),
).filter(lambda move: move.origin != move.to)


@given(st.lists(moves, max_size=40))
def test_any_history_can_be_explained(history: list[Move]) -> None:
    """And no move is the ground of two findings."""
    arrays = [named("a", 0, 24), named("b", 24, 24), named("c", 48, 10)]
    found = found_in(case(*history, arrays=arrays).facts)
    assert [one.cost for one in found] == sorted((one.cost for one in found), reverse=True)
    claimed = [claim for one in found for claim in one.claims]
    assert len(claimed) == len(set(claimed))
    for one in found:
        assert one.saving >= LEAST and one.saving <= one.cost * (1 + 1e-9)
        assert one.remedy and str(one)
    assert all(move.nbytes % PAGE == 0 for move in history)
