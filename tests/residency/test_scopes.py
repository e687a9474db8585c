"""prefetch, advise and move: what they ask, in which order, and what they never do."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import umarray as um
from tests.fake_driver import FakeDriver
from tests.residency.arrays import PAGE, SCOPES, FakeCupy, address, hints, managed, prefetches, standing
from umarray import drivers, events
from umarray.drivers.base import Attribute, Kind, Mode
from umarray.drivers.host import HostDriver
from umarray.errors import SparseViewWarning
from umarray.places import HOST, Device

BAD: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
    (lambda x: um.prefetch(), TypeError, "at least one array"),
    (lambda x: um.prefetch(x, "host"), TypeError, "'host'"),
    (lambda x: um.prefetch([x, None]), TypeError, "None"),
    (lambda x: um.prefetch(x, to="moon"), ValueError, "'moon'"),
    (lambda x: um.prefetch(x, to=-1), ValueError, "-1"),
    (lambda x: um.prefetch(x, to=True), TypeError, "True"),
    (lambda x: um.prefetch(x, to=7), ValueError, "no device 7"),
    (lambda x: um.prefetch(x, back=Device(7)), ValueError, "no device 7"),
    (lambda x: um.prefetch(x, stream="theirs"), ValueError, "'theirs'"),
    (lambda x: um.prefetch(x, stream=None), TypeError, "None"),
    (lambda x: um.prefetch(x, stream=-3), ValueError, "-3"),
    (lambda x: um.prefetch(x, wait=1), TypeError, "1"),
    (lambda x: um.advise(x), ValueError, "no advice"),
    (lambda x: um.advise(x, read_mostly=1), TypeError, "1"),
    (lambda x: um.advise(x, read_mostly=True, preferred_location="cpu"), ValueError, "'cpu'"),
    (lambda x: um.advise(x, accessed_by=[Device(0), 2.5]), TypeError, "2.5"),
    (lambda x: um.advise(x, accessed_by=9), ValueError, "no device 9"),
    (lambda x: um.advise(read_mostly=True), TypeError, "at least one array"),
    (lambda x: um.move(x, to=7), ValueError, "no device 7"),
    (lambda x: um.move(), TypeError, "at least one array"),
    (lambda x: um.move(x, to=None), TypeError, "None"),
    (lambda x: um.move([x, "x"]), TypeError, "'x'"),
]


@pytest.mark.parametrize(("make", "error", "quoted"), BAD)
def test_bad_input_is_quoted_and_changes_nothing(
    fake: FakeDriver, make: Callable[[Any], Any], error: type[Exception], quoted: str
) -> None:
    x = managed(fake)
    with pytest.raises(error) as caught:
        make(x)
    assert quoted in str(caught.value) and hints(fake) == 0
    del caught
    gc.collect()  # a scope that was never made does not warn


# What is asked


def test_neighbours_are_one_call_and_whole_pages_move(fake: FakeDriver) -> None:
    x = managed(fake, 8)
    with um.prefetch({"a": x[100:2000], "b": [x[2000:3000][::-1]]}, x[7 * 1024 + 5 :]) as scope:
        start = address(x)
        assert prefetches(fake) == [(start, 3 * PAGE, Device(0)), (start + 7 * PAGE, PAGE, Device(0))]
    assert (scope.tally.asked, scope.tally.calls, scope.tally.bytes) == (2, 2, 4 * PAGE)
    assert len(prefetches(fake)) == 2  # a prefetch is not undone


@pytest.mark.parametrize("to", [Device(0), 0, HOST, "host", Device(1)])
def test_where_to(make_fake: Callable[..., FakeDriver], to: Any) -> None:
    fake = make_fake(devices=2)
    x = managed(fake)
    um.move(x, to=to)
    place = HOST if to in (HOST, "host") else Device(to) if isinstance(to, int) else to
    assert fake.where(address(x), x.nbytes) == {place}


def test_the_default_is_the_device_that_is_current_at_entry(make_fake: Callable[..., FakeDriver]) -> None:
    fake = make_fake(devices=2)
    x = managed(fake)
    scope = um.prefetch(x)
    with fake.use_stream(0, 1), scope:
        assert fake.where(address(x), x.nbytes) == {Device(1)}


def test_devices_that_use_a_slice_each_get_that_slice(make_fake: Callable[..., FakeDriver]) -> None:
    fake = make_fake(devices=2)
    x = managed(fake, 8)
    half = len(x) // 2
    with um.prefetch(x[:half], to=0), um.prefetch(x[half:], to=1):
        assert fake.where(address(x), x.nbytes // 2) == {Device(0)}
        assert fake.where(address(x[half:]), x.nbytes // 2) == {Device(1)}


def test_back_returns_the_pages(fake: FakeDriver) -> None:
    x = managed(fake)
    with um.prefetch(x, back=HOST):
        assert fake.where(address(x), x.nbytes) == {Device(0)}
    assert fake.where(address(x), x.nbytes) == {HOST}


def test_advice_stands_in_the_block_and_not_after(fake: FakeDriver) -> None:
    w = managed(fake)
    with um.advise(w, read_mostly=True, preferred_location=Device(0), accessed_by=[HOST, "host"]) as scope:
        assert standing(fake, w) == (True, Device(0), (HOST,))
    assert standing(fake, w) == (False, False, ())
    assert (scope.tally.asked, scope.tally.calls, scope.tally.not_restored) == (3, 6, 0)


def test_advice_of_somebody_else_comes_back(fake: FakeDriver) -> None:
    from umarray.drivers.base import Advice

    w = managed(fake)
    fake.advise(address(w), w.nbytes, Advice.PREFERRED_LOCATION, HOST, True)
    with um.advise(w, preferred_location=0):
        assert standing(fake, w)[1] == Device(0)
    assert standing(fake, w)[1] == HOST


def test_false_takes_advice_away_for_the_block(fake: FakeDriver) -> None:
    w = managed(fake)
    with um.advise(w, read_mostly=True):
        with um.advise(w, read_mostly=False):
            assert standing(fake, w)[0] is False
        assert standing(fake, w)[0] is True


def test_a_neighbour_is_never_advised_and_what_is_left_out_is_counted(fake: FakeDriver) -> None:
    x = managed(fake, 4, "u1")
    with um.advise(x[10 : 3 * PAGE + 7], read_mostly=True) as scope:
        pages = [fake.read_range(address(x) + page * PAGE, PAGE, Attribute.READ_MOSTLY) for page in range(4)]
    assert pages == [False, True, True, False]
    assert scope.tally.bytes_left_out == PAGE - 10 + 7 and scope.tally.bytes == 2 * PAGE
    with um.advise(x[10:20], read_mostly=True) as scope:
        pass
    assert (scope.tally.calls, scope.tally.bytes_left_out) == (0, 10)


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 5, 2)])
def test_arrays_without_elements_take_no_part(fake: FakeDriver, shape: tuple[int, ...]) -> None:
    x: Any = managed(fake)[:0].reshape(shape)
    for scope in [*(make(x) for make in SCOPES), um.prefetch([], {})]:
        with scope:
            pass
        assert scope.tally.calls == 0 and scope.tally.skipped == 0
    assert um.move(x).calls == 0


@pytest.mark.parametrize("kind", [Kind.DEVICE, Kind.PINNED, None])
def test_other_memory_is_skipped_and_counted(fake: FakeDriver, kind: Kind | None) -> None:
    x = np.ones(5000) if kind is None else managed(fake, kind=kind)
    y = managed(fake)
    for make in SCOPES:
        with make([x, y]) as scope:
            pass
        assert (scope.tally.arrays, scope.tally.skipped) == (2, 1)
        assert scope.tally.asked > 0 and "1 of 2 arrays skipped" in str(scope)


@pytest.mark.parametrize("settings", [{"missing": ["prefetch", "advise"]}, {"mode": Mode.EXPLICIT}, {"unified": True}])
def test_what_is_unsupported_is_never_told_as_asked(
    make_fake: Callable[..., FakeDriver], settings: dict[str, Any]
) -> None:
    fake = make_fake(**settings)
    x = managed(fake, kind=Kind.DEVICE if "mode" in settings else Kind.MANAGED)
    with um.prefetch(x, back=HOST) as scope:
        pass
    assert scope.tally.asked == 0 and scope.tally.bytes == 0
    assert scope.tally.unsupported + scope.tally.skipped > 0


def test_the_host_driver_counts_no_ops() -> None:
    before = drivers.set_driver(HostDriver(("a test",)))
    try:
        block = drivers.get_driver().allocate(4 * PAGE, Kind.MANAGED)
        x = drivers.get_driver().as_array(block.address, block.nbytes, block)
        with um.prefetch(x, to=Device(5), back="host") as one, um.advise(x, read_mostly=True) as two:
            x[...] = 3
        assert (one.tally.unsupported, two.tally.unsupported) == (2, 1)
        assert one.tally.asked + two.tally.asked == 0 and (x == 3).all()
        drivers.get_driver().free(block)
    finally:
        drivers.set_driver(before)


def test_a_view_with_wide_gaps_is_told_once_a_line(fake: FakeDriver) -> None:
    x = managed(fake, 1024, "u1").reshape(64, -1)
    with pytest.warns(SparseViewWarning, match="3.9 MiB and have elements in about 256.0 KiB") as caught:
        um.move(x[:, 0])
    assert caught[0].filename == __file__
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("default")
        for _ in range(3):
            um.move(x[:, 0])
    assert len(found) == 1
    with um.prefetch(x[:, ::2]) as scope:
        pass
    assert scope.tally.bytes_between == 0


# Threads


def test_scopes_of_many_threads(fake: FakeDriver) -> None:
    x, begin, failures = managed(fake, 16), threading.Barrier(6), list[BaseException]()

    def work(number: int) -> None:
        try:
            begin.wait(10)
            for turn in range(15):
                part = x[(number + turn) % 8 * 1024 :][:4096]
                with um.advise(part, read_mostly=True, preferred_location=number % 2 or HOST if number < 2 else 0):
                    with um.prefetch(part, back=HOST if turn % 2 else None):
                        pass
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number % 2 * 2,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures and not any(thread.is_alive() for thread in threads)
    assert standing(fake, x) == (False, False, ())
    for page in range(16):
        assert fake.read_range(address(x) + page * PAGE, PAGE, Attribute.READ_MOSTLY) is False


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(1, 8), st.booleans()), min_size=1, max_size=6), st.randoms())
def test_scopes_that_end_in_any_order_leave_nothing(scopes: list[tuple[int, int, bool]], random: Any) -> None:
    fake = FakeDriver()
    before = drivers.set_driver(fake)
    try:
        x = managed(fake, 8)
        made = [um.advise(x[low * 1024 :][: n * 1024], read_mostly=on) for low, n, on in scopes]
        for scope in made:
            scope.__enter__()
        random.shuffle(made)
        for scope in made:
            scope.__exit__(None, None, None)
        assert not any(fake.read_range(address(x) + p * PAGE, PAGE, Attribute.READ_MOSTLY) for p in range(8))
    finally:
        drivers.set_driver(before)


# Seen


def test_events_tell_what_was_asked(fake: FakeDriver) -> None:
    x, told = managed(fake), list[Any]()
    stop = events.listen(told.append)
    try:
        with um.prefetch(x, back=HOST), um.advise(x, accessed_by=HOST):
            pass
    finally:
        stop()
    start, nbytes = address(x), x.nbytes
    serial, own = told[0].serial, told[1].stream
    line = f"{__file__}:{test_events_tell_what_was_asked.__code__.co_firstlineno + 4}"
    operands = (events.Operand(start, nbytes, x.shape, str(x.dtype)),)
    assert told == [
        events.Began(serial, "prefetch", "", line, Device(0), None, operands),
        events.Prefetched(start, nbytes, Device(0), True, own, serial),
        events.Began(serial + 1, "advise", "accessed_by=HOST", line, None, None, operands),
        events.Advised(start, nbytes, "accessed_by", HOST, True, True),
        events.Advised(start, nbytes, "accessed_by", HOST, False, True),
        events.Ended(serial + 1, "advise"),
        events.Prefetched(start, nbytes, HOST, True, own, serial),
        events.Ended(serial, "prefetch"),
    ]
    assert own != fake.current_stream(0)


def test_arrays_that_look_like_cupys(fake: FakeDriver) -> None:
    x = managed(fake)
    with um.prefetch(FakeCupy(x)) as scope:
        pass
    assert scope.tally.bytes == x.nbytes


def test_a_numpy_scalar_is_what_an_array_without_dimensions_is_elsewhere() -> None:
    scalar = np.ones(3).sum()  # CuPy gives an array here, and the same program must run in every mode
    with um.prefetch(scalar) as scope, um.advise([scalar], read_mostly=True):
        assert (scope.tally.arrays, scope.tally.skipped) == (1, 1)
    with um.host_view(scalar) as h:
        assert h.shape == () and float(h) == 3
    with pytest.raises(ValueError, match="read-only"):
        um.host_view(scalar, "r+")
    assert um.move(scalar).skipped == 1
    um.residency(scalar)


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_scope_is_not_copied(again: Any) -> None:
    with um.prefetch(np.ones(3)) as scope, pytest.raises(TypeError, match="cannot be copied"):
        again(scope)


def test_a_prefetch_keeps_its_stream_until_it_is_left() -> None:
    class Stream:
        ptr, device_id = 0, 0

    stream = Stream()
    alive = weakref.ref(stream)
    scope = um.prefetch(np.ones(3), stream=stream, back=um.HOST)
    del stream
    with scope:
        assert alive() is not None
    assert alive() is None


def test_a_host_view_keeps_its_streams_until_it_is_left() -> None:
    class Stream:
        ptr, device_id = 0, 0

    stream = Stream()
    alive = weakref.ref(stream)
    view = um.host_view(np.ones(3), streams=iter([stream]))
    del stream
    with view:
        assert alive() is not None
    assert alive() is None
