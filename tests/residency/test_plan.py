"""What is picked for each span: overwritten, read, missing, fitting, costs; set operations on ranges by hypothesis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fake_driver import FakeDriver
from tests.residency.arrays import PAGE, address, managed
from umarray.calibration import Curve
from umarray.calibration.defaults import defaults
from umarray.drivers.base import Kind
from umarray.places import HOST, Device
from umarray.residency.plan import Choice, Pick, Planner, Uses, uses_of, within, without
from umarray.residency.spans import Span, Spans, merge, spans_of
from umarray.residency.state import State, state_of

ranges = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 9)), max_size=6).map(
    lambda found: merge((start, start + n) for start, n in found)
)


@given(ranges, ranges)
def test_without_is_the_difference_of_sets(a: list[Any], b: list[Any]) -> None:
    def members(found: list[Any]) -> set[int]:
        return {n for start, stop in found for n in range(start, stop)}

    left = without(a, b)
    assert members(left) == members(a) - members(b)
    assert left == sorted(left) and all(start < stop for start, stop in left)


def spans(fake: FakeDriver, *arrays: Any) -> Spans:
    return spans_of(arrays, fake.find, fake.page_size)


def uses(fake: FakeDriver, reads: Any = (), writes: Any = (), updates: Any = (), gapped: Any = ()) -> Uses:
    return uses_of(*(spans(fake, *one) for one in (reads, writes, updates, gapped)))


def test_only_whole_pages_that_nothing_else_uses_are_overwritten(fake: FakeDriver) -> None:
    x = managed(fake, 10, "u1")
    at = address(x)
    part = slice(PAGE // 2, 3 * PAGE + 7)  # half a page, two whole ones, seven bytes

    def pages(found: list[Any]) -> list[tuple[float, float]]:
        return [((start - at) / PAGE, (stop - at) / PAGE) for start, stop in found]

    assert pages(uses(fake, writes=[x[part]]).overwritten) == [(1, 3)]
    assert pages(uses(fake, writes=[x]).overwritten) == [(0, 10)]
    assert pages(uses(fake, writes=[x], reads=[x[PAGE * 4 : PAGE * 4 + 1]]).overwritten) == [(0, 4), (5, 10)]
    assert pages(uses(fake, writes=[x], updates=[x[PAGE - 1 : PAGE + 1]]).overwritten) == [(2, 10)]
    assert uses(fake, writes=[x], reads=[x]).overwritten == []
    two = uses(fake, writes=[x[: PAGE + 9], x[PAGE + 9 : 2 * PAGE]])  # a page that two of them fill is overwritten
    assert pages(two.overwritten) == [(0, 2)]
    found = uses(fake, reads=[x[: 4 * PAGE]], writes=[x[4 * PAGE :]], gapped=[x[2 * PAGE : 2 * PAGE + 1]])
    assert (pages(found.overwritten), pages(found.read)) == ([(4, 10)], [(0, 2), (3, 4)])


def planner(fake: FakeDriver, found: Uses | None = None, **curves: Curve | None) -> tuple[State, Planner]:
    state = state_of(fake)
    costs = replace(defaults(fake, 0), **curves)  # type: ignore[arg-type]
    return state, Planner(state, 0, costs, lambda: found or Uses([], []))


def pages_of(fake: FakeDriver, *arrays: Any) -> list[Span]:
    return spans(fake, *arrays).outward()


def picks(choices: list[Choice]) -> list[Pick]:
    return [choice.pick for choice in choices]


FAST, SLOW = Curve(((1, 1e-6),)), Curve(((1, 1e-3),))


@pytest.mark.parametrize(
    ("ahead", "faults", "pick"),
    [
        (FAST, SLOW, Pick.PREFETCH),
        (SLOW, FAST, Pick.ON_DEMAND),
        (None, FAST, Pick.PREFETCH),
        (FAST, None, Pick.PREFETCH),
    ],
)
def test_pages_of_the_host_are_prefetched_where_that_beats_faults(
    fake: FakeDriver, ahead: Any, faults: Any, pick: Pick
) -> None:
    x = managed(fake)
    _, plan = planner(fake, prefetch=ahead, demand=faults)
    choices = plan.plan(pages_of(fake, x), lambda n: None)
    assert picks(choices) == [pick] and "its pages lie on the host" in choices[0].why


def test_a_part_that_is_missing_is_weighed_as_what_it_is(fake: FakeDriver) -> None:
    x = managed(fake, 100)
    state, plan = planner(fake, prefetch=Curve.line(50e-6, 1e12), demand=Curve.line(0, PAGE / 5e-6))  # 5 us a page
    state.told.note(pages_of(fake, x), Device(0))
    fake.prefetch(address(x), 100 * PAGE, Device(0), 0)
    fake.host_touch(address(x), 9 * PAGE)
    assert picks(plan.plan(pages_of(fake, x), lambda n: None)) == [Pick.ON_DEMAND]  # 45 us
    fake.host_touch(address(x), 20 * PAGE)
    choices = planner(fake, prefetch=Curve.line(50e-6, 1e12), demand=Curve.line(0, PAGE / 5e-6))[1].plan(
        pages_of(fake, x), lambda n: None
    )
    assert picks(choices) == [Pick.PREFETCH] and "80.0 KiB of it lie on the host" in choices[0].why


def moved(fake: FakeDriver, x: Any) -> list[Span]:
    fake.prefetch(address(x), x.nbytes, Device(0), 0)
    return pages_of(fake, x)


def test_what_the_host_has_none_of_is_there_if_there_is_one_device(make_fake: Callable[..., FakeDriver]) -> None:
    for devices, pick in ((1, Pick.NOTHING), (2, Pick.PREFETCH)):
        fake = make_fake(devices=devices)
        x = managed(fake, 100)
        _, plan = planner(fake)
        assert picks(plan.plan(moved(fake, x), lambda n: None)) == [pick]


def test_what_nobody_touched_is_made_resident_before_it_is_overwritten(fake: FakeDriver) -> None:
    block = fake.allocate(100 * PAGE, Kind.MANAGED)
    x = fake.as_array(block.address, block.nbytes, block)
    _, plan = planner(fake, uses(fake, writes=[x]))
    choices = plan.plan(pages_of(fake, x), lambda n: None)
    assert picks(choices) == [Pick.PREFETCH] and "nobody named them" in choices[0].why


def test_without_a_page_table_what_was_told_decides(make_fake: Callable[..., FakeDriver]) -> None:
    fake = make_fake(page_table=False)
    x = managed(fake, 100)
    state, plan = planner(fake)
    assert picks(plan.plan(pages_of(fake, x), lambda n: None)) == [Pick.PREFETCH]
    assert "nothing is known" in plan.choices[0].why
    state.told.note(pages_of(fake, x), Device(0))
    choices = planner(fake)[1].plan(pages_of(fake, x), lambda n: None)
    assert picks(choices) == [Pick.NOTHING] and "nothing was seen to move it" in choices[0].why
    state.told.note(pages_of(fake, x), HOST)
    assert picks(planner(fake)[1].plan(pages_of(fake, x), lambda n: None)) == [Pick.PREFETCH]


def test_overwritten_pages_are_renewed_where_the_runtime_can(make_fake: Callable[..., FakeDriver]) -> None:
    fake = make_fake(renews=True)
    x = managed(fake, 1000, "u1")
    part = x[10 : 999 * PAGE]  # its first page is not overwritten in full
    _, plan = planner(fake, uses(fake, writes=[part]))
    first, second = plan.plan(pages_of(fake, part), lambda n: None)
    assert (first.pick, first.nbytes) == (Pick.RENEW, 998 * PAGE) and "all of it is overwritten" in first.why
    assert (second.pick, second.nbytes) == (Pick.ON_DEMAND, PAGE)
    small = managed(fake, 3, "u1")[5:]  # two calls would cost more than moving it
    _, plan = planner(fake, uses(fake, writes=[small]))
    assert Pick.RENEW not in picks(plan.plan(pages_of(fake, small), lambda n: None))
    fake = make_fake()
    x = managed(fake, 1000, "u1")
    _, plan = planner(fake, uses(fake, writes=[x]))
    assert picks(plan.plan(pages_of(fake, x), lambda n: None)) == [Pick.PREFETCH]


def test_overwritten_pages_that_are_there_are_left_and_their_neighbours_brought(
    make_fake: Callable[..., FakeDriver],
) -> None:
    fake = make_fake(renews=True)
    x = managed(fake, 1000, "u1")
    read, written = x[: 500 * PAGE], x[500 * PAGE :]
    fake.prefetch(address(written), written.nbytes, Device(0), 0)
    found = uses(fake, reads=[read], writes=[written])
    state, plan = planner(fake, found)
    state.told.note(pages_of(fake, x), Device(0))
    choices = plan.plan(pages_of(fake, x), lambda n: None)
    assert [(one.pick, one.nbytes // PAGE) for one in choices] == [(Pick.NOTHING, 500), (Pick.PREFETCH, 500)]
    costs = defaults(fake, 0)
    plan = Planner(
        state, 0, costs, lambda: pytest.fail("uses were made"), lambda: False
    )  # nothing stale: not looked at
    assert picks(plan.plan(pages_of(fake, x), lambda n: None)) == [Pick.PREFETCH]


def test_what_does_not_fit_is_mapped_and_what_fits_is_brought(fake: FakeDriver) -> None:
    whole = managed(fake, 400, "u1")  # one block, so that the order of the spans is known
    x, y, z = (whole[a * PAGE : b * PAGE] for a, b in ((0, 100), (110, 310), (320, 370)))
    asked: list[int] = []

    def room(nbytes: int) -> int:
        asked.append(nbytes)
        return 120 * PAGE

    _, plan = planner(fake)
    choices = plan.plan(pages_of(fake, x, y, z), room)
    assert asked == [350 * PAGE]
    assert {(choice.pick, choice.nbytes // PAGE) for choice in choices} == {
        (Pick.PREFETCH, 100),
        (Pick.MAP, 200),
        (Pick.MAP, 50),  # 20 pages are left by then
    }


def test_pages_read_on_two_devices_are_duplicated(make_fake: Callable[..., FakeDriver]) -> None:
    fake = make_fake(devices=2)
    x = managed(fake, 100)
    state, plan = planner(fake, uses(fake, reads=[x]))
    state.told.note(pages_of(fake, x), Device(1))
    fake.prefetch(address(x), x.nbytes, Device(1), 0)
    assert picks(plan.plan(pages_of(fake, x), lambda n: None)) == [Pick.PREFETCH]
    found = pages_of(fake, x)
    state.readers.enter(self := object(), 1, [(span.start, span.stop) for span in found])
    choices = planner(fake, uses(fake, reads=[x]))[1].plan(found, lambda n: None)
    assert picks(choices) == [Pick.DUPLICATE] and "Device(1)" in choices[0].why
    assert picks(planner(fake, uses(fake, updates=[x]))[1].plan(found, lambda n: None)) == [Pick.PREFETCH]
    state.readers.leave(self)
    assert picks(planner(fake, uses(fake, reads=[x]))[1].plan(found, lambda n: None)) == [Pick.PREFETCH]


def test_ranges_within_a_span(fake: FakeDriver) -> None:
    span = pages_of(fake, managed(fake, 4))[0]
    found = within([(span.start - 9, span.start + 5), (span.stop - 3, span.stop + 1), (span.stop, span.stop + 9)], span)
    assert [(one.start - span.start, one.stop - span.start) for one in found] == [(0, 5), (4 * PAGE - 3, 4 * PAGE)]


def test_a_choice_in_words(fake: FakeDriver) -> None:
    choice = Choice(Pick.PREFETCH, tuple(pages_of(fake, managed(fake, 2))), "why not")
    assert str(choice) == "prefetch: 8.0 KiB, why not"
