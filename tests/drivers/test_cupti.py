"""The collector against a fake CUPTI; tests/gpu/test_watch.py has the real one."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from tests.fake_driver import FakeDriver
from umarray.drivers import cupti
from umarray.drivers.base import Mode
from umarray.errors import NotSupported
from umarray.places import HOST, Device

HTOD, DTOH, HOST_FAULT, DEVICE_FAULTS, DTOD, OTHER = 1, 2, 3, 4, 8, 6


class FakeCupti:
    """What the collector uses of `cupti.cupti`; flushing hands over what was queued."""

    ActivityUnifiedMemoryCounterKind = SimpleNamespace(
        BYTES_TRANSFER_HTOD=HTOD,
        BYTES_TRANSFER_DTOH=DTOH,
        CPU_PAGE_FAULT_COUNT=HOST_FAULT,
        GPU_PAGE_FAULT=DEVICE_FAULTS,
        BYTES_TRANSFER_DTOD=DTOD,
    )
    ActivityUnifiedMemoryCounterScope = SimpleNamespace(PROCESS_SINGLE_DEVICE=1)
    ActivityKind = SimpleNamespace(UNIFIED_MEMORY_COUNTER=26)

    def __init__(self) -> None:
        self.clock = 1000
        self.queued: list[Any] = []
        self.configured: list[tuple[int, int]] = []
        self.enabled: list[int] = []
        self.refuses = ""
        self.on_flush: Callable[[], None] = lambda: None

    def get_timestamp(self) -> int:
        self.clock += 1
        return self.clock

    def ActivityUnifiedMemoryCounterConfig(self, count: int) -> Any:
        self._config = FakeConfig(count)
        return self._config

    def activity_register_callbacks(self, buffer: Callable[[], tuple[int, int]], completed: Any) -> None:
        assert buffer()[0] > 0
        self._completed = completed

    def activity_configure_unified_memory_counter(self, pointer: int, count: int) -> None:
        if self.refuses:
            raise RuntimeError(self.refuses)
        assert pointer == id(self._config) and count == len(self._config.entries)
        self.configured = [(one.device_id, one.kind) for one in self._config.entries]
        assert all((one.scope, one.enable) == (1, 1) for one in self._config.entries)

    def activity_enable(self, kind: int) -> None:
        self.enabled.append(kind)

    def activity_flush_all(self, flag: int) -> None:
        self.on_flush()
        queued, self.queued = self.queued, []
        self._completed(queued)


class FakeConfig:
    def __init__(self, count: int) -> None:
        self.entries = [SimpleNamespace() for _ in range(count)]
        self.ptr = id(self)

    def __getitem__(self, index: int) -> Any:
        return self.entries[index]


def activity(kind: int, address: int, value: int, *, source: int = 0, to: int = 0, flags: int = 0, start: int) -> Any:
    return SimpleNamespace(
        counter_kind=kind,
        address=address,
        value=value,
        src_id=source,
        dst_id=to,
        flags_=flags,
        start=start,
        end=start + 5,
    )


@pytest.fixture
def fake_cupti(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCupti]:
    fake: Any = FakeCupti()
    monkeypatch.setitem(sys.modules, "cupti", types.ModuleType("cupti"))
    monkeypatch.setitem(
        sys.modules, "cupti.cupti", fake
    )  # as in the wheel: a module of the package, not imported by it
    monkeypatch.setattr(cupti, "_collector", None)
    yield fake


def test_it_is_switched_on_once_for_every_device(fake_cupti: FakeCupti) -> None:
    one = cupti.collector(2)
    assert cupti.collector(2) is one and fake_cupti.enabled == [26]
    kinds = {HTOD, DTOH, DTOD, DEVICE_FAULTS, HOST_FAULT}
    assert set(fake_cupti.configured) == {(device, kind) for device in (0, 1) for kind in kinds}
    assert len(fake_cupti.configured) == 10


def test_one_device_asks_for_nothing_between_devices(fake_cupti: FakeCupti) -> None:
    cupti.collector(1)
    assert DTOD not in {kind for _, kind in fake_cupti.configured}


def test_a_refusal_says_why_and_is_asked_again(fake_cupti: FakeCupti) -> None:
    fake_cupti.refuses = "another profiler has it"
    with pytest.raises(NotSupported, match="another profiler has it"):
        cupti.collector(1)
    fake_cupti.refuses = ""
    cupti.collector(1)


def test_records_are_read(fake_cupti: FakeCupti) -> None:
    collector = cupti.collector(2)
    window, host = collector.open(10), 0xFFFFFFFF
    at = fake_cupti.clock
    fake_cupti.queued = [
        activity(HTOD, 4096, 8192, source=host, to=1, flags=1, start=at),
        activity(DTOH, 4096, 8192, source=1, to=host, flags=4, start=at + 1),
        activity(DTOD, 4096, 8192, source=1, to=0, flags=99, start=at + 2),
        activity(DEVICE_FAULTS, 4096, 3, source=1, flags=2, start=at + 3),
        activity(HOST_FAULT, 4096, 0xDEADBEEF, source=host, start=at + 4),
        activity(OTHER, 4096, 1, start=at + 5),
    ]
    collector.flush()
    told, lost = window.take()
    assert lost == 0 and [one[:7] for one in told] == [
        ("transfer", 4096, 8192, HOST, Device(1), "prefetch", None),
        ("transfer", 4096, 8192, Device(1), HOST, "eviction", None),
        ("transfer", 4096, 8192, Device(1), Device(0), "other", None),
        ("device faults", 4096, 3, Device(1), Device(1), "fault", True),
        ("host fault", 4096, 1, HOST, HOST, "fault", None),
    ]
    assert window.take() == ([], 0)


@pytest.mark.parametrize("host", [0, 1, 0xFFFFFFFF, -1])
def test_the_host_is_told_by_the_kind_whatever_its_number(fake_cupti: FakeCupti, host: int) -> None:
    collector = cupti.collector(1)
    window, at = collector.open(10), fake_cupti.clock
    fake_cupti.queued = [
        activity(HTOD, 0, 1, source=host, to=0, start=at),
        activity(DTOH, 0, 1, source=0, to=host, start=at + 1),
        activity(HTOD, 0, 1, source=0, to=host, start=at + 2),
        activity(DEVICE_FAULTS, 0, 1, source=0, to=host, start=at + 3),
    ]
    collector.flush()
    ends = [(one.source, one.to) for one in window.take()[0]]
    assert ends == [(HOST, Device(0)), (Device(0), HOST), (HOST, Device(0)), (Device(0), Device(0))]


def test_a_window_takes_what_began_in_it_however_late_it_is_told(fake_cupti: FakeCupti) -> None:
    collector = cupti.collector(1)
    window = collector.open(10)
    window.ended = window.began + 10
    fake_cupti.queued = [
        activity(HTOD, 0, 1, start=window.began - 1),
        activity(HTOD, 0, 2, start=window.began + 9),
        activity(HTOD, 0, 3, start=window.began),
        activity(HTOD, 0, 4, start=window.began + 10),
    ]
    collector.flush()
    assert [one.value for one in window.take()[0]] == [3, 2]


def test_a_window_is_bounded_and_counts_what_it_lost(fake_cupti: FakeCupti) -> None:
    collector = cupti.collector(1)
    window = collector.open(2)
    fake_cupti.queued = [activity(HTOD, 0, value, start=window.began + value) for value in range(5)]
    collector.flush()
    told, lost = window.take()
    assert [one.value for one in told] == [3, 4] and lost == 3


def test_a_window_that_nobody_holds_is_told_nothing(fake_cupti: FakeCupti) -> None:
    collector = cupti.collector(1)
    collector.open(2)
    assert not list(collector._windows)


def test_settling_waits_until_the_canary_was_told_and_shows_it_to_nobody(
    fake_cupti: FakeCupti, make_fake: Callable[..., FakeDriver]
) -> None:
    driver = make_fake(Mode.MANAGED)
    collector = cupti.collector(1)
    window, flushes = collector.open(10), []

    def late() -> None:
        flushes.append(1)
        if len(flushes) == 12:  # after the canary had to be sent twice more
            assert collector._canary is not None
            address = collector._canary.address
            fake_cupti.queued = [
                activity(HTOD, address, 4096, start=window.began + 1),
                activity(HOST_FAULT, address, 1, start=window.began + 2),
            ]

    fake_cupti.on_flush = late
    assert collector.settle(driver)
    assert window.take() == ([], 0)
    sent = [call for call in driver.calls if call.name == "prefetch"]
    assert len(sent) == 3 and {call.args["place"] for call in sent} == {Device(0)}


def test_settling_gives_up(
    fake_cupti: FakeCupti, make_fake: Callable[..., FakeDriver], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cupti, "PATIENCE", 0.02)
    assert not cupti.collector(1).settle(make_fake(Mode.MANAGED))


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cupti, "_collector", None)
    monkeypatch.setitem(sys.modules, "cupti", None)
    monkeypatch.delitem(sys.modules, "cupti.cupti", raising=False)
    with pytest.raises(NotSupported, match="the extra `counters`"):
        cupti.collector(1)
