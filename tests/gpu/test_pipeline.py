"""Pipelines on a real card: the contract, and order with a kernel that keeps each stage's stream busy in turn."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest

import umarray as um
from tests.contracts.transport_contract import TransportContract, pipeline_threads
from tests.gpu.arrays import busy
from umarray.drivers.base import Driver, Mode

SLOT = 8 << 20
LIKE = {"x": um.Spec((SLOT // 4096, 1024), "float32")}
ITEMS = 16


def needs_managed(driver: Driver, transport: str) -> None:
    if transport == "managed" and driver.mode is not Mode.MANAGED:
        pytest.skip("this device does not fault")


class TestStaged(TransportContract):
    transport = "staged"


class TestManaged(TransportContract):
    transport = "managed"

    @pytest.fixture(autouse=True)
    def _where_it_can_work(self, driver: Driver) -> None:
        needs_managed(driver, "managed")


class TestBus(TransportContract):
    transport = "bus"
    travels = moves = False


class Lab:
    """Whole slots stamped with their item; kernels that read them when they run."""

    def __init__(self, driver: Driver, transport: str, slots: int, **arguments: Any) -> None:
        arguments.setdefault("workers", 1)  # the tests below hold a stage that preparation must not wait for
        self.driver = driver
        self.prepared: set[int] = set()
        self.pipeline = um.Pipeline(
            range(ITEMS), self.prep, self.compute, like=LIKE, transport=transport, slots=slots, **arguments
        )

    def prep(self, item: int, slot: Any) -> None:
        slot["x"][...] = item
        self.prepared.add(item)

    def compute(self, batch: Any) -> tuple[Any, Any]:
        return batch["x"].min(), batch["x"].max()

    def stream(self, stage: str) -> int:
        engine = self.pipeline._rig.engine
        assert engine is not None
        if stage == "compute":
            return self.driver.current_stream()
        stream = engine.transport.stream if stage == "transfer" else engine.transport.back_stream
        assert stream is not None
        return stream


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("slots", [2, 3, 5])
@pytest.mark.parametrize(
    ("transport", "stage"),
    [
        ("bus", "compute"),
        ("staged", "compute"),
        ("staged", "transfer"),
        ("managed", "compute"),
        ("managed", "transfer"),
        ("managed", "back"),
    ],
)
def test_a_slot_is_not_written_while_a_stage_lags(
    driver: Driver, transport: str, stage: str, slots: int, workers: int
) -> None:
    needs_managed(driver, transport)
    lab, stream = Lab(driver, transport, slots, workers=workers), driver.create_stream(0)
    with driver.use_stream(stream, 0), lab.pipeline as p:
        warm = list(p)  # loads every kernel, and keeps its memory: nothing is loaded while a stream is busy
        lab.prepared.clear()
        driver.synchronize()
        with busy(driver, lab.stream(stage)) as let_go:
            results = iter(p)
            got = [next(results) for _ in range(slots)]
            time.sleep(0.2)  # long enough for a fault to show; the order itself rests on events
            too_far = 2 * slots if (transport, stage) == ("staged", "compute") else slots
            assert max(lab.prepared) < too_far
            let_go()
            got.extend(results)
        assert len(warm) == ITEMS
        assert [(float(low), float(high)) for low, high in got] == [(item, item) for item in range(ITEMS)]
    driver.destroy_stream(stream, 0)


@pytest.mark.parametrize("transport", ["staged", "managed"])
def test_results_reach_the_host_while_the_next_computes(driver: Driver, transport: str) -> None:
    needs_managed(driver, transport)
    xp = driver.xp
    buffer = xp.zeros(LIKE["x"].shape, "float32")

    def compute(batch: Any) -> Any:
        xp.multiply(batch["x"], 2, out=buffer)  # the same array each time
        return buffer

    lab = Lab(driver, transport, 3, out=um.HOST)
    lab.pipeline._compute = compute
    with lab.pipeline as p:
        for item, result in enumerate(p):
            assert type(result) is np.ndarray and (result == 2 * item).all()


@pytest.mark.parametrize("transport", ["staged", "managed"])
def test_an_error_comes_out_soon_after_the_running_kernel(driver: Driver, transport: str) -> None:
    needs_managed(driver, transport)
    failed = threading.Event()

    class Boom(Exception):
        pass

    def prep(item: int, slot: Any) -> None:
        slot["x"][...] = item
        if item == 1:
            failed.set()
            raise Boom

    with busy(driver) as let_go:
        threading.Timer(1.0, let_go).start()
        start = time.monotonic()
        with pytest.raises(Boom):
            with um.Pipeline(range(9), prep, lambda batch: None, like=LIKE, transport=transport, workers=1) as p:
                for _ in p:
                    assert failed.wait(10)
        assert time.monotonic() - start < 2.0
    assert pipeline_threads() == []


def test_a_staged_copy_overlaps_compute_of_the_current_stream(driver: Driver) -> None:
    """A busy current stream does not keep the next batches from arriving."""
    lab = Lab(driver, "staged", 4)
    lab.pipeline._compute = None
    with lab.pipeline as p:
        list(p)
        with busy(driver):
            results = iter(p)
            next(results)
            engine = p._rig.engine
            assert engine is not None
            while not engine.ready or engine.ready[-1].parts[-1].index < 3:
                engine.handle(engine.inbox.get(timeout=10))
            for job in engine.ready:
                assert job.ready is not None
                job.ready.wait()  # they have arrived, although the current stream is busy
