"""get_driver() decides once, and says why: no CuPy, a broken one, no device, devices of each kind."""

from __future__ import annotations

import importlib.util
import sys
from typing import Any

import pytest

from tests.drivers.test_probe import NO_XNACK
from tests.fake_cupy import H200, MI210, fake_cupy
from umarray import drivers
from umarray.drivers import choose_driver, fork
from umarray.drivers.base import Mode
from umarray.drivers.gpu import GpuDriver
from umarray.drivers.host import HostDriver
from umarray.errors import BrokenInstallation, ForkedProcess, NotSupported


@pytest.fixture
def install(monkeypatch: Any) -> Any:
    """Put a stand-in for CuPy in place, or an error that importing it raises, or None: not installed."""

    def put(cupy: Any, mode: str | None = None) -> Any:
        monkeypatch.delenv("UMARRAY_MODE", raising=False)
        if mode is not None:
            monkeypatch.setenv("UMARRAY_MODE", mode)
        real = importlib.util.find_spec
        monkeypatch.setattr(
            importlib.util, "find_spec", lambda name, *rest: cupy if name == "cupy" else real(name, *rest)
        )
        if isinstance(cupy, BaseException):

            def fail(name: str) -> None:
                raise cupy

            monkeypatch.setattr(drivers.importlib, "import_module", fail)
        else:
            monkeypatch.setitem(sys.modules, "cupy", cupy)
        return cupy

    return put


def test_no_cupy_is_the_host_and_says_so(install: Any) -> None:
    install(None)
    driver = choose_driver()
    assert isinstance(driver, HostDriver) and driver.reasons == ("CuPy is not installed",)


@pytest.mark.parametrize("mode", ["managed", "explicit"])
def test_a_mode_that_needs_a_device_is_refused_without_one(install: Any, mode: str) -> None:
    install(None, mode)
    with pytest.raises(NotSupported, match=f"UMARRAY_MODE={mode}.*CuPy is not installed"):
        choose_driver()


@pytest.mark.parametrize("mode", ["", "0", "false", "auto", "AUTO"])
def test_off_means_off(install: Any, mode: str) -> None:
    install(fake_cupy(H200), mode)
    assert choose_driver().mode is Mode.MANAGED


def test_host_mode_does_not_even_import_a_broken_cupy(install: Any) -> None:
    install(ImportError("libamdhip64.so.5: cannot open shared object file"), "host")
    assert choose_driver().mode is Mode.HOST


@pytest.mark.parametrize(
    "error",
    [ImportError("libamdhip64.so.5 is not there"), OSError("libamdhip64.so.5"), UserWarning("libamdhip64.so.5")],
)
def test_a_broken_cupy_is_an_error_and_no_silent_host(install: Any, error: BaseException) -> None:
    install(error)
    with pytest.raises(BrokenInstallation, match=r"libamdhip64\.so\.5.*UMARRAY_MODE=host"):
        choose_driver()


@pytest.mark.parametrize(
    ("devices", "asked", "name", "mode"),
    [
        ([H200], "auto", "cuda", Mode.MANAGED),
        ([MI210], "auto", "hip", Mode.MANAGED),
        ([MI210, NO_XNACK], "auto", "hip", Mode.EXPLICIT),
        ([H200], "explicit", "cuda", Mode.EXPLICIT),
    ],
)
def test_devices_give_a_gpu_driver(install: Any, devices: Any, asked: str, name: str, mode: Mode) -> None:
    install(fake_cupy(*devices), asked)
    driver = choose_driver()
    assert isinstance(driver, GpuDriver) and (driver.name, driver.mode) == (name, mode)
    assert driver.device_count() == len(devices) and driver.reasons


@pytest.mark.parametrize(("status", "version"), [(100, 13000), (35, 0)])
def test_cupy_without_a_device_is_the_host(install: Any, status: int, version: int) -> None:
    cupy = install(fake_cupy(H200))
    cupy.cuda.runtime.errors["getDeviceCount"], cupy.cuda.runtime.driver_version = status, version
    driver = choose_driver()
    assert driver.mode is Mode.HOST and f"status {status}" in driver.reasons[0]


def test_a_driver_too_old_is_a_broken_installation(install: Any) -> None:
    cupy = install(fake_cupy(H200))
    cupy.cuda.runtime.errors["getDeviceCount"], cupy.cuda.runtime.driver_version = 35, 11040
    with pytest.raises(BrokenInstallation, match="update the device's driver"):
        choose_driver()


def test_a_runtime_that_a_fork_broke_is_told_as_that(install: Any, monkeypatch: Any) -> None:
    cupy = install(fake_cupy(H200))
    cupy.cuda.runtime.errors["getDeviceCount"] = 3
    monkeypatch.setattr(fork, "_forks", 1)
    with pytest.raises(ForkedProcess, match="spawn"):
        choose_driver()


def test_get_driver_decides_once_and_tries_again_after_an_error(install: Any) -> None:
    before = drivers.set_driver(None)
    try:
        install(ImportError("broken"))
        for _ in range(2):
            with pytest.raises(BrokenInstallation):
                drivers.get_driver()
        assert drivers.current_driver() is None
        install(None)
        assert drivers.get_driver() is drivers.get_driver() is drivers.current_driver()
    finally:
        drivers.set_driver(before)


@pytest.mark.parametrize(("devices", "expected"), [(H200, [2]), (MI210, [])], ids=["cuda", "hip"])
def test_counters_that_were_asked_for_come_on_with_the_driver(
    install: Any, devices: Any, expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    switched_on: list[int] = []
    monkeypatch.setattr(drivers.cupti, "collector", switched_on.append)
    monkeypatch.setenv("UMARRAY_COUNTERS", "0")
    install(fake_cupy(devices, devices))
    choose_driver()
    assert switched_on == []
    monkeypatch.setenv("UMARRAY_COUNTERS", "1")
    choose_driver()
    assert switched_on == expected
