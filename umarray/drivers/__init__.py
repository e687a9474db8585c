"""The one place that decides which driver this process uses."""

from __future__ import annotations

import threading

from umarray.drivers.base import Driver
from umarray.drivers.host import HostDriver

__all__ = ["get_driver", "set_driver"]

_driver: Driver | None = None
_lock = threading.Lock()


def get_driver() -> Driver:
    """The process's driver, chosen at the first call."""
    global _driver
    if _driver is None:
        with _lock:
            if _driver is None:
                _driver = HostDriver(("placeholder until the probe is written",))
    return _driver


def set_driver(driver: Driver | None) -> Driver | None:
    """Put another driver in place (the tests' recording one); returns the one before. None: choose anew."""
    global _driver
    with _lock:
        before, _driver = _driver, driver
    return before
