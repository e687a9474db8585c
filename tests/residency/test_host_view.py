"""host_view in all modes: what is read, what is written back, what is never touched, and what is waited for."""

from __future__ import annotations

import copy
import gc
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

import umarray as um
from tests.fake_driver import Call, FakeDriver
from tests.residency.arrays import PAGE, FakeCupy, address, managed
from umarray import drivers, events
from umarray.drivers.base import Kind, Mode
from umarray.drivers.host import HostDriver
from umarray.errors import ClosedError, DriverError, OutOfMemory
from umarray.places import HOST, Device

Make = Callable[..., Any]


@pytest.fixture(params=["managed", "explicit", "host"])
def make(request: pytest.FixtureRequest) -> Iterator[Make]:
    """Makes an array of the mode's own memory, under a driver of each mode; the same test in all of them."""
    driver: Any = HostDriver(("a test",)) if request.param == "host" else FakeDriver(request.param)
    kind = Kind.DEVICE if request.param == "explicit" else Kind.MANAGED
    before, blocks = drivers.set_driver(driver), []

    def array(count: int = 1000, dtype: str = "f4") -> Any:
        block = driver.allocate(count * np.dtype(dtype).itemsize, kind)
        blocks.append(block)
        x = driver.as_array(block.address, block.nbytes, block).view(dtype)
        x[...] = np.arange(count)
        return x

    yield array
    drivers.set_driver(before)
    if isinstance(driver, FakeDriver):
        assert not driver.faults


