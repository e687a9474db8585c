"""Read-mostly advice on what is written."""

from __future__ import annotations

from tests.observe.findings.made_up import BASE, GPU, PAGE, case, moved
from umarray.observe.facts import Advice, Move
from umarray.observe.findings.read_mostly_written import find
from umarray.places import HOST

ADVICE = Advice(0.0, BASE, 8 * PAGE, "read_mostly", GPU, 1.0)


def turns(count: int, *, by_host: bool = True) -> list[Move]:
    writer, loser = (HOST, GPU) if by_host else (GPU, HOST)
    return [
        move
        for _ in range(count)
        for move in (
            moved(0, 8, HOST, GPU, kind="copied"),
            moved(0, 8, writer, loser, kind="dropped", write=True),
        )
    ]


def test_the_host_writes() -> None:
    (finding,) = find(case(*turns(4), advices=[ADVICE]))
    assert finding.evidence == {
        "write faults": 32,
        "copied bytes": 32 * PAGE,
        "copied again bytes": 24 * PAGE,
    }
    assert finding.remedy.startswith('with um.host_view(x, "r+") as h:')
    assert 0 < finding.saving < finding.cost


def test_a_device_writes() -> None:
    (finding,) = find(case(*turns(4, by_host=False), advices=[ADVICE]))
    assert finding.remedy == "# no read_mostly=True"


def test_without_the_advice_or_without_a_write_there_is_none() -> None:
    assert find(case(*turns(4))) == []
    assert (
        find(case(moved(0, 8, HOST, GPU, kind="copied"), moved(0, 8, HOST, GPU, kind="copied"), advices=[ADVICE])) == []
    )


def test_written_once_is_no_habit() -> None:
    assert find(case(*turns(1), advices=[ADVICE])) == []
