"""What the GPU driver asks of CuPy's runtime and how it words refusals, over a stand-in for CuPy."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from tests.fake_cupy import H200, MI210, BaseStream, fake_cupy
from umarray.drivers import fork, probe
from umarray.drivers.base import Advice, Attribute, Kind, Mode, Outcome
from umarray.drivers.gpu import GpuDriver
from umarray.errors import DriverError, ForkedProcess, OutOfMemory
from umarray.places import HOST, Device


class FakeNative:
    """In place of the vendor's library."""

    def __init__(self, status: int = 0, values: tuple[int, ...] | None = (1,)) -> None:
        self.status, self.values, self.calls = status, values, list[Any]()

    def prefetch_to_host(self, *args: int) -> int:
        self.calls.append(("prefetch", *args))
        return self.status

    def advise_host(self, *args: int) -> int:
        self.calls.append(("advise", *args))
        return self.status

    def read_range(self, *args: int) -> tuple[int, ...] | None:
        self.calls.append(("read", *args))
        return self.values

    def describe(self, address: int) -> None:
        return None

    renews = True

    def renew(self, *args: int) -> int:
        self.calls.append(("renew", *args))
        return self.status


def make(*devices: Any, native: FakeNative | None = None) -> GpuDriver:
    cupy = fake_cupy(*devices)
    runtime = cupy.cuda.runtime
    vendor = "hip" if runtime.is_hip else "cuda"
    facts = tuple(probe.read_facts(vendor, index, one) for index, one in enumerate(devices))
    driver = GpuDriver(cupy, Mode.MANAGED, ("a test",), facts)
    driver._hints.native = native or FakeNative()  # type: ignore[assignment]
    return driver


def calls(driver: GpuDriver, name: str) -> Any:
    return driver.runtime.named(name)


@pytest.mark.parametrize("device", [H200, MI210])
def test_managed_memory_is_attached_globally_and_pinned_memory_portable(device: Any) -> None:
    driver = make(device)
    driver.free(driver.allocate(8192, Kind.MANAGED))
    driver.free(driver.allocate(8192, Kind.PINNED))
    assert calls(driver, "mallocManaged") == [(8192, 1)] and calls(driver, "hostAlloc") == [(8192, 1)]
    assert len(calls(driver, "free")) == len(calls(driver, "freeHost")) == 1


@pytest.mark.parametrize("kind", [Kind.MANAGED, Kind.DEVICE, Kind.PINNED])
@pytest.mark.parametrize("misaligned", [0, 512])
def test_memory_starts_on_a_page_and_shares_none(kind: Kind, misaligned: int) -> None:
    driver = make(H200)
    driver.runtime.misaligned = misaligned
    block = driver.allocate(5000, kind)
    given = next(reversed(driver.runtime._memory))
    assert block.address % 4096 == 0 and block.nbytes == 5000
    name = {Kind.MANAGED: "mallocManaged", Kind.DEVICE: "malloc", Kind.PINNED: "hostAlloc"}[kind]
    assert [call[0] for call in calls(driver, name)] == ([8192, 12288] if misaligned else [8192])
    assert given <= block.address and block.address + 8192 <= given + (12288 if misaligned else 8192)
    assert driver.find(block.address + 4999) == block
    driver.free(block)
    assert driver.runtime._memory == {}


def test_the_runtime_infers_the_direction_of_a_copy() -> None:
    driver, source = make(MI210), ctypes.create_string_buffer(b"abcd")
    target = driver.allocate(4, Kind.MANAGED)
    driver.copy(target.address, ctypes.addressof(source), 4, 9)
    assert [call[3:] for call in calls(driver, "memcpyAsync")] == [(4, 9)]
    assert ctypes.string_at(target.address, 4) == b"abcd"


@pytest.mark.parametrize(
    ("kind", "call", "words"),
    [
        (Kind.MANAGED, "mallocManaged", "managed memory"),
        (Kind.DEVICE, "malloc", "device memory"),
        (Kind.PINNED, "hostAlloc", "pinned host memory"),
    ],
)
def test_out_of_memory_says_which_memory(kind: Kind, call: str, words: str) -> None:
    driver = make(H200)
    driver.runtime.errors[call] = 2
    with pytest.raises(OutOfMemory, match=f"{words} is exhausted") as caught:
        driver.allocate(4096, kind)
    assert caught.value.requested == 4096
    assert len(driver._table) == 0


