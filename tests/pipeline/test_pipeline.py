"""The interface: what is refused, and what a pipeline looks like from outside."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import umarray as um
from tests.contracts.transport_contract import Boom, pipeline_threads
from tests.fake_driver import FakeDriver
from umarray import drivers
from umarray.drivers.host import HostDriver
from umarray.errors import ClosedError, NotSupported, OutOfMemory, PipelineError

LIKE = {"x": um.Spec((4, 2), "int32")}


@pytest.fixture
def host() -> Iterator[None]:
    before = drivers.set_driver(HostDriver())
    yield
    drivers.set_driver(before)


def fill(item: int, slot: Any) -> None:
    slot["x"][...] = item


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"source": 3}, TypeError, "source must be iterable, not 3"),
        ({"source": None}, TypeError, "source must be iterable, not None"),
        ({"prep": 3, "like": LIKE}, TypeError, "prep must be a function or None, not 3"),
        ({"compute": "f"}, TypeError, "compute must be a function or None, not 'f'"),
        ({"prep": fill}, ValueError, "prep needs like="),
        ({"like": {"x": 3}}, ValueError, "like=.*holds no array"),
        ({"like": np.array([object()])}, TypeError, "dtype"),
        ({"slots": 1}, ValueError, "slots must be 2 or more .*, not 1"),
        ({"slots": -3}, ValueError, "slots must be 2 or more .*, not -3"),
        ({"slots": 2.5}, TypeError, "slots must be an int, not 2.5"),
        ({"slots": True}, TypeError, "slots must be an int, not True"),
        ({"workers": -1}, ValueError, "workers must be 0 or more .*, not -1"),
        ({"workers": float("nan")}, TypeError, "workers must be an int, not nan"),
        ({"out": um.Device(0)}, ValueError, "out must be umarray.HOST or None"),
        ({"out": "nowhere"}, ValueError, "unknown place 'nowhere'"),
        ({"transport": "pigeon"}, ValueError, "unknown transport 'pigeon': there are auto, host, staged, managed"),
        ({"transport": None}, ValueError, "unknown transport None"),
        ({"transport": "bus"}, NotSupported, "cannot work in host mode"),
        ({"transport": "direct"}, NotSupported, "cannot work in host mode"),
        ({"transport": "staged"}, NotSupported, "cannot work in host mode"),
        ({"transport": "managed"}, NotSupported, "cannot work in host mode"),
    ],
)
def test_an_argument_that_makes_no_sense_is_refused(arguments: dict[str, Any], error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        um.Pipeline(**{"source": [1], **arguments})


def test_transports_of_other_modes_are_refused(make_fake: Any) -> None:
    make_fake("explicit")
    with pytest.raises(NotSupported, match="'managed' cannot work in explicit mode .*does not fault"):
        um.Pipeline([1], transport="managed")
    with pytest.raises(NotSupported, match="'host' cannot work in explicit mode"):
        um.Pipeline([1], transport="host")


def test_auto_says_why(make_fake: Any, host: None) -> None:
    with um.Pipeline([1]) as p:
        assert p.report().transport == "host" and "no device" in p.report().reason
    for mode in ("explicit", "managed"):
        make_fake(mode)
        assert um.Pipeline([1]).report().transport == "staged"


@pytest.mark.usefixtures("host")
def test_it_must_be_entered_once() -> None:
    p = um.Pipeline([1], fill, like=LIKE)
    with pytest.raises(PipelineError, match="enter the pipeline first"):
        iter(p)
    with p:
        with pytest.raises(PipelineError, match="entered already"):
            p.__enter__()
        assert len(list(p)) == 1
    with pytest.raises(ClosedError):
        iter(p)


def test_nothing_is_allocated_before_it_is_iterated(fake: FakeDriver) -> None:
    with um.Pipeline([1], fill, like=LIKE):
        pass
    assert fake.count("allocate") == 0 and fake.count("create_stream") == 0


def test_slots_that_do_not_fit_keep_nothing(make_fake: Any) -> None:
    fake = make_fake("explicit", capacity=2 * 4096)
    with um.Pipeline([1], fill, like=LIKE, slots=3) as p, pytest.raises(OutOfMemory):
        list(p)
    assert fake.live == {} and fake.open_streams() == set() and pipeline_threads() == []


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize(
    ("prep", "error", "words"),
    [
        (
            lambda item, slot: slot.__setitem__("x", np.zeros((3, 2))),
            ValueError,
            r"slot\['x'\] has shape \(4, 2\); prep",
        ),
        (lambda item, slot: slot["x"].__setitem__(..., np.zeros(3)), ValueError, "broadcast"),
        (lambda item, slot: slot.data.update(x=np.zeros((3, 2))), ValueError, r"prep replaced slot\['x'\].*\(3, 2\)"),
        (lambda item, slot: slot.data.update(y=1), ValueError, "slot must be a dict with the keys"),
        (lambda item, slot: setattr(slot, "length", 5), ValueError, "slot.length must be 0 to 4.* not 5"),
        (lambda item, slot: setattr(slot, "length", -1), ValueError, "slot.length must be 0 to 4"),
        (lambda item, slot: setattr(slot, "length", 2.0), TypeError, "slot.length must be an int, not 2.0"),
        (lambda item, slot: slot.__setitem__("y", 1), KeyError, "y"),
    ],
)
def test_a_prep_that_writes_wrongly_is_told(prep: Any, error: Any, words: str) -> None:
    with um.Pipeline([1], prep, like=LIKE) as p, pytest.raises(error, match=words):
        list(p)


@pytest.mark.usefixtures("host")
def test_an_item_of_another_form_is_told() -> None:
    items = [{"x": np.zeros(3)}, {"x": np.zeros(3), "y": 1}]
    with um.Pipeline(items) as p, pytest.raises(ValueError, match="item must be a dict with the keys"):
        list(p)


@pytest.mark.usefixtures("host")
def test_length_is_as_new_for_each_batch() -> None:
    def prep(item: int, slot: Any) -> None:
        assert slot.length == slot.capacity == 4 and "x" in slot and list(slot.keys()) == ["x"]
        slot.length = item

    with um.Pipeline([1, 2, 3, 4, 0], prep, like=LIKE, slots=2) as p:
        assert [batch.length for batch in p] == [1, 2, 3, 4, 0]


@pytest.mark.usefixtures("host")
def test_a_batch_unpacks_as_its_nest() -> None:
    with um.Pipeline([(np.arange(3), np.arange(3) * 2)]) as p:
        for batch in p:
            x, y = batch
            assert (y == 2 * x).all() and repr(batch) == "<batch 0 of 3>"
            del x, y


def test_results_do_not_depend_on_the_mode(make_fake: Any, host: None) -> None:
    rng = np.random.default_rng(0)
    items = [rng.random((5, 3)).astype("f4") for _ in range(9)] + [rng.random((2, 3)).astype("f4")]

    def train() -> list[bytes]:
        weights = np.zeros(3, "f4")
        with um.Pipeline(items, compute=lambda batch: batch.data @ weights + batch.data.sum(), out=um.HOST) as p:
            return [result.tobytes() for result in p]

    expected = train()
    for mode in ("explicit", "managed"):
        make_fake(mode)
        assert train() == expected


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_wherever_errors_are_one_comes_out_and_all_is_released(make_fake: Any, data: st.DataObject) -> None:
    fake = make_fake("managed")
    transport = data.draw(st.sampled_from(["staged", "managed"]))
    slots, workers = data.draw(st.integers(2, 5)), data.draw(st.integers(1, 3))
    stages = st.sampled_from(["source", "prep", "compute", "body"])
    errors = dict(data.draw(st.dictionaries(stages, st.integers(0, 11), max_size=3)))
    out = data.draw(st.sampled_from([None, um.HOST]))

    def check(stage: str, item: int) -> None:
        if errors.get(stage) == item:
            raise Boom(stage, item)

    def source() -> Iterator[int]:
        for item in range(12):
            check("source", item)
            yield item

    def prep(item: int, slot: Any) -> None:
        check("prep", item)
        fill(item, slot)

    def compute(batch: Any) -> Any:
        check("compute", batch.index)
        return batch["x"].sum(keepdims=True)

    seen: list[int] = []
    caught: Boom | None = None
    try:
        with um.Pipeline(
            source(), prep, compute, like=LIKE, transport=transport, slots=slots, workers=workers, out=out
        ) as p:
            for result in p:
                seen.append(int(result[0, 0]) // 8)
                check("body", seen[-1])
    except Boom as error:
        caught = error.with_traceback(None)
    assert (caught is None) == (not errors)
    assert seen == list(range(len(seen))) and (errors or len(seen) == 12)
    if caught is not None:
        stage, item = caught.args
        assert errors[stage] == item and len(seen) <= item + 1
    assert pipeline_threads() == [] and fake.live == {} and fake.open_streams() == set() and not fake.faults


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize("how", ["asked", "switched off", "not asked"])
def test_progress(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    bars = []

    class Bar:
        def __init__(self, **settings: Any) -> None:
            self.settings, self.count, self.closed = settings, 0, False
            bars.append(self)

        def update(self, count: int) -> None:
            self.count += count

        def close(self) -> None:
            self.closed = True

    monkeypatch.setattr("tqdm.auto.tqdm", Bar)
    monkeypatch.setattr("umarray.progress._is_terminal", lambda file: True)
    if how == "switched off":
        monkeypatch.setenv("UMARRAY_PROGRESS", "0")
    else:
        monkeypatch.delenv("UMARRAY_PROGRESS", raising=False)
    for source, total in (([1, 2, 3], 3), (itertools.islice([1, 2, 3], 3), None)):
        bars.clear()
        with um.Pipeline(source, fill, like=LIKE, progress=True if how != "not asked" else None) as p:
            list(p)
        if how == "asked":
            assert (bars[0].count, bars[0].closed) == (3, True)
            assert bars[0].settings["total"] == total
        else:
            assert bars == []


def test_leaving_the_process_within_a_loop_is_quiet() -> None:
    code = """
