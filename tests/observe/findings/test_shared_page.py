"""Arrays that share a page."""

from __future__ import annotations

from tests.observe.findings.made_up import BASE, PAGE, case, there_and_back
from umarray.observe.facts import Named
from umarray.observe.findings.bouncing import find as bouncing
from umarray.observe.findings.shared_page import find


def small(name: str, offset: int, nbytes: int = 100) -> Named:
    return Named(name, BASE + offset, nbytes, (nbytes,), "uint8")


def test_two_on_one_page() -> None:
    one = case(*there_and_back(5, 1), arrays=[small("here", 0), small("there", 512)])
    (finding,) = find(one)
    assert finding.subject is not None and finding.subject.name == "here"
    assert finding.remedy == "here = um.empty((100,), 'uint8', page_aligned=True)"
    assert (finding.evidence["pages"], finding.evidence["rounds"], finding.evidence["faults"]) == (1, 5, 10)
    assert bouncing(one.without(finding.claims)) == []  # what it accounts for is told once


def test_the_end_of_a_large_one() -> None:
    arrays = [small("large", 0, 3 * PAGE + 3000), small("little", 3 * PAGE + 3072)]
    (finding,) = find(case(*there_and_back(5, 4), arrays=arrays))
    assert finding.subject is not None and finding.subject.name == "large"
    assert (finding.evidence["pages"], finding.evidence["faults"]) == (1, 10)


def test_alone_on_its_page_it_bounces_by_itself() -> None:
    one = case(*there_and_back(5, 1), arrays=[small("here", 0)])
    assert find(one) == [] and len(bouncing(one)) == 1