def test_a_device_that_refuses_managed_memory_names_the_way_out() -> None:
    driver = make(H200)
    driver.runtime.errors["mallocManaged"] = 801
    with pytest.raises(DriverError, match="mallocManaged.*801.*UMARRAY_MODE=explicit"):
        driver.allocate(4096, Kind.MANAGED)


def test_the_host_is_named_by_the_vendor_s_library_on_cuda_and_by_minus_one_on_hip() -> None:
    cuda, hip = make(H200), make(MI210)
    for driver in (cuda, hip):
        block = driver.allocate(8192, Kind.MANAGED)
        driver.traits(0)
        driver.runtime.calls.clear()
        assert driver.prefetch(block.address, 8192, HOST, 5) is Outcome.ASKED
        assert driver.advise(block.address, 8192, Advice.PREFERRED_LOCATION, HOST, True) is Outcome.ASKED
        assert driver.prefetch(block.address, 8192, Device(0), 5) is Outcome.ASKED
        native = [call for call in driver._hints.native.calls if call[0] != "read"]  # type: ignore[attr-defined]
        to_host, to_device = (block.address, 8192, -1, 5), (block.address, 8192, 0, 5)
        if driver is cuda:
            assert native == [("prefetch", block.address, 8192, 5), ("advise", block.address, 8192, 3)]
            assert calls(driver, "memPrefetchAsync") == [to_device] and not calls(driver, "memAdvise")
        else:
            assert native == []
            assert calls(driver, "memPrefetchAsync") == [to_host, to_device]
            assert calls(driver, "memAdvise") == [(block.address, 8192, 3, -1)]


@pytest.mark.parametrize("advice", list(Advice))
def test_unsetting_is_the_number_above(advice: Advice) -> None:
    driver = make(MI210)
    block = driver.allocate(8192, Kind.MANAGED)
    driver.traits(0)
    driver.runtime.calls.clear()
    for on in (True, False):
        driver.advise(block.address, 8192, advice, Device(0), on)
    assert [call[2] for call in calls(driver, "memAdvise")] == [advice.value, advice.value + 1]


def test_hip_is_never_asked_to_let_the_host_access() -> None:
    driver = make(MI210)
    block = driver.allocate(8192, Kind.MANAGED)
    driver.traits(0)
    driver.runtime.calls.clear()
    for on in (True, False):
        assert driver.advise(block.address, 8192, Advice.ACCESSED_BY, HOST, on) is Outcome.UNSUPPORTED
    assert driver.runtime.calls == []


def test_coarse_grain_is_hip_s_alone() -> None:
    driver = make(H200)
    block = driver.allocate(8192, Kind.MANAGED)
    assert driver.advise(block.address, 8192, Advice.COARSE_GRAIN, Device(0), True) is Outcome.UNSUPPORTED


@pytest.mark.parametrize("status", [1, 101, 500, 801])
@pytest.mark.parametrize("place", [Device(0), HOST])
def test_a_refused_hint_is_a_no_op(status: int, place: Any) -> None:
    driver = make(H200, native=FakeNative(status))
    block = driver.allocate(8192, Kind.MANAGED)
    driver.traits(0)
    driver.runtime.errors.update(memPrefetchAsync=status, memAdvise=status)
    assert driver.prefetch(block.address, 8192, place, 0) is Outcome.UNSUPPORTED
    assert driver.advise(block.address, 8192, Advice.ACCESSED_BY, place, True) is Outcome.UNSUPPORTED


@pytest.mark.parametrize(("place", "number"), [(HOST, -1), (Device(0), 0)])
def test_pages_are_renewed_by_the_vendor_s_library(place: Any, number: int) -> None:
    for facts in (H200, MI210):
        driver = make(facts)
        block, plain = driver.allocate(8192, Kind.MANAGED), driver.allocate(8192, Kind.DEVICE)
        assert driver.traits(0).renew
        assert driver.renew(block.address, 8192, place, 5) is Outcome.ASKED
        assert driver.renew(plain.address, 8192, place, 5) is Outcome.UNSUPPORTED
        found = [call for call in driver._hints.native.calls if call[0] == "renew"]  # type: ignore[attr-defined]
        assert found == [("renew", block.address, 8192, number, 5)]
        with pytest.raises(DriverError, match="do not lie within"):
            driver.renew(block.address, 16384, place, 5)


