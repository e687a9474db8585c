"""Prefetches on the default stream."""

from __future__ import annotations

import pytest

from tests.observe.findings.made_up import BASE, GPU, PAGE, case, moved
from umarray.observe.facts import Prefetch
from umarray.observe.findings.default_stream import find
from umarray.places import HOST


def asked(stream: int | None) -> Prefetch:
    return Prefetch(0.0, BASE, 8 * PAGE, GPU, stream=stream, line="train.py:7")


def test_what_moved_there_could_have_moved_beside() -> None:
    (finding,) = find(case(moved(0, 8, HOST, GPU, cause="prefetch"), prefetches=[asked(0)]))
    assert finding.evidence == {"prefetches": 1, "moved bytes": 8 * PAGE, "asked at": "train.py:7"}
    assert finding.saving == pytest.approx(8 * PAGE / 26e9)


@pytest.mark.parametrize("stream", [None, 94352760498272])
def test_another_stream_is_right(stream: int | None) -> None:
    assert find(case(moved(0, 8, HOST, GPU, cause="prefetch"), prefetches=[asked(stream)])) == []


def test_one_that_moved_nothing_cost_nothing() -> None:
    assert find(case(moved(0, 8, HOST, GPU), prefetches=[asked(0)])) == []
