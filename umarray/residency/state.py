"""What this room keeps for one driver: its ledger of advice, its records of pages, streams, pinned memory."""

from __future__ import annotations

import threading
from typing import Any

from umarray.calibration import Calibration
from umarray.drivers.base import Driver
from umarray.residency.asked import LastAsked
from umarray.residency.ledger import Ledger
from umarray.residency.readers import Readers
from umarray.residency.shadow import PinnedMemory
from umarray.residency.streams import OwnStreams


class State:
    """One driver's state; scopes keep the one that they began with."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.ledger = Ledger(driver)
        self.asked = LastAsked(driver.find)
        self.told = LastAsked(driver.find)  # where pages were asked to be, or said to be used: `access`, host views
        self.readers = Readers()
        self.decided: dict[tuple[str, int], tuple[Calibration, Any]] = {}  # how a view of a mode and size goes
        self.streams = OwnStreams(driver)
        self.pinned = PinnedMemory(driver)


_state: State | None = None
_lock = threading.Lock()


def state_of(driver: Driver) -> State:
    """The state of the process's driver. Another driver (in tests) starts a new one."""
    global _state
    state = _state
    if state is None or state.driver is not driver:
        with _lock:
            if _state is None or _state.driver is not driver:
                _state = State(driver)
            state = _state
    return state