@pytest.mark.parametrize("status", [1, 500, 801])
def test_renewing_that_is_refused_is_a_no_op_and_without_the_call_it_is_never_tried(status: int) -> None:
    driver = make(H200, native=FakeNative(status))
    block = driver.allocate(8192, Kind.MANAGED)
    assert driver.renew(block.address, 8192, HOST, 5) is Outcome.UNSUPPORTED
    driver = make(H200)
    driver._hints.native.renews = False  # type: ignore[misc]
    block = driver.allocate(8192, Kind.MANAGED)
    assert driver.renew(block.address, 8192, HOST, 5) is Outcome.UNSUPPORTED and not driver.traits(0).renew
    driver = make(H200, native=FakeNative(719))
    block = driver.allocate(8192, Kind.MANAGED)
    with pytest.raises(DriverError, match="719"):
        driver.renew(block.address, 8192, HOST, 5)


class FakeTable:
    """In place of the kernel's page table: what it says, one answer after the other."""

    def __init__(self, *answers: float, readable: bool = True) -> None:
        self.answers, self.readable = list(answers), readable

    def share(self, address: int, nbytes: int) -> float:
        return self.answers.pop(0)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (FakeTable(1.0, 0.0, 0.25), 0.25),
        (FakeTable(1.0, 1.0, 0.25), None),  # a page that a device wrote is still there: it says nothing of migration
        (FakeTable(0.0, 0.0, 0.25), None),
        (FakeTable(readable=False), None),
    ],
)
def test_the_page_table_is_asked_where_it_tells_of_migration(table: FakeTable, said: float | None) -> None:
    driver = make(H200)
    driver._hints._page_table = table  # type: ignore[assignment]
    block = driver.allocate(8192, Kind.MANAGED)
    assert driver.host_share(block.address, 8192) == said
    tries = len(calls(driver, "mallocManaged"))
    if said is None:
        assert driver.host_share(block.address, 8192) is None and len(calls(driver, "mallocManaged")) == tries
    assert len(calls(driver, "free")) == tries - 1


def test_a_device_that_refuses_the_trial_page_has_no_page_table() -> None:
    driver = make(H200)
    driver.runtime.errors.update(mallocManaged=2)
    assert driver.host_share(4096, 8192) is None


def test_a_device_that_failed_is_not_a_refused_hint() -> None:
    driver = make(H200, native=FakeNative(700))
    block = driver.allocate(8192, Kind.MANAGED)
    with pytest.raises(DriverError, match="700"):
        driver.prefetch(block.address, 8192, HOST, 0)


@pytest.mark.parametrize(
    ("attribute", "values", "said"),
    [
        (Attribute.READ_MOSTLY, (1,), True),
        (Attribute.READ_MOSTLY, (0,), False),
        (Attribute.PREFERRED_LOCATION, (-1,), HOST),
        (Attribute.PREFERRED_LOCATION, (-2,), False),
        (Attribute.LAST_PREFETCH_LOCATION, (1,), Device(1)),
        (Attribute.ACCESSED_BY, (1, -1, -2), (Device(1), HOST)),
        (Attribute.ACCESSED_BY, (-2, -2, -2), ()),
        (Attribute.ACCESSED_BY, None, None),
    ],
)
def test_range_attributes_are_places(attribute: Attribute, values: Any, said: Any) -> None:
    driver = make(H200, H200, native=FakeNative(values=values))
    assert driver.read_range(4096, 8192, attribute) == said
    asked = driver._hints.native.calls[-1]  # type: ignore[attr-defined]
    assert asked == ("read", 4096, 8192, attribute.value, 3 if attribute is Attribute.ACCESSED_BY else 1)


@pytest.mark.parametrize("values", [None, (0,)])
def test_ranges_that_do_not_read_back_what_was_set_are_not_readable(values: Any) -> None:
    driver = make(MI210, native=FakeNative(values=values))
    assert driver.traits(0).readable_ranges is False
    assert len(calls(driver, "mallocManaged")) == len(calls(driver, "free")) == 1


def test_a_device_that_refuses_the_trial_page_has_traits_all_the_same() -> None:
    driver = make(H200)
    driver.runtime.errors["mallocManaged"] = 801
    assert driver.traits(0).readable_ranges is False


def test_a_call_on_another_device_leaves_the_thread_s_device() -> None:
    driver = make(H200, H200)
    driver.runtime.errors["malloc"] = 999
    with pytest.raises(DriverError):
        driver.allocate(4096, Kind.DEVICE, 1)
    assert calls(driver, "setDevice") == [(1,), (0,)]


