"""From records to facts."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from umarray import events
from umarray.observe.digest import facts_of
from umarray.observe.facts import Costs, Facts, Move, Named
from umarray.observe.recording import Header, Recording, Stamped
from umarray.places import HOST, Device

GPU, PAGE, AT = Device(0), 4096, 1 << 20
EXACT = {"name": "the emulated device", "exactness": "exact", "sees": ("used_bytes", "addresses")}
CUPTI = {"name": "CUPTI", "exactness": "as the driver reports", "sees": ("addresses",)}


def facts(*records: events.Record, **header: Any) -> Facts:
    """The facts of records, a second each."""
    head = Header(**{"began": 0.0, "ended": 100.0, "sources": (EXACT,), **header})
    return facts_of(Recording(head, tuple(Stamped(float(n + 1), 1, one) for n, one in enumerate(records))))


def began(serial: int, action: str, label: str = "", stream: int | None = None) -> events.Began:
    x = events.Operand(AT, 8 * PAGE, (8, PAGE), "uint8")
    return events.Began(serial, action, label, "train.py:7", GPU, stream, (x,))


def test_a_fault_and_what_it_moved_are_one() -> None:
    found = facts(
        events.Faulted(AT, 2 * PAGE, GPU, 2, True, 0.5),
        events.Migrated(AT, 2 * PAGE, HOST, GPU, "fault", 0.5, 0.6, "moved", True),
    )
    assert found.moves == (Move(2.0, AT, 2 * PAGE, HOST, GPU, "moved", "fault", 2, True),)


def test_faults_of_a_source_that_tells_them_apart_stand_alone() -> None:
    found = facts(
        events.Faulted(AT, 0, GPU, 9, None, 0.5), events.Migrated(AT, PAGE, HOST, GPU, "speculative", 0.7, 0.8)
    )
    assert [(one.kind, one.faults, one.nbytes) for one in found.moves] == [("faulted", 9, 1), ("moved", 0, PAGE)]


def test_a_prefetch_was_asked_for_when_its_scope_began() -> None:
    asked = events.Prefetched(AT, PAGE, GPU, True, 77, 5)
    (one,) = facts(began(5, "prefetch", stream=0), events.Waited(0.1, "busy"), asked).prefetches
    assert (one.time, one.stream, one.line) == (1.0, 0, "train.py:7")
    (own,) = facts(began(5, "prefetch"), asked).prefetches
    assert own.stream is None
    (bare,) = facts(asked).prefetches
    assert (bare.time, bare.stream) == (1.0, 77)


def test_advice_stands_until_it_is_taken_back() -> None:
    on = events.Advised(AT, 4 * PAGE, "read_mostly", GPU, True, True)
    off = events.Advised(AT, 4 * PAGE, "read_mostly", GPU, False, True)
    other = events.Advised(AT, 4 * PAGE, "accessed_by", GPU, False, True)
    (one,) = facts(on, other, off).advices
    assert (one.time, one.until) == (1.0, 3.0)
    assert facts(on).advices[0].until == 100.0


@pytest.mark.watchdog(20)
def test_advice_that_comes_and_goes_in_a_long_loop_is_soon_told() -> None:
    """Each taken back is not compared with all before it: that took more than a minute."""
    on = events.Advised(AT, 4 * PAGE, "read_mostly", GPU, True, True)
    off = events.Advised(AT, 4 * PAGE, "read_mostly", GPU, False, True)
    found = facts(*(on, off) * 40_000, ended=1e6).advices
    assert len(found) == 40_000 and all(one.until == one.time + 1 for one in found)


def test_a_view_knows_how_long_it_waited_and_was_open() -> None:
    found = facts(
        began(3, "host_view", "w"), events.Waited(0.25, "", 0, 3), events.Waited(0.5, "", 0, 9), events.Ended(3, "")
    )
    (view,) = found.views
    assert (view.mode, view.time, view.until, view.waited, view.line) == ("w", 1.0, 4.0, 0.25, "train.py:7")
    assert found.named == (Named("", AT, 8 * PAGE, (8, PAGE), "uint8"),)


def test_a_block_ends_when_it_is_gone_or_its_memory_is_given_to_another() -> None:
    found = facts(
        events.Made(AT, 4 * PAGE, "a.py:1"),
        events.Made(AT + 4 * PAGE, PAGE, "a.py:2"),
        events.Made(AT + PAGE, 8 * PAGE, "b.py:3"),  # over both
        events.Gone(AT + PAGE, 8 * PAGE),
        events.Made(AT, PAGE, "c.py:4"),
    )
    assert [one.gone for one in found.made] == [3.0, 3.0, 4.0, None]


def test_escapes_pools_costs_and_what_is_seen() -> None:
    costs = Costs(fault=1e-6, source="somebody")
    found = facts(
        events.EpochEnded("step", 2, 300, (("a.py:1", 2, 300),)),
        events.Named("x", AT, 8, (8,), "uint8"),
        costs={**asdict(costs), "of a later version": 1},
        pools=({"kind": "managed", "arena_bytes": 64, "current_bytes": 8, "fragmentation": None},),
        memory={0: 1 << 30},
        lost=3,
    )
    assert [(one.line, one.count, one.nbytes, one.epoch) for one in found.escapes] == [("a.py:1", 2, 300, "step")]
    assert found.named[0].name == "x" and found.costs == costs and found.lost == 3
    assert found.pools[0].arena_bytes == 64 and found.memory == {0: 1 << 30}
    assert found.sees_uses and found.source == "the emulated device (exact)"
    assert not facts(sources=(CUPTI,)).sees_uses


def test_where_pages_are_not_told_one_by_one_more_may_have_moved_with_a_touch() -> None:
    assert (facts(migrates=PAGE).page, facts(migrates=PAGE).grain) == (PAGE, 0)
    assert (facts(migrates=PAGE, sources=(CUPTI,)).page, facts(sources=(CUPTI,)).grain) == (PAGE, 64 << 10)


def test_a_recording_that_was_cut_off_ends_with_its_last_record() -> None:
    assert facts(events.Waited(0.1, ""), events.Waited(0.1, ""), ended=None).ended == 2.0
    assert facts(ended=None).seconds == 0.0
