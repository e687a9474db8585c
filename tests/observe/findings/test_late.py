"""Prefetches that come too late."""

from __future__ import annotations

from tests.observe.findings.made_up import BASE, GPU, PAGE, case, moved
from umarray.observe.facts import Prefetch
from umarray.observe.findings.late import find
from umarray.places import HOST


def asked(at: float, first: int = 0, pages: int = 8) -> Prefetch:
    return Prefetch(at, BASE + first * PAGE, pages * PAGE, GPU)


def test_faults_that_do_what_was_asked_for() -> None:
    (finding,) = find(case(moved(0, 5, HOST, GPU), moved(5, 3, HOST, GPU, cause="prefetch"), prefetches=[asked(0.0)]))
    assert finding.evidence == {"late prefetches": 1, "faults": 5, "late bytes": 5 * PAGE}
    assert 0 < finding.saving < finding.cost


def test_faults_before_it_was_asked_for_are_not_late() -> None:
    assert find(case(moved(0, 8, HOST, GPU), prefetches=[asked(0.5)])) == []


def test_faults_after_it_came_are_another_thing() -> None:
    moves = (moved(0, 8, HOST, GPU, cause="prefetch"), moved(0, 8, GPU, HOST), moved(0, 8, HOST, GPU))
    assert find(case(*moves, prefetches=[asked(0.0)])) == []


def test_faults_of_another_place_are_not_late() -> None:
    assert find(case(moved(0, 8, GPU, HOST), prefetches=[asked(0.0)])) == []


def test_only_the_pages_that_were_asked_for() -> None:
    (finding,) = find(case(moved(0, 8, HOST, GPU), prefetches=[asked(0.0, 2, 3)]))
    assert finding.evidence["late bytes"] == 3 * PAGE
