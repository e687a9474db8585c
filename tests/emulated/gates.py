"""Work of a device that waits until it is told."""

from __future__ import annotations

import threading
from typing import Any


class Gate:
    """Holds a stream until it is opened."""

    def __init__(self, stream: Any) -> None:
        self._event = threading.Event()
        with stream:
            stream.add_callback(lambda *_: self._event.wait(60), None)

    def open(self) -> None:
        self._event.set()
