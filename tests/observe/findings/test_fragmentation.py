"""Holes between what lives long."""

from __future__ import annotations

from tests.observe.findings.made_up import BASE, case
from umarray.observe.facts import Made, Pool
from umarray.observe.findings.fragmentation import find

KIB = 1 << 10
POOL = Pool("managed", 64 << 20, 0)


def blocks(count: int, every: int, **more: float) -> list[Made]:
    return [Made(0.1, BASE + number * every, 4 * KIB, "a.py:3", **more) for number in range(count)]


def test_many_holes() -> None:
    (finding,) = find(case(made=blocks(20, 256 * KIB), pools=[POOL]))
    assert finding.evidence["holes"] == 18 and finding.saving_bytes == 18 * 252 * KIB


def test_neighbours_and_the_dead_make_none() -> None:
    assert find(case(made=blocks(20, 4 * KIB), pools=[POOL])) == []
    assert find(case(made=blocks(20, 256 * KIB, gone=0.2), pools=[POOL])) == []


def test_what_lies_between_arenas_is_no_hole() -> None:
    assert find(case(made=blocks(20, 128 << 20), pools=[POOL])) == []
