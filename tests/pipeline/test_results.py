"""Who may take results, close and iterate: other threads, other processes, and the pipeline's own functions."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import umarray as um
from tests.contracts.transport_contract import pipeline_threads
from umarray import drivers
from umarray.drivers.host import HostDriver
from umarray.errors import ClosedError, ForkedProcess, PipelineError

LIKE = {"x": um.Spec((4, 2), "int32")}
PATIENCE = 10.0


@pytest.fixture(autouse=True)
def host() -> Iterator[None]:
    before = drivers.set_driver(HostDriver())
    yield
    drivers.set_driver(before)


def fill(item: int, slot: Any) -> None:
    slot["x"][...] = item


def first(batch: Any) -> int:
    return int(batch["x"][0, 0])


def test_another_thread_may_close_a_pipeline_that_waits() -> None:
    reached, go, errors = threading.Event(), threading.Event(), list[BaseException]()

    def source() -> Iterator[int]:
        yield 0
        reached.set()
        go.wait(PATIENCE)

    def iterate() -> None:
        try:
            list(p)
        except BaseException as error:
            errors.append(error)

    p = um.Pipeline(source(), fill, first, like=LIKE)
    p.__enter__()
    thread = threading.Thread(target=iterate)
    thread.start()
    assert reached.wait(PATIENCE)
    p.close()
    thread.join(PATIENCE)
    go.set()
    assert not thread.is_alive() and [type(error) for error in errors] == [ClosedError]


@pytest.mark.parametrize("stage", ["source", "prep", "compute"])
@pytest.mark.parametrize("what", ["close", "iterate"])
def test_a_pipeline_is_not_closed_or_iterated_by_its_own_functions(stage: str, what: str) -> None:
    def act(name: str) -> None:
        if stage == name:
            p.close() if what == "close" else list(p)

    def source() -> Iterator[int]:
        yield 0
        act("source")
        yield 1

    class Source:
        def __iter__(self) -> Iterator[int]:
            return source()

    with um.Pipeline(Source(), lambda item, slot: act("prep"), lambda batch: act("compute"), like=LIKE, workers=2) as p:
        with pytest.raises(PipelineError, match="cannot be closed or iterated by its own source, prep or compute"):
            list(p)
    assert pipeline_threads() == []


def test_several_threads_may_share_an_iterator() -> None:
    taken: list[int] = []
    with um.Pipeline(range(200), fill, first, like=LIKE, workers=2) as p:
        results = iter(p)
        threads = [threading.Thread(target=lambda: taken.extend(results)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()
    assert sorted(taken) == list(range(200))


def test_a_pipeline_may_be_the_source_of_another_and_be_closed_first() -> None:
    inner = um.Pipeline(range(1000), fill, lambda batch: batch["x"].copy(), like=LIKE)
    outer = um.Pipeline(inner, lambda item, slot: slot.__setitem__("x", item), first, like=LIKE)
    with inner, outer:
        assert list(outer) == list(range(1000))
        results = iter(outer)
        assert next(results) == 0
        inner.close()
        with pytest.raises(ClosedError, match="closed"):
            list(results)
    assert pipeline_threads() == []


def test_ideal_works_after_a_loop_was_left() -> None:
    with um.Pipeline(range(50), fill, first, like=LIKE) as p:
        for _ in p:
            break
        assert p.ideal(3)["prep"] > 0
        assert list(p) == list(range(50))


def test_a_result_that_is_kept_in_vain_is_told_without_compute() -> None:
    with pytest.raises(ValueError, match="out=umarray.HOST copies what compute returns"):
        um.Pipeline([1], fill, like=LIKE, out=um.HOST)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_is_told_that_the_threads_are_not_its() -> None:
    with um.Pipeline(range(40), fill, first, like=LIKE) as p:
        results = iter(p)
        assert next(results) == 0
        child = os.fork()
        if child == 0:
            code = 1
            try:
                next(results)
            except ForkedProcess:
                p.close()
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        assert list(results) == list(range(1, 40))


def test_nothing_of_an_iteration_is_left_to_the_collector() -> None:
    gc.collect()
    gc.disable()
    try:
        before = len(gc.get_objects())
        for _ in range(20):
            with um.Pipeline(range(4), fill, first, like=LIKE) as p:
                list(p)
        assert pipeline_threads() == []
        gc.collect()
        assert len(gc.get_objects()) - before < 200
    finally:
        gc.enable()


CHILD = """
import threading, umarray as um
block = threading.Event()
class Source:
    def __iter__(self):
        for item in range(40):
            if {blocked} and item == 20:
                print("blocked", flush=True)
                block.wait()
            yield item
def prep(item, slot):
    slot["x"][...] = item
like = {{"x": um.Spec((64, 64), "f4")}}
print("begun", flush=True)
while True:
    with um.Pipeline(Source(), prep, lambda batch: batch["x"].sum(), like=like, workers=2) as p:
        for _ in range(3):
            for result in p:
                pass
"""


@pytest.mark.parametrize("blocked", [False, True])
def test_ctrl_c_ends_the_process_with_one_traceback(blocked: bool) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD.format(blocked=blocked)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "UMARRAY_MODE": "host"},
    )
    try:
        assert child.stdout is not None
        for _ in range(1 + blocked):
            child.stdout.readline()
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=PATIENCE)
    finally:
        child.kill()
        child.communicate()
    assert child.returncode == -signal.SIGINT
    assert errors.count("Traceback") == 1 and errors.rstrip().endswith("KeyboardInterrupt")