def test_events_do_not_spin_and_only_a_timed_one_costs_timing() -> None:
    driver = make(H200)
    driver.record(3, 0)
    driver.record(3, 0, timed=True)
    assert calls(driver, "eventCreateWithFlags") == [(3,), (1,)]
    assert len(calls(driver, "eventDestroy")) == 2


@pytest.mark.parametrize(("status", "done"), [(0, True), (600, False)])
def test_an_event_is_done_or_not(status: int, done: bool) -> None:
    driver = make(H200)
    event = driver.record(3, 0)
    driver.runtime.errors["eventQuery"] = status
    assert event.done() is done
    driver.runtime.errors["eventQuery"] = 700
    with pytest.raises(DriverError, match="eventQuery.*700"):
        event.done()


def test_a_destructor_never_raises() -> None:
    driver = make(H200)
    event = driver.record(3, 0)
    driver.runtime.errors["eventDestroy"] = 700
    del event  # an error here would be reported as unraisable, which the test run makes an error


def test_a_stream_of_somebody_else_is_borrowed_without_cupys_warning() -> None:
    driver = make(H200)
    with driver.use_stream(9, 0):
        assert BaseStream.entered == [(9, 0)]
    assert BaseStream.entered == [] and not calls(driver, "streamDestroy")


@pytest.mark.parametrize("kind", [Kind.DEVICE, Kind.PINNED])
def test_memory_that_does_not_migrate_never_reaches_the_runtime_s_hints(kind: Kind) -> None:
    driver = make(H200)
    block = driver.allocate(8192, kind)
    driver.traits(0)
    driver.runtime.calls.clear()
    assert driver.prefetch(block.address, 8192, Device(0), 0) is Outcome.UNSUPPORTED
    assert driver.advise(block.address, 8192, Advice.READ_MOSTLY, Device(0), True) is Outcome.UNSUPPORTED
    assert driver.runtime.calls == []


def test_what_is_freed_is_forgotten_before_the_runtime_can_give_its_address_again() -> None:
    driver = make(H200)
    block, seen = driver.allocate(8192, Kind.DEVICE), list[Any]()
    free = driver.runtime.free
    driver.runtime.free = lambda address: (seen.append(driver.find(block.address)), free(address))
    driver.free(block)
    assert seen == [None]
    with pytest.raises(ValueError, match="freed before"):
        driver.free(block)


def test_an_event_that_dies_in_a_forked_child_is_left_alone(monkeypatch: Any) -> None:
    driver = make(H200)
    event = driver.record(0, 0)
    with monkeypatch.context() as child:
        child.setattr(fork, "_forks", fork.generation() + 1)
        del event
    assert not calls(driver, "eventDestroy")


def test_in_a_forked_child_all_but_free_refuses(monkeypatch: Any) -> None:
    driver = make(H200)
    block, event = driver.allocate(8192, Kind.MANAGED), driver.record(0, 0)
    made = len(driver.runtime.calls)
    monkeypatch.setattr(fork, "_forks", fork.generation() + 1)
    driver.free(block)
    for act in (
        lambda: driver.device_count(),
        lambda: driver.traits(0),
        lambda: driver.current_device(),
        lambda: driver.memory_info(HOST),
        lambda: driver.versions(),
        lambda: driver.allocate(1, Kind.MANAGED),
        lambda: driver.allocate(1, Kind.HOST),
        lambda: driver.find(0),
        lambda: driver.as_array(0, 1, None),
        lambda: driver.prefetch(0, 1, HOST, 0),
        lambda: driver.advise(0, 1, Advice.READ_MOSTLY, HOST, True),
        lambda: driver.read_range(0, 1, Attribute.READ_MOSTLY),
        lambda: driver.copy(0, 0, 1, 0),
        lambda: driver.fill(0, 0, 1, 0),
        lambda: driver.create_stream(0),
        lambda: driver.destroy_stream(0, 0),
        lambda: driver.current_stream(),
        lambda: driver.use_stream(0, 0).__enter__(),
        lambda: driver.record(0, 0),
        lambda: driver.wait(0, event),
        lambda: driver.elapsed(event, event),
        lambda: driver.synchronize(),
        event.done,
        event.wait,
    ):
        with pytest.raises(ForkedProcess, match="spawn"):
            act()
    assert len(driver.runtime.calls) == made
