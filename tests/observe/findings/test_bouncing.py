"""Arrays that go back and forth."""

from __future__ import annotations

import pytest

from tests.observe.findings.made_up import GPU, case, moved, there_and_back
from umarray.observe.findings.bouncing import find
from umarray.places import HOST, Device


def test_between_host_and_device() -> None:
    (finding,) = find(case(*there_and_back(4, 10)))
    assert (finding.evidence["rounds"], finding.evidence["faults"]) == (4, 80)
    assert finding.remedy.startswith('with um.host_view(x, "r+") as h:')
    assert 0.8 * finding.cost < finding.saving < finding.cost


def test_there_and_back_once_is_no_habit() -> None:
    assert find(case(*there_and_back(1, 10))) == []


def test_what_a_prefetch_brings_back_and_forth_does_not_bounce() -> None:
    moves = [moved(0, 4, *way, cause="prefetch") for _ in range(5) for way in ((HOST, GPU), (GPU, HOST))]
    assert find(case(*moves)) == []


@pytest.mark.parametrize(
    ("write", "remedy"),
    [
        (False, "with um.advise(x, read_mostly=True):"),
        (True, "with um.advise(x, preferred_location=um.Device(0), accessed_by=um.Device(1)):"),
    ],
)
def test_between_devices(write: bool, remedy: str) -> None:
    ways = ((GPU, Device(1)), (Device(1), GPU)) * 3
    (finding,) = find(case(*(moved(0, 10, *way, write=write) for way in ways)))
    assert finding.remedy == remedy and finding.evidence["rounds"] == 3
    assert 0 < finding.saving < finding.cost


def test_pieces_of_one_pass_are_no_rounds_and_faults_told_apart_are_charged() -> None:
    pieces = [moved(page, 1, *way, cause="speculative") for way in ((HOST, GPU), (GPU, HOST)) for page in range(8)]
    faults = [moved(0, 1, HOST, GPU, kind="faulted", faults=700)]
    assert find(case(*pieces, *faults)) == []
    (finding,) = find(case(*pieces, *faults, *pieces, *pieces))
    assert (finding.evidence["rounds"], finding.evidence["faults"]) == (3, 700)


def test_the_pages_that_stay_take_no_part() -> None:
    (finding,) = find(case(*there_and_back(3, 4), moved(4, 60, HOST, GPU)))
    assert finding.evidence["faults"] == 24
