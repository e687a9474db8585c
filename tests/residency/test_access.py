"""um.access: what it does before the work, after it, and never; arrays of every kind; honest like every scope."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import umarray as um
from tests.fake_driver import Call, FakeDriver
from tests.residency.arrays import PAGE, FakeCupy, address, hints, managed, prefetches, standing
from umarray import drivers, events
from umarray.calibration import Curve, current
from umarray.calibration.known import set_current
from umarray.drivers.base import Kind, Mode
from umarray.drivers.host import HostDriver
from umarray.errors import ClosedError, DriverError, UnusedScopeWarning
from umarray.places import HOST, Device
from umarray.residency.plan import Pick

Make = Callable[..., FakeDriver]


@pytest.fixture
def always(fake: FakeDriver) -> Iterator[FakeDriver]:
    """A driver on whose device a prefetch always pays, however small."""
    _prefetch_pays(fake)
    yield fake


def _prefetch_pays(fake: FakeDriver) -> FakeDriver:
    for device in range(fake.devices):
        renew = Curve.line(5e-7, 1e13)
        cheap = replace(current(device), prefetch=Curve.line(1e-6, 1e12), demand=Curve.line(1e-3, 1e9), renew=renew)
        set_current(device, cheap)
    return fake


def picks(plan: Any) -> set[Pick]:
    return {choice.pick for choice in plan.choices}


# What is picked, and done


def test_pages_come_before_the_work_and_what_is_there_stays(always: FakeDriver) -> None:
    fake = always
    x, y = managed(fake, 100), managed(fake, 10)
    with um.access(reads=[x], updates=[y]) as plan:
        fake.launch(touches=[(address(x), x.nbytes), (address(y), y.nbytes)])
    assert fake.page_faults == 0 and picks(plan) == {Pick.PREFETCH}
    assert len(prefetches(fake)) == 2 and plan.tally.asked == 2
    asked = hints(fake)
    with um.access(reads=[x], updates=[y]) as plan:
        fake.launch(touches=[(address(x), x.nbytes), (address(y), y.nbytes)])
    assert fake.page_faults == 0 and picks(plan) == {Pick.NOTHING} and hints(fake) == asked
    fake.host_touch(address(x), 3 * PAGE)
    with um.access(reads=[x], updates=[y]) as plan:
        pass
    assert prefetches(fake)[2:] == [(address(x), x.nbytes, Device(0))]
    assert [c.pick for c in plan.choices if "12.0 KiB of it" in c.why] == [Pick.PREFETCH]


def test_what_is_cheaper_by_faults_is_left_to_them_and_known_to_be_there_afterwards(fake: FakeDriver) -> None:
    x = managed(fake, 1)
    with um.access(reads=[x]) as plan:
        fake.launch(touches=[(address(x), x.nbytes)])
    assert picks(plan) == {Pick.ON_DEMAND} and prefetches(fake) == [] and fake.page_faults == 1
    with um.access(reads=[x]) as plan:
        pass
    assert picks(plan) == {Pick.NOTHING}


def test_neighbours_of_different_use_are_one_call(always: FakeDriver) -> None:
    x = managed(always, 12, "u1")
    with um.access(reads=[x[: 4 * PAGE]], updates=[x[4 * PAGE : 8 * PAGE]], writes=[x[8 * PAGE :]]) as plan:
        pass
    assert prefetches(always) == [(address(x), 12 * PAGE, Device(0))] and plan.tally.calls == 1


def test_overwritten_pages_arrive_without_their_contents_and_their_neighbours_with_them(make_fake: Make) -> None:
    fake = _prefetch_pays(make_fake(renews=True))
    x = managed(fake, 1000, "u1")
    x[...] = 7
    out = x[PAGE // 2 : 999 * PAGE + 5]
    with um.access(writes=[out]) as plan:
        assert (x[: PAGE // 2] == 7).all() and (x[999 * PAGE + 5 :] == 7).all()
        assert (x[PAGE : 999 * PAGE] != 7).all()
        fake.launch(lambda: out.fill(9), touches=[(address(out), out.nbytes)])
    assert (out == 9).all() and (x[: PAGE // 2] == 7).all() and fake.page_faults == 0
    assert plan.tally.bytes_renewed == 998 * PAGE and {Pick.RENEW, Pick.PREFETCH} == picks(plan)


def test_an_array_that_is_written_and_read_keeps_its_contents(make_fake: Make) -> None:
    fake = _prefetch_pays(make_fake(renews=True))
    x = managed(fake, 1000)
    x[...] = 7
    for lists in ({"reads": [x], "writes": [x]}, {"writes": [x], "updates": x}, {"writes": [x[::2], x[1::2]]}):
        fake.host_touch(address(x), x.nbytes)
        with um.access(**lists) as plan:
            pass
        assert (x == 7).all() and not fake.count("renew") and plan.tally.bytes_renewed == 0


def test_pages_move_after_the_work_so_far_and_the_work_waits_for_them(make_fake: Make) -> None:
    fake = _prefetch_pays(make_fake(renews=True))
    x, y, seen = managed(fake, 100), managed(fake, 1000), list[Any]()
    gate = fake.hold()
    fake.launch(lambda: seen.append((fake.where(address(x)), int(y[0]))))
    with um.access(reads=[x], writes=[y]):
        fake.launch(lambda: seen.append((fake.where(address(x)), fake.where(address(y)))))
    assert seen == []  # the host waited for nothing
    gate.open()
    assert seen == [({HOST}, 0), ({Device(0)}, {Device(0)})]


def test_what_does_not_fit_is_mapped_over_the_bus_until_the_work_is_done(make_fake: Make) -> None:
    fake = make_fake(capacity=128 << 20)
    x = managed(fake, (80 << 20) // PAGE)  # 48 MiB are free then
    waits = fake.count("synchronize")
    with um.access(reads=[x]) as plan:
        assert picks(plan) == {Pick.MAP} and standing(fake, x) == (False, HOST, (Device(0),))
        assert fake.count("synchronize") == waits and not prefetches(fake)
    assert standing(fake, x) == (False, False, ()) and fake.count("synchronize") == waits + 1
    assert "over the bus: 80.0 MiB" in str(plan)
    fake.capacity = 200 << 20
    with um.access(reads=[x]) as plan:
        assert picks(plan) == {Pick.PREFETCH}


def test_two_devices_that_read_keep_a_copy_each(make_fake: Make) -> None:
    fake = _prefetch_pays(make_fake(devices=2))
    x = managed(fake, 100)
    with um.access(reads=[x], on=1) as first:
        with um.access(reads=[x], on=0) as second:
            assert picks(first) == {Pick.PREFETCH} and picks(second) == {Pick.DUPLICATE}
            assert standing(fake, x)[0] is True
        assert standing(fake, x)[0] is False
    with um.access(updates=[x], on=1), um.access(reads=[x], on=0) as second:
        assert Pick.DUPLICATE not in picks(second)
    with um.advise(x, read_mostly=True), um.access(reads=[x], on=1) as plan:
        assert picks(plan) == {Pick.DUPLICATE}


def test_the_device_is_the_current_one_at_entry_or_the_one_named(make_fake: Make) -> None:
    fake = _prefetch_pays(make_fake(devices=2))
    x, stream = managed(fake, 4), fake.create_stream(1)
    scope = um.access(reads=[x])
    with fake.use_stream(stream, 1), scope:
        pass
    with um.access(reads=[x], on=Device(0)):
        pass
    assert [place for _, _, place in prefetches(fake)] == [Device(1), Device(0)]


def test_on_a_device_that_shares_the_host_s_memory_nothing_is_done(make_fake: Make) -> None:
    fake = make_fake(unified=True)
    x = managed(fake, 100)
    with um.access(reads=[x]) as plan:
        pass
    assert picks(plan) == {Pick.NOTHING} and "share one memory" in str(plan) and hints(fake) == 0


def test_a_blocking_prefetch_is_waited_for_in_its_thread(make_fake: Make) -> None:
    fake = _prefetch_pays(make_fake(prefetch_blocks=True))
    x = managed(fake, 100)
    with um.access(reads=[x]):
        assert fake.where(address(x), x.nbytes) == {Device(0)}
    assert {call.thread for call in fake.named("prefetch")}.isdisjoint({threading.get_ident()})


# Arrays of every kind


@pytest.mark.parametrize("mode", [Mode.EXPLICIT, Mode.MANAGED])
def test_arrays_that_no_hint_can_move_are_told_and_left(make_fake: Make, mode: Mode) -> None:
    fake = make_fake(mode)
    plain, pinned = (FakeCupy(managed(fake, kind=kind)) for kind in (Kind.DEVICE, Kind.PINNED))
    with um.access(reads=[plain, np.ones(5)], updates={"a": (np.zeros(3),), "p": pinned}) as plan:
        pass
    assert hints(fake) == 0 and plan.choices == () and plan.tally.skipped == plan.tally.arrays == 4
    for text in ("1 arrays in device memory", "2 arrays in host memory", "1 arrays in pinned memory"):
        assert text in str(plan)


def test_empty_arrays_and_scalars_are_nothing(fake: FakeDriver) -> None:
    with um.access(reads=[np.float32(3), np.ones(())], writes=[managed(fake)[:0], np.empty((3, 0))]) as plan:
        pass
    assert hints(fake) == 0 and plan.choices == ()


def test_on_the_host_it_runs_and_says_so() -> None:
    before = drivers.set_driver(HostDriver(("a test",)))
    try:
        with um.access(reads=[np.ones(3)], on=3) as plan:
            pass
        assert "on the host" in str(plan) and "1 arrays in host memory" in str(plan)
    finally:
        drivers.set_driver(before)


VIEWS = [
    slice(None),
    slice(0, 0),
    slice(3, 20_000),
    slice(None, None, -1),
    slice(5_000, 30_000, 7),
    slice(30_000, 100, -5_000),
]


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    use=st.lists(st.tuples(st.sampled_from(["reads", "writes", "updates"]), st.sampled_from(VIEWS)), max_size=5),
    home=st.booleans(),
)
def test_whatever_overlaps_only_bytes_that_are_overwritten_lose_their_contents(
    make_fake: Make, use: list[tuple[str, slice]], home: bool
) -> None:
    fake = _prefetch_pays(make_fake(renews=True))
    block = managed(fake, 10, "u1")
    block[...] = np.arange(len(block)) % 199
    before = block.copy()
    if home:
        fake.prefetch(address(block), block.nbytes, Device(0), 0)
    lists: dict[str, list[Any]] = {"reads": [], "writes": [], "updates": []}
    written, read = np.zeros(len(block), bool), np.zeros(len(block), bool)
    for name, view in use:
        lists[name].append(block[view])
        (written if name == "writes" else read)[view] = True
    if not use:
        return
    touched = np.unique(np.nonzero(written | read)[0] // PAGE)
    with um.access(**lists):
        lost = np.nonzero(block != before)[0]
        assert (written & ~read)[lost].all()
        fake.launch(touches=[(address(block) + int(page) * PAGE, 1) for page in touched])
    assert fake.page_faults == 0


# Honest, as every scope


def test_nothing_happens_before_entry_and_one_that_is_dropped_says_so(fake: FakeDriver) -> None:
    x = managed(fake, 100)
    scope = um.access(reads=[x])
    assert hints(fake) == 0
    with pytest.warns(UnusedScopeWarning, match="this access scope, made at .*test_access.py"):
        del scope
        gc.collect()


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({}, TypeError, "at least one array"),
        ({"reads": [], "writes": ()}, TypeError, "at least one array"),
        ({"reads": [1]}, TypeError, "1 "),
        ({"reads": None}, TypeError, "None"),
        ({"reads": [np.ones(2)], "on": HOST}, ValueError, "host_view"),
        ({"reads": [np.ones(2)], "on": "gpu"}, ValueError, "'gpu'"),
        ({"reads": [np.ones(2)], "on": 5}, ValueError, "device 5"),
        ({"reads": [np.ones(2)], "on": True}, TypeError, "True"),
    ],
)
def test_bad_arguments_are_quoted_and_nothing_has_happened(
    fake: FakeDriver, given: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text.replace("(", r"\(")):
        um.access(**given)
    assert hints(fake) == 0


@pytest.mark.parametrize("name", ["writes", "updates"])
def test_a_read_only_array_is_not_to_be_written(fake: FakeDriver, name: str) -> None:
    x = np.ones(3)
    x.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        um.access(**{name: [x]})
    with um.access(reads=[x]):
        pass


def test_it_is_entered_once_and_not_copied(fake: FakeDriver) -> None:
    scope = um.access(reads=[managed(fake)])
    with pytest.raises(ClosedError):
        scope.__exit__(None, None, None)
    with scope, pytest.raises(ClosedError):
        scope.__enter__()
    for again in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be copied"):
            again(scope)


def test_the_exception_of_the_block_comes_out_and_advice_is_taken_back_without_a_wait(make_fake: Make) -> None:
    fake = make_fake(capacity=128 << 20)
    x = managed(fake, (80 << 20) // PAGE)
    waits = fake.count("synchronize")
    with pytest.raises(KeyError), um.access(reads=[x]):
        assert standing(fake, x)[1] == HOST
        raise KeyError
    assert standing(fake, x) == (False, False, ()) and fake.count("synchronize") == waits


@pytest.mark.parametrize("call", ["prefetch", "renew"])
def test_a_call_that_fails_is_raised_and_leaves_no_advice(make_fake: Make, call: str) -> None:
    fake = _prefetch_pays(make_fake(renews=True, devices=2))
    x, y = managed(fake, 100), managed(fake, 1000)
    with um.access(reads=[x], on=1):
        fake.fail(call, 700)
        scope = um.access(reads=[x], writes=[y], on=0)
        with pytest.raises(DriverError, match="700"), scope:
            pytest.fail("the block ran")
        assert standing(fake, x)[0] is False
    with pytest.raises(ClosedError):
        scope.__enter__()
    with um.access(reads=[x], writes=[y], on=0) as plan:
        assert Pick.NOTHING not in {choice.pick for choice in plan.choices if choice.nbytes > y.nbytes}


def test_an_unsupported_hint_is_never_called_done(make_fake: Make) -> None:
    fake = make_fake(missing=["prefetch"])
    x = managed(fake, 1000)
    with um.access(reads=[x]) as plan:
        pass
    assert (plan.tally.asked, plan.tally.unsupported) == (0, 1) and "0 asked (0 B), 1 unsupported" in str(plan)


def test_an_array_may_go_while_the_scope_is_open(always: FakeDriver) -> None:
    x = managed(always, 100)
    gone = weakref.ref(x)
    with um.access(reads=[x]):
        del x
        gc.collect()
        assert gone() is None


def test_a_scope_that_is_dropped_open_takes_its_advice_back(make_fake: Make) -> None:
    fake = make_fake(capacity=128 << 20)
    x = managed(fake, (80 << 20) // PAGE)
    scope = um.access(reads=[x])
    scope.__enter__()
    assert standing(fake, x)[1] == HOST
    del scope
    gc.collect()
    assert standing(fake, x) == (False, False, ())


def test_it_is_told_and_shown(always: FakeDriver) -> None:
    x, told = managed(always, 100), list[Any]()
    stop = events.listen(told.append)
    try:
        with um.access(reads=[x], on=0) as plan:
            pass
    finally:
        stop()
    began = told[0]
    assert (began.action, began.place) == ("access", Device(0)) and told[-1] == events.Ended(began.serial, "access")
    assert any(isinstance(one, events.Prefetched) and one.scope == began.serial for one in told)
    assert str(plan).startswith(
        "access scope, closed: on Device(0)\n  prefetch: 400.0 KiB, its pages lie on the host: "
    )
    page = plan._repr_html_()
    assert "access on Device(0)" in page and "prefetch" in page and "400.0 KiB" in page


def test_looking_calls_nothing_that_moves_or_waits(fake: FakeDriver) -> None:
    x = managed(fake, 100)
    with um.access(reads=[x]):
        pass
    calls: list[Call] = []
    fake.on_call = calls.append
    with um.access(reads=[x], writes=[x[:0]]) as plan:
        str(plan)
    names = {call.name for call in calls}
    assert names <= {"device_count", "find", "current_device", "host_share"}, names
