"""The one place that decides which driver this process uses."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import threading
from typing import Any

from umarray import settings
from umarray.drivers import cupti, fork, probe
from umarray.drivers.base import Driver
from umarray.drivers.gpu import GpuDriver
from umarray.drivers.host import HostDriver
from umarray.errors import BrokenInstallation, ForkedProcess, NotSupported

__all__ = ["choose_driver", "current_driver", "get_driver", "set_driver"]

_driver: Driver | None = None
_lock = threading.Lock()


def get_driver() -> Driver:
    """The process's driver, chosen at the first call; that call loads CuPy where there is one.

    Raises
    ------
    BrokenInstallation, NotSupported, ValueError
        As `choose_driver`. The next call tries again.
    """
    global _driver
    if _driver is None:
        with _lock:
            if _driver is None:
                _driver = choose_driver()
    return _driver


def current_driver() -> Driver | None:
    """The driver in place; None where none was chosen yet. Starts no device."""
    return _driver


def set_driver(driver: Driver | None) -> Driver | None:
    """Put another driver in place (the tests' recording one); returns the one before. None: choose anew."""
    global _driver
    with _lock:
        before, _driver = _driver, driver
    return before


def choose_driver() -> Driver:
    """Make the driver that this machine and `UMARRAY_MODE` call for.

    Raises
    ------
    BrokenInstallation
        CuPy or the vendor's runtime is installed and does not work; the text says what is broken.
    NotSupported
        `UMARRAY_MODE` asks for what no device here can do.
    ValueError
        `UMARRAY_MODE` is no mode.
    """
    asked = settings.mode()
    if asked == "host":
        return HostDriver(("UMARRAY_MODE=host asks for NumPy and no device",))
    if importlib.util.find_spec("cupy") is None:
        return _without_device(asked, "CuPy is not installed")
    cupy = _import_cupy()
    runtime = cupy.cuda.runtime
    try:
        count = runtime.getDeviceCount()
        why = "CuPy works and sees no device"
    except runtime.CUDARuntimeError as error:
        if fork.generation() and error.status not in (probe.NO_DEVICE, probe.INSUFFICIENT_DRIVER):
            raise ForkedProcess(
                f"this process was forked after its parent had opened a device ({error}): "
                "start children with multiprocessing's 'spawn' or 'forkserver' method"
            ) from None
        count, why = 0, probe.no_device(error.status, str(error), _driver_version(runtime))
    if count == 0:
        return _without_device(asked, why)
    vendor = "hip" if runtime.is_hip else "cuda"
    facts = tuple(probe.read_facts(vendor, index, runtime.getDeviceProperties(index)) for index in range(count))
    mode, reasons = probe.decide_mode(asked, facts)
    driver = GpuDriver(cupy, mode, reasons, facts)
    if vendor == "cuda" and settings.text("UMARRAY_COUNTERS") is not None:
        cupti.collector(count)  # now, since it counts nothing of what was allocated before
    return driver


def cupy_wheels() -> tuple[str, ...]:
    """Name and version of every installed distribution that is CuPy; more than one overwrite each other."""
    found = set()
    for distribution in importlib.metadata.distributions():
        name = (distribution.metadata["Name"] or "").lower().replace("_", "-")
        if name == "cupy" or name.startswith(("cupy-cuda", "cupy-rocm")):
            found.add(f"{name} {distribution.version}")
    return tuple(sorted(found))


def _without_device(asked: str, why: str) -> HostDriver:
    if asked != "auto":
        raise NotSupported(f"UMARRAY_MODE={asked} needs a device: {why}. Use UMARRAY_MODE=auto or host")
    return HostDriver((why,))


def _import_cupy() -> Any:
    try:
        return importlib.import_module("cupy")
    except Exception as error:  # whatever a broken wheel raises: ImportError, OSError, AttributeError, a warning
        cause: BrokenInstallation = probe.broken(error, cupy_wheels())
    raise cause


def _driver_version(runtime: Any) -> int:
    try:
        return int(runtime.driverGetVersion())
    except runtime.CUDARuntimeError:
        return 0
