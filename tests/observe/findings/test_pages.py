"""Visits of pages, and counts over moves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.observe.findings.made_up import GPU, PAGE, case, moved, there_and_back
from umarray.observe.findings.pages import Visited, code, demanded, distinct, nbytes_of, on_demand, times, to_argument
from umarray.places import HOST, Device


def test_a_page_bounces_when_it_goes_back_and_forth_again() -> None:
    visited = Visited(PAGE)
    for move in there_and_back(1, 2):
        visited.add(move)
    assert not visited.bouncing(moved(0, 2, HOST, GPU))
    for move in there_and_back(1, 2):
        visited.add(move)
    assert visited.bouncing(moved(0, 2, HOST, GPU)) and visited.rounds([moved(0, 1, HOST, GPU)]) == 2
    assert not visited.bouncing(moved(0, 5, HOST, GPU))  # most of these pages do not


@pytest.mark.parametrize(
    ("cause", "kind", "asked"),
    [
        ("fault", "moved", True),
        ("speculative", "copied", True),
        ("coherence", "moved", True),
        ("prefetch", "moved", False),
        ("fault", "made", False),
    ],
)
def test_on_demand_is_what_a_touch_moved(cause: str, kind: str, asked: bool) -> None:
    assert on_demand(moved(0, 1, HOST, GPU, cause=cause, kind=kind)) is asked


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 5)), max_size=15))
def test_distinct_counts_a_page_once(runs: list[tuple[int, int]]) -> None:
    moves = [moved(first, pages, HOST, GPU) for first, pages in runs]
    pages = {page for first, count in runs for page in range(first, first + count)}
    assert distinct(moves) == len(pages) * PAGE <= nbytes_of(moves)
    assert times(moves) >= 1


def test_places_as_a_program_writes_them() -> None:
    assert (code(HOST), code(Device(2))) == ("um.HOST", "um.Device(2)")
    assert (to_argument(GPU), to_argument(HOST)) == ("", ", to=um.HOST")


def test_each_page_that_comes_on_demand_is_a_fault() -> None:
    one = case()
    assert demanded(one, 3 * PAGE + 1, HOST, GPU) == pytest.approx(4 * 20e-6 + (3 * PAGE + 1) / 2.8e9)
