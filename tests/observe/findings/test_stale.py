"""Bytes that moved to be overwritten."""

from __future__ import annotations

from tests.observe.findings.made_up import GPU, PAGE, case, moved, named
from umarray.observe.findings.stale import find
from umarray.places import HOST


def test_overwritten_on_a_device_and_on_the_host() -> None:
    (finding,) = find(case(moved(0, 8, HOST, GPU, write=True)))
    assert finding.remedy == "with um.access(writes=[x]):" and finding.evidence["stale bytes"] == 8 * PAGE
    (finding,) = find(case(moved(0, 8, GPU, HOST, write=True)))
    assert finding.remedy == 'with um.host_view(x, "w") as h:'
    assert 0 < finding.saving < finding.cost


def test_a_few_writes_overwrite_nothing() -> None:
    assert find(case(moved(0, 2, HOST, GPU, write=True), arrays=[named("x", 0, 8)])) == []


def test_what_is_read_first_is_needed() -> None:
    assert find(case(moved(0, 4, HOST, GPU), moved(4, 4, HOST, GPU, write=True))) == []
