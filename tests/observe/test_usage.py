from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from umarray import events
from umarray.observe.usage import Usage
from umarray.places import HOST, Device, Place

PAGE, FIRST = 4096, Device(0)


def brought(first: int, count: int, to: Place = FIRST, kind: str = "moved", cause: str = "prefetch") -> events.Migrated:
    source = HOST if to != HOST else Device(0)
    return events.Migrated(first * PAGE, count * PAGE, source, to, cause, 0.0, 0.0, kind)


def used(first: int, count: int, place: Place = FIRST) -> events.Used:
    return events.Used(first * PAGE, count * PAGE, place, None, 0.0)


def pages(*records: events.Record) -> tuple[int, int]:
    usage = Usage()
    usage.add(records)
    counts = usage.counts()
    assert counts.used_bytes is not None and counts.unused_bytes is not None
    return counts.used_bytes // PAGE, counts.unused_bytes // PAGE


def test_what_is_touched_was_used() -> None:
    assert pages(brought(0, 4), used(0, 1), used(2, 1)) == (2, 2)


def test_what_leaves_untouched_was_not() -> None:
    assert pages(brought(0, 4), brought(0, 4, HOST, cause="fault"), used(0, 4)) == (0, 4)


def test_a_copy_that_is_dropped_was_not_used() -> None:
    assert pages(brought(0, 2, kind="copied"), brought(0, 1, kind="dropped", cause="fault"), used(0, 2)) == (1, 1)


def test_touches_elsewhere_and_twice_count_for_nothing() -> None:
    assert pages(brought(0, 2), used(0, 2, Device(1)), used(0, 1), used(0, 1)) == (1, 1)


def test_what_a_prefetch_makes_or_faults_bring_is_no_prefetch_of_bytes() -> None:
    assert pages(brought(0, 2, kind="made"), used(0, 2), brought(4, 2, cause="fault"), used(4, 2)) == (0, 0)


def test_prefetches_to_the_host_are_not_followed() -> None:
    assert pages(brought(0, 2, HOST)) == (0, 0)


def test_bringing_again_counts_again() -> None:
    again = (brought(0, 2), brought(0, 2, HOST, cause="fault"), brought(0, 2), used(0, 2))
    assert pages(*again) == (2, 2)


@given(st.lists(st.tuples(st.sampled_from("bul"), st.integers(0, 9), st.integers(1, 5)), max_size=30))
def test_as_a_model_of_single_pages(steps: list[tuple[str, int, int]]) -> None:
    waiting: set[int] = set()
    there: set[int] = set()
    total = touched = 0
    records: list[events.Record] = []
    for what, first, count in steps:
        span = set(range(first, first + count))
        if what == "b" and not span & there:
            records.append(brought(first, count))
            there |= span
            waiting |= span
            total += count
        elif what == "u" and span <= there:
            records.append(used(first, count))
            touched += len(span & waiting)
            waiting -= span
        elif what == "l" and span <= there:
            records.append(brought(first, count, HOST, cause="fault"))
            there -= span
            waiting -= span
    assert pages(*records) == (touched, total - touched)
