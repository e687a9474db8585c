from __future__ import annotations

import logging
import sys
from typing import Any

import pytest

import umarray as um
from tests.fake_driver import FakeDriver
from tests.observe.fake_source import ABOUT, FakeSource
from tests.residency.arrays import address
from umarray import events, log
from umarray.drivers import get_driver
from umarray.memory import watched
from umarray.observe import listening
from umarray.observe.charge import charge
from umarray.observe.counters import Counts
from umarray.observe.listening import Listening
from umarray.observe.recording import Stamped
from umarray.places import HOST, Device


def records(one: Listening) -> list[events.Record]:
    return [stamped.record for stamped in one.take()]


def test_it_hears_from_its_beginning_to_its_end() -> None:
    one = Listening(get_driver())
    events.emit(events.Waited(0.5, "before"))
    one.begin()
    events.emit(events.Waited(0.5, "inside"))
    one.end()
    events.emit(events.Waited(0.5, "after"))
    assert records(one) == [events.Waited(0.5, "inside")]
    assert not events.listeners and not watched.logs
    assert one.began <= one.ended


def test_everything_comes_in_order_of_time_and_once() -> None:
    source, kinds = FakeSource(), (events.Used, events.Made, events.Gone, events.Waited)
    one = Listening(get_driver(), [source])
    one.begin()
    with um.pool("1MiB"):
        x = um.zeros(10)
        events.emit(events.Waited(0.5, "why"))
        source.told = [events.Used(0, 1, Device(0), None, one.began)]
        taken = one.take()
        del x
        rest = one.take()
    one.end()
    assert [found.at for found in taken] == sorted(found.at for found in taken)
    used, made, waited = (found.record for found in taken if isinstance(found.record, kinds))
    (gone,) = (found.record for found in rest if isinstance(found.record, kinds))
    assert isinstance(used, events.Used) and isinstance(made, events.Made) and isinstance(waited, events.Waited)
    assert gone == events.Gone(made.address, made.nbytes)


def test_figures_come_from_the_first_source_that_sees_them() -> None:
    one = Listening(get_driver(), [FakeSource(), FakeSource(counted=Counts(device_faults=9, host_faults=7))])
    one.begin()
    one.end()
    found = one.counts()
    assert (found.device_faults, found.host_faults) == (3, 7)
    assert one.about() == (ABOUT, ABOUT)


@pytest.mark.parametrize("fails", ["begin", "take", "counts", "end"])
def test_a_source_that_fails_is_told_of_once_and_breaks_nothing(fails: str, caplog: pytest.LogCaptureFixture) -> None:
    log.forget()
    source, sound = FakeSource(fails=fails), FakeSource(counted=Counts(host_faults=7))
    with caplog.at_level(logging.WARNING, logger="umarray"):
        for _ in range(2):
            one = Listening(get_driver(), [source, sound])
            one.begin()
            one.take()
            one.end()
            assert one.counts().host_faults == 7
    assert len([record for record in caplog.records if f"{fails} fails" in record.getMessage()]) == 1
    assert sound.begun == sound.ended == 2


def test_it_keeps_only_so_much_and_says_how_much_it_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "MOST", 3)
    one = Listening(get_driver(), [FakeSource(lost=2)])
    one.begin()
    for index in range(5):
        events.emit(events.Waited(index, "why"))
    one.end()
    assert [record.seconds for record in records(one)] == [2, 3, 4]  # type: ignore[attr-defined]
    assert one.lost == 4 and one.tally.stalls == 5


def test_the_header(fake: FakeDriver) -> None:
    one = Listening(fake, [FakeSource()])
    one.begin()
    assert one.header().ended is None
    with um.pool("1MiB", track=True) as pool:
        x = um.zeros(10)
        one.end()
        del x
    header = one.header()
    assert (header.driver, header.mode, header.page) == (fake.name, "managed", fake.page_size)
    assert header.memory == {0: fake.memory_info(Device(0)).total}
    assert header.sees == frozenset(ABOUT.sees) and header.sources[0]["name"] == "a fake"
    assert header.pools[0]["allocations"] == 1 and pool.closed
    assert (header.began, header.ended) == (one.began, one.ended)


def test_blocks_of_pools_that_tracked_before_are_known() -> None:
    with um.pool("1MiB", track=True):
        x = um.zeros(10)
        one = Listening(get_driver())
        one.begin()
        one.end()
        (made,) = (record for record in records(one) if isinstance(record, events.Made))
        assert made.line.startswith(__file__) and one.blocks.allocations == 0
        del x


def test_what_umarray_asks_is_added_up(fake: FakeDriver) -> None:
    one = Listening(fake)
    one.begin()
    with um.pool("1MiB"):
        um.move(um.zeros(fake.page_size, "u1"), to=HOST)
    one.end()
    asked: Any = one.tally.requests()
    assert (asked.prefetches, asked.prefetch_bytes, asked.driver_bytes) == (1, fake.page_size, 1 << 20)


def test_a_block_from_before_and_the_name_of_its_array_are_one() -> None:
    with um.pool("1MiB", track=True):
        x = um.zeros(512)
        one = Listening(get_driver(), [])
        one.begin(sys._getframe())
        moved = events.Migrated(address(x), 4096, HOST, Device(0), "fault", one.began, one.began)
        one.end()
        (row,) = charge([*one.take(), Stamped(one.ended, 0, moved)])
        assert row.shape == (512,) and row.line.startswith(__file__) and row.bytes_to_device == 4096
