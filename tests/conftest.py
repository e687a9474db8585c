"""Fixtures for every test: the recording driver, guards against what a test leaves behind, a watchdog."""

from __future__ import annotations

import faulthandler
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fake_driver import FakeDriver
from umarray import drivers, events, log
from umarray.errors import UmarrayError

WATCHDOG = 120  # seconds that one test may take before every thread's traceback is printed and the run dies
HERE = Path(__file__).resolve().parent
_stderr: Any = None
_why_no_gpu: str | None = None


def pytest_configure(config: pytest.Config) -> None:
    global _stderr
    _stderr = os.fdopen(os.dup(2), "w")  # the real one: pytest captures during tests
    os.environ["UMARRAY_CACHE"] = os.path.join(tempfile.gettempdir(), f"umarray-tests-{os.getpid()}")  # never made
    if "UMARRAY_MODE" not in os.environ and not os.environ.get("HIPEMU"):
        try:
            drivers.get_driver()
        except UmarrayError as error:  # CuPy without its vendor's runtime: the tests here run on the host
            global _why_no_gpu
            _why_no_gpu = str(error)
            os.environ["UMARRAY_MODE"] = "host"
    config.addinivalue_line("markers", f"watchdog(seconds): how long a test may take (default {WATCHDOG})")
    config.addinivalue_line("markers", "host_mode: tied to NumPy in place of a device, left out where there is one")


def pytest_unconfigure(config: pytest.Config) -> None:
    _stderr.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Any:
    marker = item.get_closest_marker("watchdog")
    faulthandler.dump_traceback_later(marker.args[0] if marker else WATCHDOG, exit=True, file=_stderr)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


def _no_real_device() -> str:
    """Why tests/gpu cannot run here; empty where it can."""
    if os.environ.get("HIPEMU"):
        return "the device is emulated"
    driver = drivers.get_driver()
    return "" if driver.device_count() else "; ".join(driver.reasons)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("host_mode") and drivers.get_driver().device_count():
        pytest.skip("tied to the host mode")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """tests/emulated runs on the emulated device only, tests/gpu on a real one only."""
    folder = collection_path.parent
    if folder == HERE / "emulated":
        return None if os.environ.get("HIPEMU") else True
    if folder == HERE / "gpu":
        global _why_no_gpu
        _why_no_gpu = _no_real_device() if _why_no_gpu is None else _why_no_gpu
        return True if _why_no_gpu else None
    return None


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if _why_no_gpu:
        terminalreporter.write_line(f"tests/gpu was left out: {_why_no_gpu}")


@pytest.fixture(autouse=True)
def _nothing_left_behind() -> Iterator[None]:
    """The driver, CuPy's allocator and the listeners are after a test what they were before it."""
    driver, listeners, allocator = drivers.current_driver(), events.listeners, _allocator()
    log.forget()  # each test is told what it has to know
    yield
    after = drivers.current_driver()
    assert driver is None or after is driver, f"a test left the driver {after} in place of {driver}"
    assert not isinstance(after, FakeDriver) or after is driver, "a test left its fake driver in place"
    assert events.listeners == listeners, "a test left a listener"
    assert allocator is None or _allocator() == allocator, "a test left another CuPy allocator in place"


def _allocator() -> Any:
    cuda = getattr(sys.modules.get("cupy"), "cuda", None)
    return cuda.get_allocator() if cuda is not None else None


@pytest.fixture
def make_fake() -> Iterator[Callable[..., FakeDriver]]:
    """Make a recording driver with the settings given and put it in place, until the test ends."""
    made: list[FakeDriver] = []
    before = drivers.current_driver()

    def make(*args: Any, **settings: Any) -> FakeDriver:
        made.append(FakeDriver(*args, **settings))
        drivers.set_driver(made[-1])
        return made[-1]

    yield make
    drivers.set_driver(before)
    for driver in made:
        assert not driver.faults, driver.faults


@pytest.fixture
def fake(make_fake: Callable[..., FakeDriver]) -> FakeDriver:
    """A recording driver in managed mode with one device, put in place until the test ends."""
    return make_fake()


@pytest.fixture
def told() -> Iterator[list[Any]]:
    """What `umarray.events` tells during the test."""
    told: list[Any] = []
    stop = events.listen(told.append)
    yield told
    stop()


@pytest.fixture
def repository() -> Path:
    return Path(__file__).resolve().parent.parent