import sys, umarray as um
p = um.Pipeline(range(100), lambda i, s: None, like=um.Spec(3), workers=2).__enter__()
results = iter(p)
next(results), next(results)
sys.exit(0)
"""
    child = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=60, env=_host_environment()
    )
    assert child.returncode == 0 and child.stderr == ""


def test_parallel_kernels_of_several_workers_do_not_end_the_process() -> None:
    code = """
import numba, numpy as np, umarray as um
from umarray.pipeline import prep
images = np.zeros((64, 8), np.uint8)

@numba.njit(parallel=True, nogil=True)
def kernel(x):
    for i in numba.prange(x.size):
        x[i] = 1

def prepare(item, slot):
    prep.gather(images, np.arange(64), slot["x"])
    kernel(slot["y"])

def compute(batch):
    kernel(batch["y"])
    return int(batch["y"].sum())

like = {"x": um.Spec((64, 8), "u1"), "y": um.Spec(5000, "i4")}
with um.Pipeline(range(60), prepare, compute, like=like, workers=3, slots=5) as p:
    assert list(p) == [5000] * 60
assert numba.threading_layer() == "workqueue"
"""
    environment = {**_host_environment(), "NUMBA_THREADING_LAYER": "workqueue"}
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, env=environment)
    assert child.returncode == 0, child.stderr


def _host_environment() -> dict[str, str]:
    import os

    return {**os.environ, "UMARRAY_MODE": "host"}