VIEWS: dict[str, Callable[[Any], Any]] = {
    "all": lambda x: x,
    "reversed": lambda x: x[::-1],
    "transposed": lambda x: x.reshape(10, 100).T,
    "sliced": lambda x: x[3::7],
    "backward": lambda x: x[900:20:-11],
    "rectangle": lambda x: x.reshape(10, 100)[2:7, 10:60:3],
    "scalar": lambda x: x[5].reshape(()) if isinstance(x[5], np.ndarray) else x[5:6].reshape(()),
    "empty": lambda x: x[:0],
    "empty 2-d": lambda x: x.reshape(10, 100)[:, 5:5],
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("dtype", ["u1", "f4", "c8"])
def test_it_reads_what_is_there(make: Make, view: str, dtype: str) -> None:
    x = VIEWS[view](make(dtype=dtype))
    expected = x.copy()
    with um.host_view(x) as h:
        assert type(h) is np.ndarray and h.dtype == x.dtype and h.shape == x.shape
        np.testing.assert_array_equal(h, expected)


@pytest.mark.parametrize("mode", ["w", "r+"])
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("raises", [False, True])
def test_it_writes_its_elements_and_no_other_also_when_the_block_raises(
    make: Make, view: str, mode: str, raises: bool
) -> None:
    whole = make()
    expected = whole.copy()
    VIEWS[view](expected)[...] = 7
    try:
        with um.host_view(VIEWS[view](whole), mode) as h:
            h[...] = 7
            if raises:
                raise KeyError
    except KeyError:
        assert raises
    np.testing.assert_array_equal(whole, expected)


@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
@given(
    rows=st.slices(size=12), columns=st.slices(size=15), transpose=st.booleans(), mode=st.sampled_from(["r", "w", "r+"])
)
def test_any_view_is_like_numpys(make: Make, rows: slice, columns: slice, transpose: bool, mode: str) -> None:
    whole = make(180, "i2")
    x = whole.reshape(12, 15)[rows, columns]
    x = x.T if transpose else x
    expected = whole.copy()
    with um.host_view(x, mode) as h:
        if mode != "w":
            np.testing.assert_array_equal(h, x)
        if mode != "r":
            h[...] = -np.arange(x.size).reshape(x.shape)
    if mode != "r":
        mine = expected.reshape(12, 15)[rows, columns]
        mine = mine.T if transpose else mine
        mine[...] = -np.arange(x.size).reshape(x.shape)
    np.testing.assert_array_equal(whole, expected)


def test_bytes_between_that_change_meanwhile_are_not_overwritten(make_fake: Callable[..., FakeDriver]) -> None:
    fake = make_fake(Mode.EXPLICIT)
    x = managed(fake, kind=Kind.DEVICE)
    with um.host_view(x[::2], "r+") as h:
        x[1::2] = 5  # somebody else's elements
        h[...] = 1
    assert (x[::2] == 1).all() and (x[1::2] == 5).all()


def test_r_is_read_only_and_cannot_be_made_writable(make: Make) -> None:
    x = make()
    with um.host_view(x) as h:
        with pytest.raises(ValueError, match="read-only"):
            h[0] = 1
        for view in (h, h[1:], h.reshape(-1)):
            with pytest.raises(ValueError, match="WRITEABLE"):
                view.flags.writeable = True
    with um.host_view(x, "r+") as h:
        h[0] = 3
    with pytest.raises(ValueError, match="read-only"):
        h[0] = 4
    assert x[0] == 3


def test_a_broadcast_is_read_and_not_written(make: Make) -> None:
    x = np.broadcast_to(make()[:4], (1000, 4))
    with um.host_view(x) as h:
        np.testing.assert_array_equal(h, x)
    windows = np.lib.stride_tricks.as_strided(make(), (10, 4), (4, 4))
    with um.host_view(windows) as h:
        np.testing.assert_array_equal(h, windows)
    with pytest.raises(ValueError, match="share memory"):
        um.host_view(windows, "r+")


@pytest.mark.parametrize("bad", ["rw", "", "R", "a", None, 3, b"r"])
def test_an_unknown_mode_is_quoted(make: Make, bad: Any) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        um.host_view(make(), bad)
    assert repr(bad) in str(caught.value)


@pytest.mark.parametrize(("x", "text"), [([1, 2], "no array"), (None, "no array"), (3, "no array"), ({}, "no array")])
def test_what_is_no_array_is_refused(make: Make, x: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        um.host_view(x)


def test_a_stream_that_is_none_and_a_read_only_array(make: Make) -> None:
    with pytest.raises(TypeError, match="2.5"):
        um.host_view(make(), streams=[2.5])
    x = make()
    x.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        um.host_view(x, "w")


def test_it_is_entered_once(make: Make) -> None:
    view = um.host_view(make(), "r+")
    with pytest.raises(ClosedError):
        view.__exit__(None, None, None)
    with view, pytest.raises(ClosedError, match="entered before"):
        view.__enter__()
    for again in (view.__enter__, lambda: view.__exit__(None, None, None)):
        with pytest.raises(ClosedError):
            again()


@pytest.mark.parametrize("dtype", ["f4", "c8", "i4", "u1", "?"])
def test_debug_poisons_what_is_not_written(make: Make, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UMARRAY_DEBUG", "1")
    x = make(10, dtype)
    before = x.copy()
    with um.host_view(x, "w") as h:
        h[1:] = 1
    assert not np.array_equal(x[:1], before[:1]) or dtype == "?"
    assert (x[1:] == 1).all() and (np.isnan(x[0]) if x.dtype.kind in "fc" else True)
    monkeypatch.setenv("UMARRAY_DEBUG", "0")
    with um.host_view(x, "r+") as h:
        h[...] = 2
    assert (x == x.dtype.type(2)).all()


def test_plain_numpy_is_waited_for_as_well_and_object_arrays_work(fake: FakeDriver) -> None:
    x = np.array([1, "two", None], dtype=object)
    view = um.host_view(x, "r+")
    with view as h:
        h[0] = 5
    assert x[0] == 5 and view.waits == 1 and fake.count("synchronize") == 1


# Managed memory


def test_managed_memory_is_the_very_memory(fake: FakeDriver) -> None:
    x = managed(fake)
    with um.host_view(FakeCupy(x), "r+") as h:
        assert h.ctypes.data == address(x)
        h[3] = 9
    assert x[3] == 9 and fake.count("copy") == 0


@pytest.mark.parametrize("count", [3, 100])
@pytest.mark.parametrize("mode", ["r", "w", "r+"])
def test_pages_on_the_device_stay_there_and_nothing_faults(fake: FakeDriver, count: int, mode: str) -> None:
    x = managed(fake, count)
    um.move(x, to=0)
    before, copies = fake.page_faults, {"r": 1, "w": 1, "r+": 2}[mode]
    view = um.host_view(FakeCupy(x), mode)
    with view as h:
        assert h.ctypes.data != address(x)
        if mode != "r":
            h[...] = 5
    assert fake.where(address(x), x.nbytes) == {Device(0)} and "staged" in str(view)
    assert (fake.page_faults - before, fake.count("prefetch"), fake.count("copy")) == (0, 1, copies)
    assert (x == (0 if mode == "r" else 5)).all()


def test_pages_too_many_to_be_pinned_come_home(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["umarray.residency.ways"], "MOST_PINNED", 99 * PAGE)
    big, small = managed(fake, 100), managed(fake, 3)
    um.move([big, small], to=0)
    view = um.host_view(FakeCupy(big), "r+")
    with view as h:
        assert h.ctypes.data == address(big) and fake.where(address(big), big.nbytes) == {HOST}
    assert view.tally.asked == 1 and view.waits == 2 and "managed" in str(view)
    fake.pinned_capacity = 0  # then there is no room for a shadow either
    with um.host_view(FakeCupy(small), "r+") as h:
        assert h.ctypes.data == address(small)
        assert fake.where(address(small), small.nbytes) == {Device(0)}  # a few faults are cheaper than a call


@pytest.mark.parametrize("count", [3, 100])
def test_pages_are_home_also_where_a_prefetch_keeps_its_caller(
    make_fake: Callable[..., FakeDriver], count: int
) -> None:
    fake, entered = make_fake(prefetch_blocks=True), threading.Event()
    x = managed(fake, count)
    with um.prefetch(x, back=HOST):
        fake.on_call = lambda call: entered.wait(0.2) if call.name == "prefetch" else None  # our thread is slow
    with um.host_view(FakeCupy(x)):
        assert fake.where(address(x), x.nbytes) == {HOST}
        entered.set()


def test_pages_come_home_also_where_a_prefetch_keeps_its_caller(make_fake: Callable[..., FakeDriver]) -> None:
    fake, entered = make_fake(prefetch_blocks=True, pinned_capacity=0), threading.Event()
    x = managed(fake, 100)
    um.move(x, to=0)
    fake.on_call = lambda call: entered.wait(0.2) if call.name == "prefetch" else None
    with um.host_view(FakeCupy(x)):
        assert fake.where(address(x), x.nbytes) == {HOST}
        entered.set()


@pytest.mark.parametrize("settings", [{"unified": True}, {"missing": ["prefetch"]}])
def test_pages_are_not_called_home_where_nothing_moves(
    make_fake: Callable[..., FakeDriver], settings: dict[str, Any]
) -> None:
    fake = make_fake(**settings)
    with um.host_view(managed(fake, 100)):
        pass
    assert fake.count("prefetch") == 0


# Waiting: the whole device, or the streams told


@pytest.mark.parametrize("mode", [Mode.MANAGED, Mode.EXPLICIT])
@pytest.mark.parametrize("told", [False, True])
def test_it_waits_for_work_on_any_stream(make_fake: Callable[..., FakeDriver], mode: Mode, told: bool) -> None:
    """The write is queued on another stream than the current one, and done only when its gate opens."""
    fake = make_fake(mode)
    x = managed(fake, kind=Kind.MANAGED if mode is Mode.MANAGED else Kind.DEVICE)
    stream, waiting = fake.create_stream(0), threading.Event()
    gate, seen = fake.hold(stream), list[Any]()
    fake.launch(lambda: x.fill(7), stream)

    def tell(call: Call) -> None:
        if call.name == "synchronize":
            waiting.set()

    def read() -> None:
        with um.host_view(x, streams=[stream] if told else None) as h:
            seen.append(float(h.min()))

    fake.on_call = tell
    thread = threading.Thread(target=read)
    thread.start()
    assert waiting.wait(10) and seen == []
    gate.open()
    thread.join(10)
    assert not thread.is_alive() and seen == [7.0]


def test_streams_told_are_the_only_ones_waited_for(fake: FakeDriver) -> None:
    x, busy, mine = managed(fake), fake.create_stream(0), fake.create_stream(0)
    gate = fake.hold(busy)
    for streams in (mine, [mine], (FakeStream(mine), 0), []):
        view = um.host_view(x, streams=streams)
        with view:
            pass
    assert view.waits == 0
    assert [call.stream for call in fake.named("synchronize")] == [mine, mine, mine, 0]
    gate.open()


class FakeStream:
    device_id = 0

    def __init__(self, ptr: int) -> None:
        self.ptr = ptr


def test_it_waits_for_the_arrays_device_and_the_current_one(make_fake: Callable[..., FakeDriver]) -> None:
    fake = make_fake(devices=2)
    with um.host_view(FakeCupy(managed(fake), device=1)):
        pass
    assert [(call.stream, call.device) for call in fake.named("synchronize")] == [(None, 1), (None, 0)]


def test_waits_are_counted_and_told(fake: FakeDriver) -> None:
    x, told = managed(fake), list[Any]()
    stop = events.listen(told.append)
    try:
        view = um.host_view(x)
        with view:
            pass
    finally:
        stop()
    assert view.waits == 1 and view.waited >= 0
    began, waited, ended = told
    assert began.action == "host_view" and began.label == "r" and began.place is HOST
    assert began.arrays == (events.Operand(address(x), x.nbytes, x.shape, str(x.dtype)),)
    assert waited == events.Waited(view.waited, "a host view waits for the whole device", 0, began.serial)
    assert ended == events.Ended(began.serial, "host_view")


# Plain device memory


def test_the_device_sees_the_contents_after_exit_on_any_stream(make_fake: Callable[..., FakeDriver]) -> None:
    fake = make_fake(Mode.EXPLICIT)
    x, other, seen = managed(fake, kind=Kind.DEVICE), fake.create_stream(0), list[float]()
    with um.host_view(x, "r+") as h:
        h[...] = 4
        assert h.ctypes.data != address(x) and x[0] == 0
    fake.launch(lambda: seen.append(float(x.min())), other)
    assert seen == [4.0]


def test_running_out_of_pinned_memory_says_so_and_changes_nothing(make_fake: Callable[..., FakeDriver]) -> None:
    fake = make_fake(Mode.EXPLICIT, pinned_capacity=PAGE)
    view = um.host_view(managed(fake, kind=Kind.DEVICE), "r+")
    with pytest.raises(OutOfMemory), view:
        pass
    with pytest.raises(ClosedError):
        view.__enter__()


def test_a_failing_copy_back_is_raised_unless_the_block_raises(
    make_fake: Callable[..., FakeDriver], caplog: pytest.LogCaptureFixture
) -> None:
    fake = make_fake(Mode.EXPLICIT)
    x = managed(fake, kind=Kind.DEVICE)
    with pytest.raises(DriverError, match="700"), um.host_view(x, "w"):
        fake.fail("copy", 700)
    with pytest.raises(KeyError), um.host_view(x, "w"):
        fake.fail("copy", 701)
        raise KeyError
    assert "701" in caplog.text
    fake.fail("copy", 702)
    with pytest.raises(DriverError, match="702"), um.host_view(x[::2]):
        pass
    assert sum(block.kind is Kind.DEVICE for block in fake.live.values()) == 1


def test_pinned_memory_is_the_very_memory_after_a_wait(fake: FakeDriver) -> None:
    x = managed(fake, kind=Kind.PINNED)
    with um.host_view(FakeCupy(x), "w") as h:
        h[...] = 2
    assert (x == 2).all() and fake.count("synchronize") == 1 and fake.count("copy") == 0


def test_a_type_that_numpy_lacks_is_named(fake: FakeDriver) -> None:
    tensor = type("Tensor", (), {})()
    tensor.data_ptr, tensor.stride, tensor.element_size = lambda: 4096, lambda: (1,), lambda: 2
    tensor.shape, tensor.dtype, tensor.device = (3,), "torch.bfloat16", "cuda"
    with pytest.raises(TypeError, match="bfloat16"):
        um.host_view(tensor)


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, pickle.dumps])
def test_it_cannot_be_copied_new_or_open(make: Make, again: Callable[[Any], Any]) -> None:
    view = um.host_view(make(), "r+")
    with pytest.raises(TypeError, match="a host view cannot be copied or pickled"):
        again(view)
    with view, pytest.raises(TypeError, match="a host view cannot be copied or pickled"):
        again(view)


@pytest.mark.parametrize("mode", [Mode.MANAGED, Mode.EXPLICIT])
def test_a_view_that_is_dropped_open_says_what_becomes_of_its_contents(
    make_fake: Callable[..., FakeDriver], mode: Mode
) -> None:
    fake = make_fake(mode)
    x = managed(fake, kind=Kind.MANAGED if mode is Mode.MANAGED else Kind.DEVICE)
    view = um.host_view(x if mode is Mode.MANAGED else FakeCupy(x), "r+")
    view.__enter__()
    with pytest.warns(um.UmarrayWarning, match="never left.*" + ("where it was" if mode is Mode.MANAGED else "lost")):
        del view
        gc.collect()


# Several arrays; without a wait


def test_a_nest_gives_a_nest_of_the_same_shape_and_waits_once(make: Make) -> None:
    a, b, c = make(10), make(20, "i4"), make(5)
    view = um.host_view({"a": a, "rest": [b, (c, np.float32(3))]})
    with view as h:
        assert list(h) == ["a", "rest"] and isinstance(h["rest"], list) and isinstance(h["rest"][1], tuple)
        np.testing.assert_array_equal(h["a"], a)
        np.testing.assert_array_equal(h["rest"][0], b)
        assert h["rest"][1][1] == 3 and not h["rest"][0].flags.writeable
    assert view.waits <= 2
    with um.host_view((a, b), "w") as (first, second):
        first[...], second[...] = 1, 2
    assert (a == 1).all() and (b == 2).all()
    with pytest.raises(TypeError, match="5"):
        um.host_view([a, 5])


def test_a_named_tuple_stays_one(make: Make) -> None:
    from typing import NamedTuple

    class Batch(NamedTuple):
        x: Any
        y: Any

    with um.host_view(Batch(make(), make(3))) as h:
        assert type(h) is Batch and h.y.shape == (3,)


@pytest.mark.parametrize("wait", [True, False])
def test_arrays_that_touch_are_one_copy_and_those_that_do_not_are_not(fake: FakeDriver, wait: bool) -> None:
    x = managed(fake, 10, "u1")
    um.move(x, to=0)
    parts = [FakeCupy(x[: 2 * PAGE]), FakeCupy(x[3 * PAGE : 9 * PAGE]), FakeCupy(x[2 * PAGE : 3 * PAGE])]
    with um.host_view([*parts, FakeCupy(x[9 * PAGE + 1 :])], "w", wait=wait) as hs:
        for number, h in enumerate(hs):
            h[...] = number + 1
    assert [call.args["nbytes"] for call in fake.named("copy")] == [9 * PAGE, PAGE - 1]
    assert [int(x[n * PAGE + 1]) for n in (0, 1, 2, 3, 8, 9)] == [1, 1, 3, 2, 2, 4] and x[9 * PAGE] == 0


def test_arrays_that_overlap_share_what_is_written(make: Make) -> None:
    x = make(100)
    with um.host_view((x, x, x[10:20]), "r+") as (a, b, c):
        a[15] = 7
        c[6] = 8
        assert (b[15], b[16], c[5], a[16]) == (7, 8, 7, 8)
    assert (x[15], x[16], x[17]) == (7, 8, 17)


@pytest.mark.parametrize("mode", [Mode.MANAGED, Mode.EXPLICIT])
def test_without_wait_the_copies_are_queued_on_the_current_stream_and_the_host_goes_on(
    make_fake: Callable[..., FakeDriver], mode: Mode
) -> None:
    fake = make_fake(mode)
    x = managed(fake, 100, kind=Kind.MANAGED if mode is Mode.MANAGED else Kind.DEVICE)
    if mode is Mode.MANAGED:
        um.move(x, to=0)
    seen, stream = list[float](), fake.create_stream(0)
    with fake.use_stream(stream, 0):
        gate = fake.hold()
        fake.launch(lambda: seen.append(float(x[0])))
        waits = fake.count("synchronize")
        view = um.host_view(FakeCupy(x), "w", wait=False)
        with view as h:
            h[...] = 5
        fake.launch(lambda: seen.append(float(x[0])))
    assert seen == [] and view.waits == 0 and fake.count("synchronize") == waits
    assert {call.stream for call in fake.named("copy")} == {stream}
    gate.open()
    assert seen == [0.0, 5.0]


def test_without_wait_pinned_memory_is_used_again_only_when_its_copy_is_done(fake: FakeDriver) -> None:
    x, y = managed(fake, 10), managed(fake, 10)
    um.move([x, y], to=0)
    gate = fake.hold()
    for array, value in ((x, 1), (y, 2), (x, 3)):
        with um.host_view(FakeCupy(array), "w", wait=False) as h:
            h[...] = value
        del h
    assert sum(call.args["kind"] is Kind.PINNED for call in fake.named("allocate")) == 3
    gate.open()
    assert (x == 3).all() and (y == 2).all()
    with um.host_view(FakeCupy(x), "w", wait=False) as h:
        h[...] = 4
    assert sum(call.args["kind"] is Kind.PINNED for call in fake.named("allocate")) == 3 and (x == 4).all()


def test_without_wait_what_the_host_reads_is_waited_for_on_the_current_stream_alone(fake: FakeDriver) -> None:
    x, other = managed(fake, 10), fake.create_stream(0)
    um.move(x, to=0)
    gate = fake.hold(other)
    with um.host_view(FakeCupy(x), "r+", wait=False) as h:
        h += 1
    assert {call.stream for call in fake.named("synchronize")} == {0} and (x == 1).all()
    gate.open()
    with pytest.raises(TypeError, match="wait"):
        um.host_view(x, wait=0)  # type: ignore[arg-type]


def test_what_is_overwritten_waits_for_its_readers_on_exit_and_not_before(fake: FakeDriver) -> None:
    x, seen = managed(fake, 100), list[float]()
    um.move(x, to=0)
    gate, opened = fake.hold(), threading.Event()
    fake.launch(lambda: seen.append(float(x[0])))

    def let_go(call: Call) -> None:
        if call.name == "synchronize" and not opened.is_set():
            opened.set()
            gate.open()

    view = um.host_view(FakeCupy(x), "w")
    with view as h:
        h[...] = 5
        assert view.waits == 0 and seen == []  # the device works on, and the host writes
        fake.on_call = let_go
    assert seen == [0.0] and (x == 5).all() and view.waits == 2


def test_it_says_which_way_it_went(fake: FakeDriver) -> None:
    x, y = managed(fake, 100), managed(fake, 1)
    um.move(x, to=0)
    view = um.host_view([FakeCupy(x), FakeCupy(y)], "r")
    with view:
        pass
    assert str(view).splitlines() == [
        'host view "r", closed: 2 waits',
        "  staged: 400.0 KiB, its pages lie on the device, and stay there",
        "  direct: 4.0 KiB, all of its pages are on the host",
    ]
