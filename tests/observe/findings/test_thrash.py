"""Working sets that do not fit."""

from __future__ import annotations

from tests.observe.findings.made_up import GPU, PAGE, case, moved, named
from umarray.observe.facts import Move
from umarray.observe.findings.thrash import find
from umarray.places import HOST

ARRAYS = [named("a", 0, 8), named("b", 8, 8), named("c", 16, 8)]


def sweeps(count: int) -> list[Move]:
    """Three arrays in turn, where two fit: each pushes out the one that was used the longest ago."""
    moves: list[Move] = []
    for turn in range(3 * count):
        if turn >= 2:
            moves.append(moved(8 * ((turn - 2) % 3), 8, GPU, HOST, cause="eviction"))
        moves.append(moved(8 * (turn % 3), 8, HOST, GPU))
    return moves


def test_the_working_set_and_what_to_leave_out() -> None:
    (finding,) = find(case(*sweeps(3), arrays=ARRAYS))
    assert finding.evidence == {
        "working set bytes": 24 * PAGE,
        "room bytes": 16 * PAGE,
        "evicted bytes": 7 * 8 * PAGE,
        "fetched again bytes": 6 * 8 * PAGE,
        "leave out bytes": 8 * PAGE,
    }
    assert (
        finding.remedy
        == f"with um.advise({finding.subject.name}, preferred_location=um.HOST, accessed_by=um.Device(0)):"
    )
    assert 0.8 * finding.cost < finding.saving < finding.cost


def test_one_array_is_left_out_in_part() -> None:
    pages = [*range(8), *range(8), *range(8)]
    moves = []
    for turn, page in enumerate(pages):
        if turn >= 6:
            moves.append(moved(pages[turn - 6], 1, GPU, HOST, cause="eviction"))
        moves.append(moved(page, 1, HOST, GPU))
    (finding,) = find(case(*moves))
    assert finding.evidence["room bytes"] == 6 * PAGE
    assert finding.remedy.startswith("with um.advise(x[5:], preferred_location=um.HOST,")


def test_what_is_pushed_out_and_not_wanted_again_is_no_thrash() -> None:
    moves = [moved(0, 8, HOST, GPU), moved(0, 8, GPU, HOST, cause="eviction"), moved(8, 8, HOST, GPU)]
    assert find(case(*moves, arrays=ARRAYS)) == []
