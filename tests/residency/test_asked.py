"""The record of what was asked, against a model of pages."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from umarray.drivers.base import Allocation, Kind
from umarray.places import HOST, Device
from umarray.residency.asked import LastAsked
from umarray.residency.spans import Span

PLACES = (HOST, Device(0), Device(1))
notes = st.lists(st.tuples(st.integers(0, 20), st.integers(1, 10), st.sampled_from(PLACES)), max_size=12)


def allocation(serial: int, address: int = 0, nbytes: int = 30) -> Allocation:
    return Allocation(address, nbytes, Kind.MANAGED, Device(0), serial)


@given(notes, st.integers(0, 29), st.integers(1, 30))
def test_the_newest_request_for_a_page_is_the_one_told(noted: list[tuple[int, int, object]], low: int, n: int) -> None:
    block = allocation(1)
    record, model = LastAsked(lambda address: block), dict.fromkeys(range(30))
    for start, count, place in noted:
        record.note([Span(start, min(30, start + count), block)], place)  # type: ignore[arg-type]
        model.update(dict.fromkeys(range(start, min(30, start + count)), place))  # type: ignore[arg-type]
    asked = [model[page] for page in range(low, min(30, low + n))]
    assert record.places(Span(low, min(30, low + n), block)) == {place: asked.count(place) for place in set(asked)}
    for place in PLACES:
        assert record.nbytes_at(place) == list(model.values()).count(place)  # type: ignore[arg-type]
    assert all(a.stop < b.start or a.place != b.place for a, b in zip(record._runs, record._runs[1:], strict=False))


@given(st.lists(st.tuples(st.sets(st.integers(0, 29)), st.sampled_from(PLACES)), max_size=8))
def test_several_spans_at_once_are_like_one_after_the_other(noted: list[tuple[set[int], object]]) -> None:
    block = allocation(1)
    record, model = LastAsked(lambda address: block), dict.fromkeys(range(30))
    for pages, place in noted:
        record.note([Span(page, page + 1, block) for page in pages], place)  # type: ignore[arg-type]
        model.update(dict.fromkeys(pages, place))  # type: ignore[arg-type]
    for page, place in model.items():
        assert record.places(Span(page, page + 1, block)) == {place: 1}


def test_a_new_allocation_at_an_old_address_has_no_past() -> None:
    alive = [allocation(1)]
    record = LastAsked(lambda address: alive[0])
    record.note([Span(0, 30, alive[0])], HOST)
    alive[0] = allocation(2)
    assert record.places(Span(0, 30, alive[0])) == {None: 30} and record.nbytes_at(HOST) == 0


def test_the_record_stays_as_small_as_what_is_alive() -> None:
    living = dict[int, Allocation]()
    record = LastAsked(lambda address: living.get(address // 100))
    for serial in range(1000):
        living.clear()
        living[serial] = allocation(serial, serial * 100)
        record.note([Span(serial * 100, serial * 100 + 30, living[serial])], HOST)
    assert len(record._runs) <= 65
