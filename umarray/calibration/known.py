"""The calibration that other rooms read: measured and remembered, or the defaults."""

from __future__ import annotations

import threading

from umarray.calibration import store
from umarray.calibration.defaults import defaults
from umarray.calibration.figures import Calibration
from umarray.drivers import get_driver
from umarray.drivers.base import Driver

_lock = threading.Lock()
_known: tuple[Driver, dict[int, Calibration]] | None = None


def current(device: int | None = None) -> Calibration:
    """What is known of a device's costs, the current one by default; never measures.

    Notes
    -----
    The first look at a device reads the cache file; after it this is a look into a dict. Safe from any thread.

    Examples
    --------
    >>> from umarray.calibration import current
    >>> current().seconds >= 0  # how long measuring took; 0 for defaults
    True
    """
    driver = get_driver()
    device = driver.current_device() if device is None else device
    known = _table(driver)
    found = known.get(device)
    if found is None:
        found = known.setdefault(device, _stored(driver, device) or defaults(driver, device))
    return found


def _stored(driver: Driver, device: int) -> Calibration | None:
    if not driver.device_count():
        return None
    key = store.key_of(driver, device)
    return None if store.emulated(key) else store.load(key)


def set_current(device: int, calibration: Calibration) -> None:
    """Let `current` give this one from now on."""
    _table(get_driver())[device] = calibration


def _table(driver: Driver) -> dict[int, Calibration]:
    global _known
    known = _known
    if known is None or known[0] is not driver:
        with _lock:
            if _known is None or _known[0] is not driver:
                _known = (driver, {})
            known = _known
    return known[1]
