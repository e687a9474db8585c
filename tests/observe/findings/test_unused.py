"""Prefetches that nobody used."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.observe.findings.made_up import GPU, PAGE, case, moved, used
from umarray.observe.findings.unused import find
from umarray.places import HOST


def test_the_part_that_is_used_is_no_waste() -> None:
    (finding,) = find(case(moved(0, 10, HOST, GPU, cause="prefetch"), used(0, 4, GPU)))
    assert finding.evidence == {"prefetched bytes": 10 * PAGE, "unused bytes": 6 * PAGE}
    assert finding.saving == pytest.approx(6 * PAGE / 26e9)


def test_what_went_away_unused_cost_both_ways() -> None:
    there, back = moved(0, 10, HOST, GPU, cause="prefetch"), moved(0, 10, GPU, HOST, cause="prefetch")
    (finding,) = find(case(there, back))
    assert finding.remedy == "# leave um.prefetch(x) out"
    assert finding.saving == pytest.approx(20 * PAGE / 26e9)


def test_a_source_that_cannot_see_uses_says_nothing() -> None:
    assert find(case(moved(0, 10, HOST, GPU, cause="prefetch"), sees_uses=False)) == []


def test_what_waits_on_the_host_is_no_waste() -> None:
    assert find(case(moved(0, 10, GPU, HOST, cause="prefetch"))) == []


def test_rows_here_and_there_are_worth_the_whole() -> None:
    """Half of the pages of a table, at random: the prefetch beats a fault for each."""
    touched = [used(page, 1, GPU) for page in range(0, 100, 2)]
    (finding,) = find(case(moved(0, 100, HOST, GPU, cause="prefetch"), *touched))
    assert finding.saving < 0
    few = [used(page, 1, GPU) for page in range(0, 90, 10)]
    (finding,) = find(case(moved(0, 100_000, HOST, GPU, cause="prefetch"), *few))
    assert 0 < finding.saving < finding.cost and finding.remedy.startswith("# leave um.prefetch(x) out: few")


@given(st.lists(st.integers(0, 19), max_size=20))
def test_unused_is_what_was_never_touched(touched: list[int]) -> None:
    found = find(case(moved(0, 20, HOST, GPU, cause="prefetch"), *(used(page, 1, GPU) for page in touched)))
    assert sum(int(one.evidence["unused bytes"]) for one in found) == (20 - len(set(touched))) * PAGE
