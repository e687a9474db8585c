from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.drivers.test_cupti import (
    DEVICE_FAULTS,
    DTOD,
    DTOH,
    HOST_FAULT,
    HTOD,
    FakeCupti,
    activity,
    fake_cupti,
)
from tests.fake_driver import FakeDriver
from umarray import events
from umarray.drivers import cupti
from umarray.errors import NotSupported
from umarray.observe.counters import Counts
from umarray.observe.nvidia import Nvidia
from umarray.places import HOST, Device

__all__ = ["fake_cupti"]  # the fixture


@pytest.fixture
def canary(fake_cupti: FakeCupti) -> Callable[[], None]:
    """Answers every canary as long as it stays the flush's hook."""

    def answer() -> None:
        collector = cupti._collector
        if collector is not None and collector._canary is not None:
            fake_cupti.queued.append(activity(HOST_FAULT, collector._canary.address, 1, start=collector.now()))

    fake_cupti.on_flush = answer
    return answer


@pytest.fixture
def source(fake: FakeDriver, fake_cupti: FakeCupti, canary: Any) -> Nvidia:
    return Nvidia(fake)


def told(fake_cupti: FakeCupti) -> list[Any]:
    at, host = fake_cupti.clock, 0
    return [
        activity(HTOD, 0, 8192, source=host, to=0, flags=1, start=at),
        activity(HTOD, 8192, 4096, source=host, to=0, flags=2, start=at + 1),
        activity(DTOH, 0, 4096, source=0, to=host, flags=4, start=at + 2),
        activity(DEVICE_FAULTS, 8192, 5, source=0, flags=1, start=at + 3),
        activity(HOST_FAULT, 0, 0x401000, source=host, start=at + 4),
    ]


def test_figures_and_records(source: Nvidia, fake_cupti: FakeCupti) -> None:
    session = source.begin()
    fake_cupti.queued = told(fake_cupti)
    fake_cupti.clock += 10
    session.end()
    records = session.take().records
    assert [type(one) for one in records] == [*[events.Migrated] * 3, events.Faulted, events.Faulted]
    assert [one.cause for one in records[:3]] == ["prefetch", "fault", "eviction"]  # type: ignore[attr-defined]
    fault: Any = records[3]
    assert (fault.place, fault.count, fault.write, records[4].place) == (Device(0), 5, False, HOST)  # type: ignore[attr-defined]
    assert session.counts() == Counts(
        device_faults=5,
        host_faults=1,
        bytes_to_device=12288,
        bytes_to_host=4096,
        bytes_between_devices=0,
        prefetched_bytes=8192,
        evicted_bytes=4096,
    )


def test_times_are_those_of_the_process(source: Nvidia, fake_cupti: FakeCupti) -> None:
    session = source.begin()
    fake_cupti.queued = told(fake_cupti)[:1]
    fake_cupti.clock += 10
    session.end()
    (record,) = session.take().records
    assert abs(record.start - time.perf_counter()) < 60  # type: ignore[attr-defined]


def test_what_comes_after_the_end_is_not_counted(source: Nvidia, fake_cupti: FakeCupti) -> None:
    session = source.begin()
    session.end()
    fake_cupti.clock += 10
    fake_cupti.queued = told(fake_cupti)
    assert session.take().records == () and session.counts().device_faults == 0


def test_while_it_is_open_it_waits_for_nothing(
    source: Nvidia, fake_cupti: FakeCupti, fake: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = source.begin()
    fake_cupti.on_flush = lambda: None
    before = len(fake.calls)
    fake_cupti.queued = told(fake_cupti)
    assert len(session.take().records) == 5 and session.take().records == ()
    session.end()
    assert len(fake.calls) == before


def test_the_canary_is_asked_once(source: Nvidia, fake_cupti: FakeCupti, fake: FakeDriver) -> None:
    session = source.begin()
    session.end()
    session.take()
    before = len(fake.calls)
    session.take()
    assert len(fake.calls) == before


def test_between_devices(make_fake: Callable[..., FakeDriver], fake_cupti: FakeCupti, canary: Any) -> None:
    session = Nvidia(make_fake(devices=2)).begin()
    fake_cupti.queued = [activity(DTOD, 0, 4096, source=0, to=1, start=fake_cupti.clock)]
    fake_cupti.clock += 10
    session.end()
    session.take()
    assert session.counts().bytes_between_devices == 4096


def test_counters_that_never_come_on_are_no_source(
    fake: FakeDriver, fake_cupti: FakeCupti, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cupti, "PATIENCE", 0.02)
    with pytest.raises(NotSupported, match="did not tell"):
        Nvidia(fake)
