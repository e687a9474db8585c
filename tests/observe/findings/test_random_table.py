"""Tables read at random."""

from __future__ import annotations

import random

from tests.observe.findings.made_up import GPU, PAGE, case, moved, named
from umarray.observe.facts import Move
from umarray.observe.findings.random_table import find
from umarray.places import HOST


def rows(count: int, of: int, *, write: bool = False) -> list[Move]:
    return [moved(row, 1, HOST, GPU, write=write) for row in random.Random(0).sample(range(of), count)]


def test_rows_in_no_order() -> None:
    (finding,) = find(case(*rows(60, 256), arrays=[named("table", 0, 256)]))
    assert finding.remedy == "with um.advise(table, read_mostly=True), um.prefetch(table):"
    assert finding.evidence["faults"] == 60 and finding.evidence["table bytes"] == 256 * PAGE
    assert 0 < finding.saving < finding.cost


def test_one_that_does_not_fit_is_reached_over_the_bus() -> None:
    (finding,) = find(case(*rows(60, 256), arrays=[named("table", 0, 256)], memory={0: 128 * PAGE}))
    assert finding.remedy == "with um.advise(table, preferred_location=um.HOST, accessed_by=um.Device(0)):"


def test_a_sweep_is_none() -> None:
    assert find(case(*(moved(page, 1, HOST, GPU) for page in range(128)), arrays=[named("x", 0, 256)])) == []


def test_one_that_is_read_whole_is_none() -> None:
    assert find(case(*rows(256, 256), arrays=[named("x", 0, 256)])) == []


def test_a_part_that_is_read_whole_in_any_order_is_none() -> None:
    assert find(case(*rows(128, 128), arrays=[named("x", 0, 256)])) == []


def test_one_that_is_written_is_none() -> None:
    assert find(case(*rows(60, 256, write=True), arrays=[named("x", 0, 256)])) == []
