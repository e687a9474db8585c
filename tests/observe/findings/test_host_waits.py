"""Turns that the host and the device take."""

from __future__ import annotations

import pytest

from tests.observe.findings.made_up import BASE, PAGE, case, named
from umarray.observe.facts import View
from umarray.observe.findings.host_waits import find


def views(count: int, waited: float, worked: float) -> list[View]:
    return [View(0.1 * n, BASE, PAGE, "w", 0.1 * n + waited + worked, waited, "a.py:9") for n in range(count)]


def test_what_could_overlap_is_the_shorter_of_both() -> None:
    (finding,) = find(case(views=views(8, 0.05, 0.03), arrays=[named("batch", 0, 1)]))
    assert finding.saving == pytest.approx(8 * 0.03) and not finding.modelled
    assert finding.subject is not None and finding.subject.name == "batch"
    assert "um.Pipeline" in finding.remedy and "a.py:9" in finding.what


@pytest.mark.parametrize("few", [views(8, 0.05, 0.0001), views(8, 0.0, 0.05), views(3, 0.05, 0.05)])
def test_a_short_look_is_no_turn(few: list[View]) -> None:
    assert find(case(views=few)) == []
