"""On-demand faults."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.observe.findings.made_up import COSTS, GPU, PAGE, case, moved, named
from umarray.observe.findings.on_demand import find
from umarray.places import HOST, Device


def test_a_sweep_is_one_prefetch() -> None:
    (finding,) = find(case(moved(0, 64, HOST, GPU)))
    assert finding.remedy == "with um.prefetch(x):"
    assert finding.evidence == {"faults": 64, "moved bytes": 64 * PAGE, "prefetches that would do": 1}
    cost = 64 * 20e-6 + 64 * PAGE / 2.8e9
    assert finding.cost == pytest.approx(cost)
    assert finding.saving == pytest.approx(cost - 50e-6 - 64 * PAGE / 26e9)


def test_pages_that_come_again_need_a_prefetch_each_time() -> None:
    (finding,) = find(case(*(moved(0, 8, HOST, GPU) for _ in range(5))))
    assert finding.evidence["prefetches that would do"] == 5


def test_the_host_gets_a_view_and_another_device_is_named() -> None:
    to_host, to_other = find(case(moved(0, 8, GPU, HOST), moved(0, 8, HOST, Device(1))))
    assert to_host.remedy == "with um.host_view(x) as h:"
    assert to_other.remedy == "with um.prefetch(x, to=um.Device(1)):"


@pytest.mark.parametrize("cause", ["prefetch", "eviction", "advice"])
def test_what_nobody_waited_for_is_none(cause: str) -> None:
    assert find(case(moved(0, 8, HOST, GPU, cause=cause))) == []


def test_first_touches_that_move_nothing_are_none() -> None:
    assert find(case(moved(0, 8, GPU, GPU, kind="made"))) == []


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 8)), min_size=1, max_size=20))
def test_every_byte_is_charged_once(runs: list[tuple[int, int]]) -> None:
    arrays = [named("a", 0, 16), named("b", 16, 5), named("c", 30, 9)]
    found = find(case(*(moved(first, pages, HOST, GPU) for first, pages in runs), arrays=arrays))
    assert sum(int(one.evidence["moved bytes"]) for one in found) == sum(pages for _, pages in runs) * PAGE
    assert sum(int(one.evidence["faults"]) for one in found) == sum(pages for _, pages in runs)
    total = sum(COSTS.demanding(pages * PAGE, HOST, GPU, pages) for _, pages in runs)
    assert sum(one.cost for one in found) == pytest.approx(total)
