"""Progress of the first build: one line anywhere, and a bar on a terminal, tqdm's where it is installed."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any, final

__all__ = ["Progress"]

_OFF = ("", "0", "false", "off", "no")


@final
class Progress:
    """Counts what is done; shows nothing if `quiet`, and no bar with ``UMARRAY_PROGRESS=0`` or off a terminal."""

    def __init__(self, total: int, *, quiet: bool) -> None:
        self._total, self._done = total, 0
        self._bar: Any = None
        self._counts = not quiet and os.environ.get("UMARRAY_PROGRESS", "1").lower() not in _OFF and _terminal()
        if not quiet:
            print("hipemu: building the emulated HIP device (once for each version)", file=sys.stderr, flush=True)
        if self._counts:
            try:
                from tqdm import tqdm

                self._bar = tqdm(total=total, desc="hipemu", unit="file", ncols=80, nrows=24)
            except Exception:  # not installed, or broken: the count below does
                self._bar = None

    def step(self) -> None:
        """One more is done."""
        self._done += 1
        with contextlib.suppress(Exception):  # a terminal that went away does not end the build
            if self._bar is not None:
                self._bar.update()
            elif self._counts:
                print(f"\rhipemu: {self._done}/{self._total}", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        """No more will be done."""
        with contextlib.suppress(Exception):
            if self._bar is not None:
                self._bar.close()
            elif self._counts:
                print(file=sys.stderr)


def _terminal() -> bool:
    try:
        return sys.stderr.isatty()
    except Exception:
        return False
